# amaranth: UnusedElaboratable=no
"""Whole engines lose, double or invent nothing: by induction over what all of their parts hold."""

from dataclasses import replace

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.insertion_engine import InsertionEngine
from hw.rtl.join_core import JoinCore
from hw.rtl.layouts import token, wide_token
from hw.rtl.probing_engine import ProbingEngine
from hw.rtl.word_prober import WordProber
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import (
    BY_WORD,
    SMALL,
    counted,
    equal,
    in_buffer,
    in_far_collector,
    in_partitioner,
    in_queue,
    moves,
)
from tests.formal.test_stream_rules import Harness, inside_buffer, streams_of

pytestmark = pytest.mark.formal

BANDS, WAYS = 2, 2
#: Each way has a prober for lower bounds and one for upper ones.
TWO_WAYS = replace(BY_WORD, probers=2 * WAYS)


class Open:
    """An engine whose `parts` can be looked at, by name."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.built = super().elaborate(None)
        self.parts = self.built.submodules

    def elaborate(self, platform):
        return self.built


class OpenProbingEngine(Open, ProbingEngine):
    pass


class OpenInsertionEngine(Open, InsertionEngine):
    pass


def weight(word, datum, end):
    """What a wide token counts for: so much for each datum, so much for the end of a frame."""
    return datum * word.count + Mux(word.end, end, 0)


def passing(stream, datum, end):
    """The weight of what a stream moves now."""
    return Mux(moves(stream), weight(stream.payload, datum, end), 0)


def is_sound(word):
    """An end has no data; any other token has some, and not too many."""
    return (word.end == (word.count == 0)) & (word.count <= len(word.data))


def words_in(m, buffer, datum, end):
    """The weight of the wide tokens in a buffer."""
    in_buffer(m, buffer)
    total = 0
    for valid, bits in inside_buffer(buffer):
        word = buffer.o.payload.shape()(bits)
        m.d.comb += Assert(~valid | is_sound(word))
        total = total + Mux(valid, weight(word, datum, end), 0)
    return total


def singles_in(m, buffer):
    """What the keys in a buffer count for: as many as there are bands; and the ends of frames."""
    in_buffer(m, buffer)
    shape = buffer.o.payload.shape()
    return sum(
        Mux(valid, Mux(shape(bits).end, 1, BANDS), 0) for valid, bits in inside_buffer(buffer)
    )


def in_word_prober(m, rules, prober):
    """Bounds and ends in a prober: see its own proof."""
    found = prober.search.found
    m.d.comb += Assume(~found.valid | prober.notes.o.valid)
    inside = in_queue(m, rules, prober.notes) + prober.counted + in_queue(m, rules, prober.out)
    m.d.comb += Assert(inside + prober.left + prober.room == prober.ROOM)
    with m.If(rules.started):
        m.d.comb += Assert(prober.out.room & prober.notes.room)
        m.d.comb += Assert(prober.may_begin == (prober.room != 0))
    with m.Else():
        m.d.comb += Assert(~prober.counted & ~prober.may_begin)
    return inside


def way_rules(m, rules, parts, n, dealt, far):
    """The links of a way, each counted where it leaves a part: what came is inside or went on."""
    keys, unpacker, generator, partitioner, fork, join, packer = (
        parts[f"{name}_{n}"] for name in ("keys", "unpacker", "generator", "partitioner", "fork",
                                          "join", "packer")
    )
    word, offered = unpacker.i.payload, generator.probes.payload
    words = counted(m, f"words_{n}", passing(unpacker.i, BANDS, 1))
    equal(m, dealt, words + words_in(m, keys, BANDS, 1))
    # A word on offer has sent some of its keys ahead, a key some of its bands.
    m.d.comb += Assert((unpacker.lane == 0) | (unpacker.i.valid & (unpacker.lane < word.count)))
    single = counted(m, f"keys_{n}", Mux(moves(generator.probes), Mux(offered.end, 1, BANDS), 0))
    equal(m, single, words + BANDS * unpacker.lane)
    bounds = counted(m, f"bounds_{n}", moves(partitioner.bounds))
    held = in_buffer(m, generator.out) + sum(stage.valid for stage in generator.stages)
    if far:
        held = held + singles_in(m, generator.waiting)
    # A way has its registers from the first cycle on, in which it holds nothing.
    with m.If(rules.started):
        m.d.comb += Assert((generator.band_count == BANDS) & ~generator.explicit)
    with m.Else():
        m.d.comb += Assert(~keys.first_valid & (generator.band == 0))
        if far:
            m.d.comb += Assert(~generator.waiting.first_valid)
    equal(m, single + generator.band, bounds + held)
    targets = counted(m, f"targets_{n}", moves(fork.i))
    searched = in_partitioner(m, rules, partitioner)
    equal(m, bounds, targets + searched)
    joined = counted(m, f"joined_{n}", moves(join.o))
    m.d.comb += Assert((fork.served == 0) | fork.i.valid)
    for number, side in enumerate(("lo", "hi")):
        searched = in_word_prober(m, rules, parts[f"prober_{n}_{side}"])
        waiting = in_buffer(m, parts[f"targets_{n}_{side}"]) if far else 0
        equal(m, targets + fork.served[number], joined + searched + waiting)
    runs = counted(m, f"runs_{n}", moves(packer.i))
    equal(m, joined, runs + in_buffer(m, parts[f"joined_{n}"]))
    packed = counted(m, f"packed_{n}", passing(packer.o, 1, 1))
    equal(m, runs, packed + packer.held)
    if far:
        return packed
    answers = parts[f"runs_{n}"]
    answered = counted(m, f"answered_{n}", passing(answers.o, 1, 1))
    equal(m, packed, answered + words_in(m, answers, 1, 1))
    return answered


@pytest.mark.parametrize("far", [False, True])
def test_a_probing_engine_answers_each_key_once_for_each_band(tmp_path, monkeypatch, far):
    monkeypatch.setattr(WordProber, "ROOM", 2)
    dut = OpenProbingEngine(TWO_WAYS, 4, far=far)
    dealer, collector = dut.parts.dealer, dut.parts.collector

    def claims(m, rules):
        m.d.comb += [dut.band_count.eq(BANDS), dut.explicit.eq(0)]
        m.d.comb += Assume(~dut.probes.valid | is_sound(dut.probes.payload))
        # The end of a frame goes to every way, and all of its ends leave as one.
        came = counted(m, "came", passing(dut.probes, BANDS, WAYS))
        dealt = [counted(m, f"dealt_{n}", passing(o, BANDS, 1)) for n, o in enumerate(dealer.o)]
        m.d.comb += Assert((dealer.served == 0) | (dealer.i.valid & dealer.i.payload.end))
        equal(m, came + sum(dealer.served), sum(dealt))
        packed = [way_rules(m, rules, dut.parts, n, dealt[n], far) for n in range(WAYS)]
        if far:  # its queue has a proof of its own
            held, waits = in_far_collector(
                m, rules, collector, lambda word: weight(word, 1, WAYS)
            )
            went = counted(m, "went", passing(collector.out.i, 1, WAYS))
            held = held + Mux(collector.over[-1], WAYS, 0)
            equal(m, sum(packed) + sum(waits), went + held)
        else:
            went = counted(m, "went", passing(dut.records, 1, WAYS))
            m.d.comb += Assert(collector.turn < WAYS)
            equal(m, sum(packed), went + words_in(m, collector.out, 1, WAYS))

    prove(Harness(dut, *streams_of(dut), claims, police=False), tmp_path, steps=4)


class AnyMerger(wiring.Component):
    """In the place of a merger: takes and offers whatever it likes, whenever it likes."""

    def __init__(self, shape, lanes=None, **options):
        tokens = stream.Signature(wide_token(shape, lanes) if lanes else token(shape))
        super().__init__({"main": In(tokens), "batch": In(tokens), "merged": Out(tokens)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [self.main.ready.eq(AnySeq(1)), self.batch.ready.eq(AnySeq(1))]
        out = self.merged
        with m.If(~out.valid | out.ready):  # but an offer stays
            m.d.sync += out.valid.eq(AnySeq(1))
            m.d.sync += Value.cast(out.payload).eq(AnySeq(len(Value.cast(out.payload))))
        return m


def test_a_wide_insertion_engine_reads_what_it_was_told_and_writes_each_word(
    tmp_path, monkeypatch
):
    """Whatever the merger does: that it loses and doubles nothing is a proof of its own."""
    monkeypatch.setattr("hw.rtl.insertion_engine.WideMerger", AnyMerger)
    dut = OpenInsertionEngine(SMALL, 4, 2, "wide")
    readers = dut.parts.main_reader, dut.parts.batch_reader
    merger, writer = dut.parts.merger, dut.parts.writer

    def claims(m, rules):
        command = dut.commands.payload
        m.d.comb += Assume(command.stored <= SMALL.subwindow)
        m.d.comb += Assume(command.inserted <= SMALL.subwindow)
        rows = command.stored + command.inserted
        told = counted(m, "told", Mux(moves(dut.commands), rows + len(readers), 0))
        handed = counted(m, "handed", passing(merger.main, 1, 1) + passing(merger.batch, 1, 1))
        begun = counted(m, "begun", moves(writer.jobs))
        ended = counted(m, "ended", moves(writer.tuples) & writer.tuples.payload.end)
        # A command waits until both readers and the writer take their jobs in the same cycle.
        commands = counted(m, "commands", moves(dut.commands))
        waiting = Signal(6)
        with m.If(moves(dut.commands)):
            m.d.sync += waiting.eq(rows + len(readers))
        for reader in readers:
            m.d.comb += Assert(moves(reader.jobs) == moves(writer.jobs))
            m.d.comb += Assert(~reader.busy | (reader.left <= SMALL.subwindow))
            m.d.comb += Assert(~reader.busy | (reader.none == (reader.left == 0)))
            m.d.comb += Assert(~dut.begin | (reader.jobs.payload.count <= SMALL.subwindow))
        jobs = sum(reader.jobs.payload.count + 1 for reader in readers)
        m.d.comb += Assert(~dut.begin | (jobs == waiting))
        left = sum(Mux(reader.busy, reader.left + 1, 0) for reader in readers)
        equal(m, told, handed + left + Mux(dut.begin, waiting, 0))
        equal(m, commands, begun + dut.begin)
        equal(m, begun, ended + writer.busy)
        words = counted(m, "words", moves(writer.tuples) & ~writer.tuples.payload.end)
        equal(m, words, written(m, dut))

    prove(Harness(dut, *streams_of(dut), claims, police=False), tmp_path, steps=3)


def written(m, dut):
    """Words that the indexer took: each goes to memory once, in front of the next one."""
    indexer = dut.parts.indexer
    taken = counted(m, "taken", moves(indexer.merged.writes))
    went = counted(m, "went", moves(dut.new_main.writes))
    equal(m, went, taken + indexer.main_has)
    m.d.comb += Assert(~indexer.main_has | indexer.merged.writes.valid)
    return taken


def test_a_narrow_insertion_engine_reads_each_piece_and_writes_each_word(tmp_path, monkeypatch):
    """The same for a splitter, any mergers, and readers and writers that share memory."""
    monkeypatch.setattr("hw.rtl.insertion_engine.Merger", AnyMerger)
    dut = OpenInsertionEngine(SMALL, 4, 2, "narrow")
    pieces, share = dut.parts.splitter.pieces, dut.parts.write_share

    def claims(m, rules):
        jobs = []
        for n in range(SMALL.mergers):
            writer, merger = dut.parts[f"writer_{n}"], dut.parts[f"merger_{n}"]
            jobs.append(moves(writer.jobs))
            for side in ("main", "batch"):
                reader = dut.parts[f"{side}_reader_{n}"]
                m.d.comb += Assert(moves(reader.jobs) == jobs[-1])
                told = Mux(jobs[-1], pieces.payload[f"{side}_count"] + 1, 0)
                told = counted(m, f"told_{side}_{n}", told)
                handed = counted(m, f"handed_{side}_{n}", moves(getattr(merger, side)))
                left = Mux(reader.busy, reader.left + 1, 0) + in_buffer(m, reader.out)
                equal(m, told, handed + left)
        m.d.comb += Assert(sum(jobs) == moves(pieces))
        words = counted(m, "words", sum(moves(writer.writes) for writer in share.writers))
        equal(m, words, written(m, dut) + share.port.writes.valid)

    prove(Harness(dut, *streams_of(dut), claims, police=False), tmp_path, steps=3)


@pytest.mark.parametrize("far", [False, True])
def test_a_join_core_answers_each_command_once(tmp_path, far):
    dut = JoinCore(BY_WORD, searches=True, far=True) if far else JoinCore(SMALL)

    def claims(m, rules):
        came = counted(m, "came", moves(dut.commands))
        went = counted(m, "went", moves(dut.replies))
        equal(m, came, went + ~dut.commands.ready)
        m.d.comb += Assert(~(dut.commands.ready & dut.replies.valid))

    prove(Harness(dut, *streams_of(dut), claims, police=False), tmp_path, steps=3)
