"""The probing components keep the stream contract and lose, double or invent no token: proofs."""

from dataclasses import replace

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *

from hw.rtl.boundary_generator import BoundaryGenerator
from hw.rtl.join_core import JoinCore
from hw.rtl.layouts import token
from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.plumbing import BlockQueue
from hw.rtl.prober import Prober
from hw.rtl.probing_engine import (
    Collector,
    Dealer,
    FarCollector,
    Packer,
    ProbingEngine,
    Unpacker,
)
from hw.rtl.rebounding_partitioner import ReboundingPartitioner, ReboundingSearch
from hw.rtl.searcher import Searcher
from hw.rtl.seeker import Seeker
from hw.rtl.word_prober import WordProber
from hw.spec import JoinParams
from tests.formal.proofs import Assert, Assume, Inside, check, prove
from tests.formal.test_stream_rules import Harness, inside_buffer, streams_of

pytestmark = pytest.mark.formal

SMALL = JoinParams(
    subwindow=16, partitions=4, insert_buffer=8, mergers=2, lanes=2, probers=1, bands=2
)
BY_WORD = replace(SMALL, partitions=8, probers=2)
COUNT_BITS = 6


class ShortSeeker(Seeker):
    """A seeker with short queues: the control is the same, the proof is smaller."""

    QUEUE = 4
    SEARCHES = 2
    POSITIONS = 2


class MixedPartitioner(PipelinedPartitioner):
    """Small, and still with levels of both kinds."""

    QUICK = 1


class ShortWordProber(WordProber):
    """The same for a prober that needs no scan."""

    ROOM = 2


class ShortSearcher(Searcher):
    """The same for who looks into words."""

    DEPTH = 4


def moves(stream):
    return stream.valid & stream.ready


def in_buffer(m, buffer):
    """Tokens in a buffer; its second place is used after its first."""
    m.d.comb += Assert(buffer.first_valid | ~buffer.second_valid)
    return buffer.first_valid + buffer.second_valid


def counted(m, name, steps):
    """A counter that advances by `steps` a cycle."""
    counter = Signal(COUNT_BITS, name=name)
    m.d.sync += counter.eq(counter + steps)
    return counter


def equal(m, one, other):
    """Assert that two counts are the same, modulo the counters' range."""
    m.d.comb += Assert((one - other)[:COUNT_BITS] == 0)


