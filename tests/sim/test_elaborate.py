"""Verilog of components, as simulations and place and route are given it."""

import re

from amaranth.hdl import Module, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from sim.elaborate import short_verilog, to_verilog


class Rows(wiring.Component):
    """A memory of 16 rows and its read port."""

    def __init__(self, init):
        self.init = init
        super().__init__({"address": In(4), "row": Out(8)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.cells = cells = Memory(shape=unsigned(8), depth=16, init=self.init)
        read = cells.read_port()
        m.d.comb += [read.addr.eq(self.address), self.row.eq(read.data)]
        return m


def spelled(text):
    """The initial values of a memory's rows."""
    return [int(value, 16) for value in re.findall(r"cells\[\d+\] = 8'h(\w+);", text)]


def test_short_verilog_spells_only_memories_out_that_do_not_begin_as_zeros():
    assert spelled(short_verilog(Rows([]), "rows")) == []
    assert spelled(short_verilog(Rows([0, 7]), "rows")) == [0, 7] + [0] * 14
    assert spelled(to_verilog(Rows([]), "rows")) == [0] * 16
