# amaranth: UnusedElaboratable=no
"""ProbingEngine and its plumbing in Amaranth's simulator."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import token
from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.probing_engine import (
    Collector,
    Dealer,
    FarCollector,
    Packer,
    ProbingEngine,
    Unpacker,
)
from hw.rtl.rebounding_partitioner import ReboundingPartitioner
from hw.spec import NOT, Band, JoinParams, Predicate, Side, compare
from hw.spec.predicates import registers
from hw.spec.reference import probe_records
from sim.probing_tops import ProbingTop
from tests.rtl.helpers import run, stream_get, stream_put

MODES = pytest.mark.parametrize("dense", [0, 1], ids=["sparse", "dense"])
PARAMS = JoinParams(subwindow=64, partitions=8, lanes=2, probers=2)
#: A partition of one memory word: two ways of two probers each.
BY_WORD = JoinParams(subwindow=64, partitions=32, lanes=2, probers=4)
SIZES = pytest.mark.parametrize("params", [PARAMS, BY_WORD], ids=["scanned", "by word"])


def wide(values, lanes):
    """Values as wide tokens, the last of them short, and the end."""
    words = []
    for first in range(0, len(values), lanes):
        data = values[first : first + lanes]
        filled = data + [data[-1]] * (lanes - len(data))
        words.append({"data": filled, "count": len(data), "end": 0})
    return [*words, {"data": [], "count": 0, "end": 1}]


async def load(ctx, top, keys, params, array):
    """Write the main array and its index array as number `array`."""
    base = array * params.subwindow // params.lanes
    for first in range(0, len(keys), params.lanes):
        lanes = [{"key": int(key), "rid": 0} for key in keys[first : first + params.lanes]]
        word = lanes + [{"key": -1, "rid": 0}] * (params.lanes - len(lanes))
        await stream_put(
            ctx, top.write.writes, {"address": base + first // params.lanes, "word": word}
        )
    for partition, key in enumerate(keys[:: params.partition_rows]):
        entry = {"array": array, "partition": partition, "key": int(key)}
        ctx.set(top.entries.payload, entry)
        ctx.set(top.entries.valid, 1)
        await ctx.tick()
    ctx.set(top.entries.valid, 0)
    ctx.set(top.rows, len(keys))
    ctx.set(top.array, array)
    ctx.set(top.base, base)


async def set_predicate(ctx, top, predicate, side, key_bits):
    words = registers(predicate, side, key_bits)
    for number, word in enumerate(words):
        for name in ("lo", "hi", "lo_bound", "hi_bound"):
            ctx.set(top.bands[number][name], int(word[name]))
    ctx.set(top.band_count, len(words))
    ctx.set(top.negated, int(predicate.negated))


def records_of(keys, probes, predicate, side, *, dense, chunk=1, params=PARAMS,
               partitioner=PipelinedPartitioner, explicit=0, array=1, far=False):
    top = ProbingTop(params, partitioner, far=far)
    records = []

    async def put(ctx):
        await load(ctx, top, keys, params, array)
        ctx.set(top.dense, dense)
        ctx.set(top.explicit, explicit)
        ctx.set(top.chunk_words, chunk)
        if not explicit:
            await set_predicate(ctx, top, predicate, side, params.key_bits)
        await ctx.tick()
        for word in wide([int(key) for key in probes], params.lanes):
            await stream_put(ctx, top.probes, word)

    async def get(ctx):
        while not (word := await stream_get(ctx, top.records)).end:
            records.extend(
                (word.data[n].start, word.data[n].end) for n in range(word.count)
            )

    run(top, put, get, cycles=2_000)
    return records


def expected(keys, probes, predicate, side):
    label = int(NOT) if predicate.negated else 0
    stored = [int(key) for key in keys]
    return [
        (start, end | label)
        for probe in probes
        for start, end in probe_records(stored, int(probe), side, predicate)
    ]


@pytest.mark.parametrize(
    ("dense", "chunk", "partitioner", "params"),
    [(0, 1, PipelinedPartitioner, PARAMS), (1, 3, PipelinedPartitioner, PARAMS),
     (1, 2, ReboundingPartitioner, PARAMS), (0, 1, PipelinedPartitioner, BY_WORD),
     (0, 3, ReboundingPartitioner, BY_WORD)],
)
def test_records_come_in_batch_order(dense, chunk, partitioner, params):
    rng = np.random.default_rng(7)
    keys = np.sort(rng.integers(-99, 99, 57))
    probes = np.sort(rng.integers(-120, 120, 29))
    predicate = Predicate((Band(-10, 6),))
    answer = records_of(
        keys, probes, predicate, Side.RIGHT, dense=dense, chunk=chunk, partitioner=partitioner,
        params=params,
    )
    assert answer == expected(keys, probes, predicate, Side.RIGHT)


@pytest.mark.parametrize(
    ("params", "far"), [(PARAMS, False), (BY_WORD, False), (BY_WORD, True)],
    ids=["scanned", "by word", "far"],
)
def test_several_bands_answer_side_by_side(params, far):
    rng = np.random.default_rng(8)
    keys = np.sort(rng.integers(-99, 99, 64))
    probes = np.sort(rng.integers(-120, 120, 11))
    predicate = Predicate((Band(None, -50), Band(-3, 3), Band(20, 22), Band(70, None)))
    answer = records_of(
        keys, probes, predicate, Side.LEFT, dense=0, chunk=2, params=params, far=far
    )
    assert answer == expected(keys, probes, predicate, Side.LEFT)


@SIZES
def test_not_equal_is_the_label(params):
    keys, probes = np.arange(40) // 3, np.arange(-1, 16)
    predicate = compare("<>", 1)
    answer = records_of(keys, probes, predicate, Side.LEFT, dense=1, params=params)
    assert answer == expected(keys, probes, predicate, Side.LEFT)


@MODES
@SIZES
def test_explicit_intervals_need_no_order(dense, params):
    keys = np.arange(0, 120, 2)
    wanted = [(50, 60), (3, 9), (70, 40), (-5, 500), (11, 11), (12, 12), (0, 1)]
    flat = [bound for pair in wanted for bound in pair]
    answer = records_of(
        keys, flat, None, None, dense=dense, explicit=1, chunk=2, params=params
    )
    starts = [int(np.searchsorted(keys, lo, "left")) for lo, _ in wanted]
    ends = [int(np.searchsorted(keys, hi, "right")) for _, hi in wanted]
    assert answer == [(s, max(s, e)) for s, e in zip(starts, ends, strict=True)]


@pytest.mark.parametrize(("rows", "probes", "dense"), [(0, 5, 0), (9, 0, 1), (0, 5, 1)])
def test_nothing_stored_and_nothing_asked(rows, probes, dense):
    keys, batch = np.arange(rows), np.arange(probes)
    predicate = compare("=")
    answer = records_of(keys, batch, predicate, Side.LEFT, dense=dense)
    assert answer == expected(keys, batch, predicate, Side.LEFT)


def test_one_prober_for_both_bounds_is_refused():
    message = "^partitions of a memory word need 2 probers or more, not 1$"
    with pytest.raises(ValueError, match=message):
        ProbingEngine(JoinParams(subwindow=64, partitions=32, lanes=2, probers=1), 5)


def through(component, tokens, count):
    """Send tokens into `i`, take `count` from `o`."""
    taken = []

    async def put(ctx):
        for one in tokens:
            await stream_put(ctx, component.i, one)

    async def get(ctx):
        for _ in range(count):
            taken.append(await stream_get(ctx, component.o))

    run(component, put, get)
    return taken


def test_an_unpacker_takes_words_apart():
    tokens = through(Unpacker(8, 4), wide([1, 2, 3, 4, 5, 6], 4) + wide([7], 4), 9)
    assert [None if t.end else t.data for t in tokens] == [1, 2, 3, 4, 5, 6, None, 7, None]


def test_a_packer_fills_words():
    single = [{"data": n, "end": 0} for n in range(6)] + [{"end": 1}, {"end": 1}]
    words = through(Packer(8, 4), single, 4)
    assert [(w.count, w.end) for w in words] == [(4, 0), (2, 0), (0, 1), (0, 1)]
    assert [words[0].data[n] for n in range(4)] == [0, 1, 2, 3]
    assert [words[1].data[n] for n in range(2)] == [4, 5]


class DealtAndCollected(wiring.Component):
    """A dealer and, behind it, a collector."""

    i: In(stream.Signature(token(8)))
    o: Out(stream.Signature(token(8)))

    def __init__(self, kind, turn_words=2):
        super().__init__()
        self.kind = kind
        self.turn_words = turn_words

    def elaborate(self, platform):
        m = Module()
        m.submodules.dealer = dealer = Dealer(token(8), 3, 4)
        m.submodules.collector = collector = self.kind(token(8), 3, 4)
        for part in (dealer, collector):
            m.d.comb += part.turn_words.eq(self.turn_words)
        for n in range(3):
            wiring.connect(m, dealer.o[n], collector.i[n])
        wiring.connect(m, wiring.flipped(self.i), dealer.i)
        wiring.connect(m, collector.o, wiring.flipped(self.o))
        return m


def frame_of(words):
    return [{"data": n, "end": 0} for n in range(words)] + [{"end": 1}]


@pytest.mark.parametrize("words", [0, 1, 4, 5, 6, 12, 13])
def test_a_collector_puts_back_what_a_dealer_dealt(words):
    taken = through(DealtAndCollected(Collector), frame_of(words) * 2, 2 * words + 2)
    assert [None if t.end else t.data for t in taken] == [*range(words), None] * 2


@pytest.mark.parametrize("turn_words", [1, 2, 3])
@pytest.mark.parametrize("stall", [0.0, 0.4, 0.9])
def test_a_far_collector_does_so_whoever_waits(turn_words, stall):
    both = DealtAndCollected(FarCollector, turn_words)
    rng = random.Random(turn_words)
    frames = [words for words in (0, 1, 5, 0, 0, 40, 6, 12, 13) for _ in range(2)]
    taken = []

    def pause():
        return rng.randrange(1, 9) if rng.random() < stall else 0

    async def put(ctx):
        await ctx.tick().repeat(2)  # until all know how long a turn is
        for words in frames:
            for one in frame_of(words):
                await stream_put(ctx, both.i, one, pause())

    async def get(ctx):
        for _ in range(sum(frames) + len(frames)):
            if wait := pause():
                await ctx.tick().repeat(wait)
            taken.append(await stream_get(ctx, both.o))

    run(both, put, get)
    wanted = [one for words in frames for one in [*range(words), None]]
    assert [None if t.end else t.data for t in taken] == wanted


@pytest.mark.parametrize("turn_words", [1, 2])
def test_a_far_collector_takes_turns_of_inputs_that_never_rest(turn_words):
    collector = FarCollector(token(8), 3, 4)
    words = list(range(12 * turn_words))
    taken = []

    def put(number):
        async def process(ctx):
            ctx.set(collector.turn_words, turn_words)
            await ctx.tick().repeat(2)
            for word in [w for w in words if w // turn_words % 3 == number]:
                await stream_put(ctx, collector.i[number], {"data": word, "end": 0})
            await stream_put(ctx, collector.i[number], {"end": 1})

        return process

    async def get(ctx):
        while not (one := await stream_get(ctx, collector.o)).end:
            taken.append(one.data)

    run(collector, *map(put, range(3)), get)
    assert taken == words


def test_a_far_collector_gives_a_word_a_cycle():
    both = DealtAndCollected(FarCollector, 1)
    cycles = []

    async def put(ctx):
        await ctx.tick().repeat(2)
        for one in frame_of(60):
            await stream_put(ctx, both.i, one)

    async def get(ctx):
        ctx.set(both.o.ready, 1)
        for cycle in range(80):
            *_, valid, end = await ctx.tick().sample(both.o.valid, both.o.payload.end)
            if valid and not end:
                cycles.append(cycle)

    run(both, put, get)
    assert np.diff(cycles).tolist() == [1] * 59