KEEPERS = {
    "boundary_generator": lambda: BoundaryGenerator(SMALL),
    "far_boundary_generator": lambda: BoundaryGenerator(SMALL, far=True),
    "pipelined_partitioner": lambda: MixedPartitioner(SMALL),
    "far_partitioner": lambda: MixedPartitioner(SMALL, far=True),
    "rebounding_partitioner": lambda: ReboundingPartitioner(SMALL),
    "prober": lambda: Prober(SMALL, 4),
    "word_prober": lambda: WordProber(BY_WORD, 4),
    "unpacker": lambda: Unpacker(2, 2),
    "packer": lambda: Packer(2, 2),
    "dealer": lambda: Dealer(token(2), 3, 2),
    "collector": lambda: Collector(token(2), 3, 2),
    "far_collector": lambda: FarCollector(token(2), 3, 2),
    "probing_engine": lambda: ProbingEngine(SMALL, 4),
    "probing_engine_by_word": lambda: ProbingEngine(BY_WORD, 4),
    "probing_engine_far": lambda: ProbingEngine(BY_WORD, 4, far=True),
    "join_core": lambda: JoinCore(SMALL),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_an_offered_payload_stays_until_it_is_taken(name, tmp_path):
    dut = KEEPERS[name]()
    inputs, outputs = streams_of(dut)
    assert inputs
    assert outputs
    prove(Harness(dut, inputs, outputs, lambda m, rules: None), tmp_path, steps=3)


def test_a_far_core_offers_the_reply_to_a_command_that_it_took_before(tmp_path):
    dut = JoinCore(BY_WORD, searches=True, far=True)

    def claims(m, rules):
        m.d.comb += Assert(~(dut.taken & dut.replies.valid))

    prove(Harness(dut, *streams_of(dut), claims), tmp_path, steps=3)


@pytest.mark.parametrize("far", [False, True])
def test_a_boundary_generator_answers_each_key_once_for_each_band(tmp_path, far):
    dut = BoundaryGenerator(SMALL, far=far)

    def claims(m, rules):
        m.d.comb += [dut.band_count.eq(2), dut.explicit.eq(0)]
        inside = in_buffer(m, dut.out) + sum(stage.valid for stage in dut.stages)
        if far:
            in_buffer(m, dut.waiting)
            for valid, bits in inside_buffer(dut.waiting):
                end = dut.probes.payload.shape()(bits).end
                inside = inside + Mux(valid, Mux(end, 1, 2), 0)
        key = moves(dut.probes) & ~dut.probes.payload.end
        end = moves(dut.probes) & dut.probes.payload.end
        came = counted(m, "came", Mux(key, 2, end))
        went = counted(m, "went", moves(dut.bounds))
        equal(m, came + dut.band, went + inside)

    prove(Harness(dut, [dut.probes], [dut.bounds], claims), tmp_path)


def test_a_boundary_generator_answers_each_interval_once(tmp_path):
    """Of an explicit interval the first key waits for the second."""
    dut = BoundaryGenerator(SMALL)
    second = Inside(dut).signal("second")

    def claims(m, rules):
        m.d.comb += dut.explicit.eq(1)
        offered = dut.probes.payload
        m.d.comb += Assume(~(dut.probes.valid & offered.end & second))
        came = counted(m, "came", Mux(moves(dut.probes), 1 + offered.end, 0))
        went = counted(m, "went", Mux(moves(dut.bounds), 2, 0))
        inside = in_buffer(m, dut.out) + sum(stage.valid for stage in dut.stages)
        equal(m, came, went + 2 * inside + second)
        m.d.comb += Assert(dut.band == 0)

    prove(Harness(dut, [dut.probes], [dut.bounds], claims), tmp_path)


@pytest.mark.parametrize("far", [False, True])
def test_a_pipelined_partitioner_answers_each_interval_once(tmp_path, far):
    dut = MixedPartitioner(SMALL, far=far)

    def claims(m, rules):
        inside = in_partitioner(m, rules, dut)
        came = counted(m, "came", moves(dut.bounds))
        went = counted(m, "went", moves(dut.targets))
        equal(m, came, went + inside)

    prove(Harness(dut, [dut.entries, dut.bounds], [dut.targets], claims), tmp_path)


def test_a_rebounding_search_answers_each_bound_once(tmp_path):
    dut = ReboundingSearch(SMALL)

    def claims(m, rules):
        m.d.comb += dut.key.eq(AnySeq(len(dut.key)))  # of whatever entry it wants to see
        inside = in_buffer(m, dut.waiting) + in_buffer(m, dut.out)
        came = counted(m, "came", moves(dut.bounds))
        went = counted(m, "went", moves(dut.targets))
        equal(m, came, went + inside)

    prove(Harness(dut, [dut.bounds], [dut.targets], claims), tmp_path)


def in_partitioner(m, rules, dut):
    """Searches under way and targets that wait; there is room for all of them."""
    inside = in_queue(m, rules, dut.out) + sum(dut.valid[n] for n in range(len(dut.valid)))
    m.d.comb += Assert(inside + dut.left + dut.room == dut.most)
    with m.If(rules.started):
        m.d.comb += Assert(dut.out.room)
    with m.Else():
        m.d.comb += Assert(dut.valid == 0)
    return inside


def in_queue(m, rules, queue, select=lambda state: C(1), shape=None):
    """Tokens of a short queue, or of one in block RAM, that `select` chooses, counted place by
    place.
    """
    depth = queue.depth
    level = queue.level
    m.d.comb += Assert(level <= depth)
    m.d.comb += Assert((queue.write_at - queue.read_at)[: (depth - 1).bit_length()] == level[:-1])
    m.d.comb += Assert(queue.more == (level != 0))
    m.d.comb += Assert(~queue.room | (level < depth))
    count = queue.o.valid & select(queue.o.payload)
    if isinstance(queue, BlockQueue):
        count = count + queue.fetched
    for place in range(depth):
        used = Signal(name=f"used_{id(queue)}_{place}")
        offset = (place - queue.read_at)[: (depth - 1).bit_length()]
        m.d.comb += used.eq(offset < level)
        chosen = select(shape(queue.looked_at[place].data)) if shape else C(1)
        count = count + (used & chosen)
    return count


@pytest.mark.parametrize("dense", [0, 1], ids=["sparse", "dense"])
def test_a_seeker_answers_each_bound_once(dense, tmp_path):
    dut = ShortSeeker(SMALL, 4)
    for queue in (dut.bounds, dut.again):
        # The proof looks at every place of the memory through ports of its own.
        queue.looked_at = [queue.storage.read_port(domain="comb") for _ in range(queue.depth)]

    def claims(m, rules):
        m.d.comb += dut.dense.eq(dense)
        m.d.comb += dut.rows.eq(16)
        for queue in (dut.bounds, dut.again):
            for place, port in enumerate(queue.looked_at):
                m.d.comb += port.addr.eq(place)

        def inside(select):
            """Bounds on their way from the choice to the end of the counting stages."""
            return (
                in_queue(m, rules, dut.bounds, select, dut.state)
                + (dut.bound_valid & select(dut.bound))
                + sum(dut.counting[n] & select(dut.under_way[n]) for n in range(4))
                + in_queue(m, rules, dut.again, select, dut.state)
            )

        # Searches are counted, and their number keeps `again` from running over.
        if dense:
            m.d.comb += Assert(dut.searches == 0)
            m.d.comb += Assert(inside(lambda state: ~state.end & ~state.final) == 0)
        else:
            m.d.comb += Assert(inside(lambda state: C(1)) == dut.searches)
        m.d.comb += Assert(dut.searches <= dut.SEARCHES)
        # So does the room for positions with `out`.
        spent = in_queue(m, rules, dut.out)
        for n in range(3):
            state = dut.under_way[n]
            spent = spent + (dut.counting[n] & (state.end | state.final))
        spent = spent + (dut.bound_valid & (dut.bound.end | dut.bound.final)) + dut.leaves
        m.d.comb += Assert(spent + dut.room == dut.POSITIONS)
        m.d.comb += Assert(dut.counting[3] == dut.leaves + dut.returns)
        with m.If(rules.started):
            m.d.comb += Assert(dut.out.room)
            if not dense:
                m.d.comb += Assert(dut.again.room)
        with m.Else():
            m.d.comb += Assert(dut.counting == 0)

        came = counted(m, "came", moves(dut.targets))
        went = counted(m, "went", moves(dut.positions))
        held = in_buffer(m, dut.waiting) + dut.head_valid + in_queue(m, rules, dut.out)
        equal(m, came, went + held + inside(lambda state: C(1)))

    inputs, outputs = [dut.targets, dut.words.words], [dut.words.requests, dut.positions]
    prove(Harness(dut, inputs, outputs, claims), tmp_path, steps=4)


def test_a_word_prober_answers_each_bound_once(tmp_path):
    dut = ShortWordProber(BY_WORD, 4)

    def claims(m, rules):
        found = dut.search.found
        noted = in_queue(m, rules, dut.notes)
        # Who searches gives an answer for each request, and takes its time: the note is there.
        m.d.comb += Assume(~found.valid | dut.notes.o.valid)
        inside = noted + dut.counted + in_queue(m, rules, dut.out)
        # So the room that is left keeps both queues from running over.
        m.d.comb += Assert(inside + dut.left + dut.room == dut.ROOM)
        with m.If(rules.started):
            m.d.comb += Assert(dut.out.room & dut.notes.room)
            m.d.comb += Assert(dut.may_begin == (dut.room != 0))
        with m.Else():
            m.d.comb += Assert(~dut.counted & ~dut.may_begin)
        came = counted(m, "came", moves(dut.targets))
        asked = counted(m, "asked", moves(dut.search.requests))
        went = counted(m, "went", moves(dut.positions))
        equal(m, came, went + inside)
        equal(m, came, asked + in_buffer(m, dut.asking))

    inputs, outputs = [dut.targets], [dut.search.requests, dut.positions]
    prove(Harness(dut, inputs, outputs, claims), tmp_path, steps=4)


def test_a_searcher_answers_each_request_once(tmp_path):
    dut = ShortSearcher(BY_WORD, 4)

    def claims(m, rules):
        request, words = dut.read.requests, dut.read.words
        came = counted(m, "came", moves(dut.search.requests))
        asked = counted(m, "asked", moves(request))
        equal(m, came, asked)
        # Memory gives what it was asked for, and no more.
        due = counted(m, "due", moves(request) - moves(words))
        m.d.comb += Assume(~words.valid | (due != 0))
        waiting = in_queue(m, rules, dut.bounds)
        equal(m, waiting, due)
        stages = dut.met + dut.comparator.compared + dut.search.found.valid
        went = counted(m, "went", dut.search.found.valid)
        equal(m, came, went + waiting + stages)
        # Who asks has room for the answers, and so the queue has room for the bounds.
        under_way = Signal(3)
        m.d.comb += under_way.eq(waiting + stages)
        # After a reset its own queues take a cycle too.
        has_room = rules.started & (under_way < dut.DEPTH - 2)
        m.d.comb += Assume(~dut.search.requests.valid | has_room)
        m.d.comb += Assert(under_way <= dut.DEPTH - 2)
        with m.If(rules.started):
            m.d.comb += Assert(dut.bounds.room)

    inputs, outputs = [dut.search.requests, dut.read.words], [dut.read.requests]
    prove(Harness(dut, inputs, outputs, claims), tmp_path, steps=4)


def test_an_unpacker_gives_every_lane_once(tmp_path):
    dut = Unpacker(2, 4)

    def claims(m, rules):
        word = dut.i.payload
        m.d.comb += Assume(~dut.i.valid | (word.end == (word.count == 0)))
        m.d.comb += Assume(word.count <= 4)
        came = counted(m, "came", Mux(moves(dut.i), word.count + word.end, 0))
        went = counted(m, "went", moves(dut.o))
        equal(m, went, came + dut.lane)
        m.d.comb += Assert((dut.lane == 0) | (dut.i.valid & (dut.lane < word.count)))

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_a_packer_gives_every_token_once(tmp_path):
    dut = Packer(2, 4)

    def claims(m, rules):
        came = counted(m, "came", moves(dut.i))
        word = dut.o.payload
        went = counted(m, "went", Mux(moves(dut.o), word.count + word.end, 0))
        equal(m, came, went + dut.held)

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_a_dealer_deals_every_word_once_and_the_end_to_all(tmp_path):
    dut = Dealer(token(2), 3, 2)

    def claims(m, rules):
        m.d.comb += dut.turn_words.eq(2)
        m.d.comb += Assert(dut.turn < 3)
        came = counted(m, "came", moves(dut.i) & ~dut.i.payload.end)
        ended = counted(m, "ended", moves(dut.i) & dut.i.payload.end)
        went = counted(m, "went", sum(moves(o) & ~o.payload.end for o in dut.o))
        equal(m, came, went)
        m.d.comb += Assert((dut.served == 0) | (dut.i.valid & dut.i.payload.end))
        for n, o in enumerate(dut.o):
            out_ended = counted(m, f"out_ended_{n}", moves(o) & o.payload.end)
            equal(m, out_ended, ended + dut.served[n])

    prove(Harness(dut, [dut.i], list(dut.o), claims), tmp_path)


def test_a_collector_takes_every_word_once_and_one_end_of_each(tmp_path):
    dut = Collector(token(2), 3, 2)

    def claims(m, rules):
        m.d.comb += dut.turn_words.eq(2)
        m.d.comb += Assert(dut.turn < 3)
        in_buffer(m, dut.out)
        places = ((dut.out.first_valid, dut.out.first), (dut.out.second_valid, dut.out.second))
        words = sum(valid & ~token(2)(bits).end for valid, bits in places)
        ends = sum(valid & token(2)(bits).end for valid, bits in places)
        came = counted(m, "came", sum(moves(i) & ~i.payload.end for i in dut.i))
        went = counted(m, "went", moves(dut.o) & ~dut.o.payload.end)
        out_ended = counted(m, "out_ended", moves(dut.o) & dut.o.payload.end)
        equal(m, came, went + words)
        for n, i in enumerate(dut.i):
            equal(m, counted(m, f"ended_{n}", moves(i) & i.payload.end), out_ended + ends)

    prove(Harness(dut, list(dut.i), [dut.o], claims), tmp_path)


def in_far_collector(m, rules, dut, weigh):
    """What is on its way from a far collector's inputs to its queue, each word as `weigh` says;
    and the bit of each input that the ends have not come to, though they are on their way.
    """
    turn, over, sends = dut.turn, dut.over, dut.sends
    # An end takes the turn from each input, and gives it to the first.
    m.d.comb += Assert(turn.any() | over[:-1].any())
    for n in range(dut.count - 1):
        m.d.comb += Assert(~over[n] | (turn[n + 1 :] == 0))
    for one in (turn, over, sends):
        m.d.comb += Assert((one & (one - 1))[: len(one)] == 0)
    m.d.comb += Assert(~(sends.any() & over[-1]))
    waits = [over[n:].any() for n in range(dut.count)]
    words = 0
    for n, i in enumerate(dut.i):
        m.d.comb += Assert(~(dut.ended[n] | waits[n]) | (i.valid & i.payload.end))
        word = i.payload.shape()(dut.sent[n])
        m.d.comb += Assert(Mux(sends[n], ~word.end, dut.sent[n] == 0))
        words = words + Mux(sends[n], weigh(word), 0)
    # Whatever is under way finds room, and whatever may still be sent.
    in_queue(m, rules, dut.out)
    under_way = Signal(8)
    m.d.comb += under_way.eq(dut.out.level + dut.come + sends.any() + over[-1])
    m.d.comb += Assert(under_way < dut.depth)
    for n, room in enumerate(dut.room):
        m.d.comb += Assert(~room | (under_way <= dut.depth - 2 - n))
    m.d.comb += Assert(~dut.come | dut.out.room)
    return words + Mux(dut.come, weigh(dut.word), 0), waits


def test_a_far_collector_takes_every_word_once_and_one_end_of_each(tmp_path):
    dut = FarCollector(token(2), 3, 2)

    def claims(m, rules):
        m.d.comb += dut.turn_words.eq(2)
        inside, waits = in_far_collector(m, rules, dut, lambda word: ~word.end)
        queue = dut.out.i
        came = counted(m, "came", sum(moves(i) & ~i.payload.end for i in dut.i))
        went = counted(m, "went", moves(queue) & ~queue.payload.end)
        equal(m, came, went + inside)
        ends = counted(m, "ends", moves(queue) & queue.payload.end)
        ends = ends + (dut.come & dut.word.end) + dut.over[-1]
        for n, i in enumerate(dut.i):
            ended = counted(m, f"ended_{n}", moves(i) & i.payload.end)
            equal(m, ended + waits[n], ends)

    prove(Harness(dut, list(dut.i), [dut.o], claims), tmp_path, steps=3)


def test_a_seeker_that_is_fed_and_drained_never_rests_long(tmp_path):
    """Bounded: no deadlock in the first cycles, with memory that answers in the next cycle."""
    dut = ShortSeeker(SMALL, 4)

    def claims(m, rules):
        m.d.comb += dut.rows.eq(16)
        m.d.comb += Assume(~dut.targets.payload.end)
        owed = Signal(8)
        asked = moves(dut.words.requests)
        m.d.sync += owed.eq(
            owed + Mux(asked, dut.words.requests.payload.count, 0) - moves(dut.words.words)
        )
        m.d.comb += Assume(dut.words.words.valid == (owed != 0))
        m.d.comb += Assume(dut.words.requests.ready)
        m.d.comb += Assume(dut.positions.ready)
        m.d.comb += Assume(dut.targets.valid)
        idle = Signal(6)
        m.d.sync += idle.eq(Mux(dut.positions.valid, 0, idle + 1))
        m.d.comb += Assert(idle <= 26)

    inputs, outputs = [dut.targets, dut.words.words], [dut.words.requests, dut.positions]
    check(Harness(dut, inputs, outputs, claims), tmp_path, 28)
