"""Every component keeps the stream contract and loses, doubles or invents no token: proofs."""

import pytest
from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In

from hw.rtl.layouts import order_of, token
from hw.rtl.merger import Merger
from hw.rtl.plumbing import Buffer, Fork
from tests.formal.proofs import ProofFailed, Rules, check, prove

pytestmark = pytest.mark.formal

#: Narrow, because a proof's cost grows with the width while the control it judges does not.
TUPLE = data.StructLayout({"key": signed(3), "rid": 2})


class Harness(wiring.Component):
    """A component whose stream inputs are free but keep the contract.

    `free` names the payload, valid and ready signals that become inputs of the harness.
    """

    def __init__(self, dut, inputs, outputs, claims):
        self.dut, self.inputs, self.outputs, self.claims = dut, inputs, outputs, claims
        members = {}
        for n, stream in enumerate(inputs):
            members[f"i{n}_payload"] = In(len(Value.cast(stream.payload)))
            members[f"i{n}_valid"] = In(1)
        for n, _ in enumerate(outputs):
            members[f"o{n}_ready"] = In(1)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        rules = Rules(m)
        for n, stream in enumerate(self.inputs):
            m.d.comb += Value.cast(stream.payload).eq(getattr(self, f"i{n}_payload"))
            m.d.comb += stream.valid.eq(getattr(self, f"i{n}_valid"))
            rules.kept(stream, f"i{n}", Assume)
        for n, stream in enumerate(self.outputs):
            m.d.comb += stream.ready.eq(getattr(self, f"o{n}_ready"))
            rules.kept(stream, f"o{n}")
        self.claims(m, rules)
        return m


def inside_buffer(buffer):
    """The two places of a buffer."""
    return [(buffer.first_valid, buffer.first), (buffer.second_valid, buffer.second)]


def test_a_buffer_keeps_what_it_holds(tmp_path):
    dut = Buffer(4)

    def claims(m, rules):
        m.d.comb += Assert(dut.first_valid | ~dut.second_valid)
        rules.conserved("token", [dut.i], [dut.o], inside_buffer(dut), 4)

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_a_fork_gives_each_output_every_token(tmp_path):
    dut = Fork(3, 2)

    def claims(m, rules):
        # Outputs that already have the offered token are one ahead.
        for n, o in enumerate(dut.o):
            ahead = Signal(name=f"ahead{n}")
            gone = Signal(name=f"gone{n}")
            m.d.comb += gone.eq(ahead | (o.valid & o.ready))
            m.d.sync += ahead.eq(gone & ~dut.i.ready)
            m.d.comb += Assert(ahead == dut.served[n])
            m.d.comb += Assert(~dut.i.ready | ~dut.i.valid | gone)
            m.d.comb += Assert(o.valid == (dut.i.valid & ~ahead))

    prove(Harness(dut, [dut.i], list(dut.o), claims), tmp_path)


def inside_merger(dut):
    """Every place of a merger that can hold a token."""
    heads = [
        (dut.main_valid, Value.cast(dut.main_head)),
        (dut.batch_valid, Value.cast(dut.batch_head)),
    ]
    buffers = (dut.main_next, dut.batch_next, dut.out)
    return heads + [place for buffer in buffers for place in inside_buffer(buffer)]


def test_a_merger_loses_and_doubles_no_tuple(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        for buffer in (dut.main_next, dut.batch_next, dut.out):
            m.d.comb += Assert(buffer.first_valid | ~buffer.second_valid)
        rules.conserved(
            "tuple", [dut.main, dut.batch], [dut.merged], inside_merger(dut), token(TUPLE),
            also=lambda magic: ~magic.end,
        )
        merger_invariants(m, dut)

    prove(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path)


def merger_invariants(m, dut):
    """Both heads go only when both are ends; else the smaller goes, `main` first."""
    main, batch = dut.main_head, dut.batch_head
    both = dut.main_valid & dut.batch_valid
    with m.If(both):
        main_first = order_of(main.data.key, main.end) <= order_of(batch.data.key, batch.end)
        ends = main.end & batch.end
        m.d.comb += Assert(dut.take_main == (main_first | ends))
        m.d.comb += Assert(dut.take_batch == (~main_first | ends))


def ascending(m, stream, name, statement):
    """The tuples that pass ascend by key within a frame."""
    last = Signal.like(stream.payload.data.key, name=f"{name}_last")
    inside = Signal(name=f"{name}_inside")
    with m.If(stream.valid & stream.ready):
        m.d.sync += last.eq(stream.payload.data.key)
        m.d.sync += inside.eq(~stream.payload.end)
    with m.If(stream.valid & inside & ~stream.payload.end):
        m.d.comb += statement(stream.payload.data.key >= last)


def test_merged_tuples_ascend(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        ascending(m, dut.main, "main", Assume)
        ascending(m, dut.batch, "batch", Assume)
        ascending(m, dut.merged, "merged", Assert)

    check(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path, 12)


def test_a_merger_that_is_fed_and_drained_never_rests_long(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        idle = Signal(range(16))
        flowing = dut.main.valid & dut.batch.valid & dut.merged.ready
        with m.If(~flowing | dut.merged.valid):
            m.d.sync += idle.eq(0)
        with m.Else():
            m.d.sync += idle.eq(idle + 1)
        m.d.comb += Assert(idle <= 4)

    check(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path, 14)


def test_a_proof_can_fail(tmp_path):
    """A false claim is refuted, so that the proofs above mean something."""
    dut = Buffer(4)

    def claims(m, rules):
        m.d.comb += Assert(~dut.second_valid)

    with pytest.raises(ProofFailed):
        prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)
