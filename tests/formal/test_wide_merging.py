"""Bounded: a wide merger's first frame has each tuple once, and in order.

Induction would need an invariant that ties every place of the banks and of the sorting network to
the words still to come; instead the solver tries every frame that fits into the first cycles, at
any speed of both inputs.
"""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import data

from hw.rtl.wide_merger import WideMerger
from tests.formal.proofs import ProofFailed, check
from tests.formal.test_stream_rules import Harness

pytestmark = pytest.mark.formal

TUPLE = data.StructLayout({"key": signed(2), "rid": 1})
#: Enough for frames of two words on each side to come and to leave.
CYCLES = 22


class ShortMerger(WideMerger):
    """Banks as short as they can be: the control is the same, the proof is smaller."""

    BANK_DEPTH = 8

    def __init__(self):
        super().__init__(TUPLE, 2, out_depth=16)


def one_frame(m, rules, source, name):
    """Whatever comes is the beginning of one frame: ascending keys, full words but the last."""
    word = source.payload
    moves = source.valid & source.ready
    over = Signal(name=f"{name}_over")
    short = Signal(name=f"{name}_short")
    highest = Signal(signed(2), name=f"{name}_highest", init=-2)
    m.d.comb += Assume(~source.valid | ~over)
    m.d.comb += Assume(word.count <= 2)
    m.d.comb += Assume(word.end == (word.count == 0))
    m.d.comb += Assume(~source.valid | word.end | ~short)
    m.d.comb += Assume(~source.valid | word.end | (word.data[0].key >= highest))
    m.d.comb += Assume((word.count != 2) | (word.data[1].key >= word.data[0].key))
    with m.If(moves):
        m.d.sync += over.eq(word.end)
        m.d.sync += short.eq(word.count == 1)
        m.d.sync += highest.eq(Mux(word.count == 2, word.data[1].key, word.data[0].key))
    return moves


def counted(m, name, moves, word, magic):
    """How many tuples like `magic` have passed on a stream."""
    count = Signal(5, name=name)
    same = [
        (lane < word.count) & (Value.cast(word.data[lane]) == magic) for lane in range(2)
    ]
    with m.If(moves):
        m.d.sync += count.eq(count + same[0] + same[1])
    return count


def claims_of(dut, lost=0):
    def claims(m, rules):
        kept = Signal(3)
        magic = Signal(3)
        m.d.comb += magic.eq(Mux(rules.started, kept, AnySeq(3)))
        m.d.sync += kept.eq(magic)
        came = [
            counted(m, name, one_frame(m, rules, source, name), source.payload, magic)
            for name, source in (("main", dut.main), ("batch", dut.batch))
        ]
        word = dut.merged.payload
        leaves = dut.merged.valid & dut.merged.ready
        went = counted(m, "went", leaves, word, magic)
        highest = Signal(signed(2), init=-2)
        with m.If(leaves & ~word.end):
            m.d.comb += Assert(word.data[0].key >= highest)
            m.d.comb += Assert((word.count != 2) | (word.data[1].key >= word.data[0].key))
            m.d.sync += highest.eq(Mux(word.count == 2, word.data[1].key, word.data[0].key))
        with m.If(leaves & word.end):
            m.d.comb += Assert(went + lost == came[0] + came[1])
        m.d.comb += Assert(went <= came[0] + came[1])

    return claims


def test_a_frame_has_each_tuple_once_and_in_order(tmp_path):
    dut = ShortMerger()
    harness = Harness(dut, [dut.main, dut.batch], [dut.merged], claims_of(dut), police=False)
    check(harness, tmp_path, CYCLES)


def test_a_frame_ends_within_the_cycles_that_are_checked(tmp_path):
    """The same claim, made false: so the check above does reach the end of frames."""
    dut = ShortMerger()
    harness = Harness(dut, [dut.main, dut.batch], [dut.merged], claims_of(dut, 1), police=False)
    with pytest.raises(ProofFailed):
        check(harness, tmp_path, CYCLES)
