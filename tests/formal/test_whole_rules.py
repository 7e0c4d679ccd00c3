# amaranth: UnusedElaboratable=no
"""Whole cores with their memories, and whole engines, keep the stream contract: proofs."""

from dataclasses import replace

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.block_core import BlockCore
from hw.rtl.engine import Engine
from hw.rtl.engine_words import head_layout, head_words
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.rtl.sdram import ULX3S_CHIP
from hw.rtl.sdram_core import SdramCore
from hw.spec.commands import Opcode
from tests.formal.proofs import Assert, Inside, check, prove
from tests.formal.test_engine_rules import is_sound
from tests.formal.test_probing_rules import SMALL, counted, equal, in_queue, moves
from tests.formal.test_stream_rules import Harness, streams_of

pytestmark = pytest.mark.formal

BLOCKS = replace(SMALL, partitions=8, probers=2)
TWO_CORES = replace(BLOCKS, cores=2)
REST = 16
CHIP = replace(ULX3S_CHIP, row_bits=2, column_bits=4)

CORES = {
    "block_core": lambda: BlockCore(BLOCKS, slots=1),
    "far_block_core": lambda: BlockCore(BLOCKS, slots=1, hops=1),
    "sdram_core": lambda: SdramCore(SMALL, CHIP, 1e8, slots=1),
}
ENGINES = {
    "nested_loops": lambda: NestedLoopCore(TWO_CORES),
    "block_cores": lambda: BlockCore(TWO_CORES, slots=1),
}


@pytest.mark.parametrize("name", CORES)
def test_an_offered_payload_stays_until_it_is_taken(name, tmp_path):
    dut = CORES[name]()
    inputs, outputs = streams_of(dut)
    assert inputs
    assert outputs

    def claims(m, rules):
        if name == "far_block_core":  # it took the command before that it replies to
            m.d.comb += Assert(~(dut.core.taken & dut.replies.valid))

    prove(Harness(dut, inputs, outputs, claims), tmp_path, steps=3)


@pytest.mark.parametrize("name", ENGINES)
def test_an_offered_answer_stays_until_it_is_taken_or_all_is_forgotten(name, tmp_path):
    dut = Engine(TWO_CORES, ENGINES[name])

    def claims(m, rules):
        m.d.comb += dut.restart.eq(AnySeq(1))
        heard = Signal()  # the root has it a cycle later
        m.d.sync += heard.eq(dut.restart)
        rules.kept(dut.answers, "answers", unless=heard)

    harness = Harness(dut, [dut.words], [dut.answers], claims, police=False)
    prove(harness, tmp_path, steps=3)


class AnyCore(wiring.Component):
    """In the place of a core: takes and offers whatever it likes, whenever it likes."""

    def __init__(self):
        super().__init__(NestedLoopCore(TWO_CORES).signature)

    def elaborate(self, platform):
        m = Module()
        for port in (self.commands, self.tuples, self.probes):
            m.d.comb += port.ready.eq(AnySeq(1))
        for port in (self.records, self.replies):
            with m.If(~port.valid | port.ready):
                m.d.sync += port.valid.eq(AnySeq(1))
                m.d.sync += Value.cast(port.payload).eq(AnySeq(len(Value.cast(port.payload))))
        return m


class Heads:
    """Where a word is in its command: in the head, or in the frame behind it."""

    def __init__(self, m, dut):
        words, count = dut.words, head_words(TWO_CORES)
        self.at = Signal(range(count))  # of a head
        self.in_frame, self.has_frame = Signal(), Signal()
        self.first = ~self.in_frame & (self.at == 0)
        # Its first word says the stream, and whether the command has a frame.
        layout = head_layout(TWO_CORES)
        bits = Value.cast(words.payload.data)
        command = layout(Cat(bits, C(0, layout.size))[: layout.size]).command
        frame = (command.opcode == Opcode.INSERT) | (command.opcode == Opcode.PROBE)
        self.side = command.side
        with m.If(moves(words) & ~self.in_frame):
            last = self.at == count - 1
            m.d.sync += self.at.eq(Mux(last, 0, self.at + 1))
            m.d.sync += self.in_frame.eq(last & self.has_frame)
        with m.If(moves(words) & self.first):
            m.d.sync += self.has_frame.eq(frame)
        with m.If(moves(words) & self.in_frame & words.payload.end):
            m.d.sync += self.in_frame.eq(0)

    def are_watched(self, m, inside):
        at = Mux(self.in_frame, head_words(TWO_CORES), self.at)
        m.d.comb += Assert(inside.signal("at") == at)
        m.d.comb += Assert(self.first | (inside.signal("had_payload") == self.has_frame))
        m.d.comb += Assert(~self.in_frame | ((self.at == 0) & self.has_frame))


def test_an_engine_passes_on_each_word_once_and_ends_one_answer_for_each_command(tmp_path):
    """Whatever its cores do."""
    dut = Engine(TWO_CORES, AnyCore)
    inside = Inside(dut)

    def claims(m, rules):
        m.d.comb += dut.restart.eq(0)
        heads = Heads(m, dut)
        heads.are_watched(m, inside)
        words, root, combiner = dut.words, dut.distribution.i, dut.combiner
        m.d.comb += Assert(moves(root) == moves(words))
        m.d.comb += Assert(moves(combiner.sides) == (moves(words) & heads.first))
        same = Value.cast(root.payload) == Value.cast(words.payload)
        m.d.comb += Assert(~moves(words) | same)
        m.d.comb += Assert(~moves(combiner.sides) | (combiner.sides.payload == heads.side))
        begun = counted(m, "begun", moves(words) & heads.first)
        ended = counted(m, "ended", moves(dut.answers) & dut.answers.payload.last)
        held = dut.answers.valid & dut.answers.payload.last
        equal(m, begun, ended + held + in_queue(m, rules, combiner.queue))

    harness = Harness(dut, [dut.words], [dut.answers], claims, police=False)
    prove(harness, tmp_path, steps=3)


def test_an_engine_that_is_fed_and_drained_never_rests_long(tmp_path):
    """Bounded: no deadlock in the first cycles, with at most one comparison for each probe."""
    one_band = replace(TWO_CORES, bands=1)
    dut = Engine(one_band, lambda: NestedLoopCore(one_band))

    def claims(m, rules):
        m.d.comb += dut.restart.eq(0)
        for core in dut.cores:
            few = (core.scan <= 1) & (core.commands.payload.band_count == 1)
            m.d.comb += Assume(~core.commands.valid | few)
        m.d.comb += Assume(dut.words.valid & dut.answers.ready)
        m.d.comb += Assume(is_sound(dut.words.payload))
        idle = Signal(5)
        m.d.sync += idle.eq(Mux(moves(dut.words) | dut.answers.valid, 0, idle + 1))
        m.d.comb += Assert(idle < REST)

    harness = Harness(dut, [dut.words], [dut.answers], claims, police=False)
    check(harness, tmp_path, 28)
