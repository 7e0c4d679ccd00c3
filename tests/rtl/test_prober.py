"""Prober in Amaranth's simulator: intervals with target partitions against the main array."""

import numpy as np
import pytest
from amaranth.hdl import *

from hw.rtl.layouts import main_words, word_layout
from hw.rtl.memory import BlockMemory
from hw.rtl.prober import Prober
from hw.spec import NOT, JoinParams
from tests.rtl.helpers import run, stream_get, stream_put

MODES = pytest.mark.parametrize("dense", [0, 1], ids=["sparse", "dense"])
PARAMS = JoinParams(subwindow=64, partitions=4, lanes=4)  # partitions of 16 tuples, 4 words


class Bench(Elaboratable):
    """A prober and a block RAM for each of its ports."""

    def __init__(self, params, base=0):
        depth = base + main_words(params)
        self.memories = [BlockMemory(word_layout(params), depth) for _ in range(2)]
        self.prober = Prober(params, self.memories[0].address_bits)

    def elaborate(self, platform):
        from amaranth.lib import wiring

        m = Module()
        m.submodules.prober = self.prober
        for n, memory in enumerate(self.memories):
            m.submodules[f"memory_{n}"] = memory
            wiring.connect(m, self.prober.words[n], memory.read)
        return m


def target(keys, bound, params):
    """The bound's target partition, by the index array."""
    index = keys[:: params.partition_rows]
    return max(0, int(np.searchsorted(index, bound, "left")) - 1)


async def load(ctx, bench, keys, params, base=0, garbage=-9):
    """Write the main array, with garbage behind it."""
    padded = [*keys.tolist(), *[garbage] * (params.subwindow - len(keys))]
    for memory in bench.memories:
        port = memory.write.writes
        for first in range(0, params.subwindow, params.lanes):
            word = [{"key": key, "rid": 0} for key in padded[first : first + params.lanes]]
            address = base + first // params.lanes
            await stream_put(ctx, port, {"address": address, "word": word})
    ctx.set(bench.prober.rows, len(keys))
    ctx.set(bench.prober.base, base)


async def put_frame(ctx, prober, keys, bounds, params):
    for lo, hi in bounds:
        data = {
            side: {"bound": int(bound), "partition": target(keys, bound, params)}
            for side, bound in (("lo", lo), ("hi", hi))
        }
        await stream_put(ctx, prober.targets, {"data": data, "end": 0})
    await stream_put(ctx, prober.targets, {"end": 1})


async def get_frame(ctx, prober):
    records = []
    while not (token := await stream_get(ctx, prober.records)).end:
        records.append((token.data.start, token.data.end))
    return records


def records_of(keys, bounds, *, dense, params=PARAMS, base=0, negated=0, frames=1, garbage=-9):
    """The records of pairs of bounds, sent `frames` times; memory beyond the keys is garbage."""
    keys = np.asarray(keys)
    bench = Bench(params, base)
    prober = bench.prober
    answer = []

    async def put(ctx):
        await load(ctx, bench, keys, params, base, garbage)
        ctx.set(prober.dense, dense)
        ctx.set(prober.negated, negated)
        for _ in range(frames):
            await put_frame(ctx, prober, keys, bounds, params)

    async def get(ctx):
        for _ in range(frames):
            answer.append(await get_frame(ctx, prober))

    run(bench, put, get)
    assert answer == [answer[0]] * frames
    return answer[0]


def expected(keys, bounds):
    starts = [int(np.searchsorted(keys, lo, "left")) for lo, _ in bounds]
    ends = [int(np.searchsorted(keys, hi, "left")) for _, hi in bounds]
    return [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]


@MODES
def test_every_bound_finds_its_position(dense):
    keys = np.arange(0, 128, 2)
    bounds = [(b, b + 5) for b in range(-3, 133)]
    assert records_of(keys, bounds, dense=dense) == expected(keys, bounds)


@MODES
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 16, 17, 61])
def test_memory_beyond_the_rows_does_not_count(dense, rows):
    keys = np.arange(rows) * 3
    bounds = [(b, b + 4) for b in range(-2, 190, 5)]
    assert records_of(keys, bounds, dense=dense) == expected(keys, bounds)


@MODES
def test_equal_keys_across_partitions(dense):
    keys = np.array([1] * 20 + [7] * 30 + [9] * 14)
    bounds = [(0, 1), (1, 2), (1, 8), (7, 8), (7, 8), (8, 9), (9, 10), (10, 11)]
    assert records_of(keys, bounds, dense=dense) == expected(keys, bounds)


@MODES
def test_bounds_in_any_order_and_empty_intervals(dense):
    rng = np.random.default_rng(11)
    keys = np.sort(rng.integers(-40, 40, 57))
    bounds = [tuple(pair) for pair in rng.integers(-50, 50, (80, 2)).tolist()]
    assert records_of(keys, bounds, dense=dense) == expected(keys, bounds)


@MODES
def test_the_ends_of_the_keys(dense):
    smallest, largest = -(1 << 31), (1 << 31) - 1
    keys = np.array([smallest] * 3 + [-1, 0] + [largest] * 5)
    bounds = [(smallest, smallest + 1), (smallest, largest), (0, largest + 1)]
    bounds += [(largest, largest + 1), (largest + 1, largest + 1)]
    assert records_of(keys, bounds, dense=dense) == expected(keys, bounds)


@MODES
def test_frames_follow_each_other(dense):
    keys = np.arange(64)
    assert records_of(keys, [(3, 40)], dense=dense, frames=4) == [(3, 40)]
    assert records_of(keys, [], dense=dense, frames=3) == []


@MODES
def test_a_negated_predicate_labels_its_records(dense):
    assert records_of([1, 5, 5, 9], [(5, 6)], dense=dense, negated=1) == [(1, 3 | int(NOT))]


@MODES
def test_the_main_array_begins_at_its_base(dense):
    keys = np.arange(64) * 2
    bounds = [(b, b + 9) for b in range(0, 130, 7)]
    assert records_of(keys, bounds, dense=dense, base=16) == expected(keys, bounds)


@MODES
@pytest.mark.parametrize(
    "params",
    [
        JoinParams(subwindow=32, partitions=8, lanes=4),
        JoinParams(subwindow=32, partitions=1, lanes=1),
        JoinParams(subwindow=64, partitions=4, lanes=8, key_bits=64),
    ],
    ids=["one word a partition", "one lane, one partition", "eight lanes, 64 bits"],
)
def test_other_sizes(dense, params):
    scale = 1 << (params.key_bits - 9)
    keys = (np.arange(params.subwindow - 3) - 10) * scale
    bounds = [(b * scale // 2, b * scale // 2 + 1) for b in range(-30, 70, 3)]
    assert records_of(keys, bounds, dense=dense, params=params) == expected(keys, bounds)


def test_a_search_after_a_scan_meets_none_of_its_words():
    """A scan asks for whole partitions: what of them its last bound does not need must be gone."""
    keys = np.arange(0, 128, 2)
    bench, answer = Bench(PARAMS), []
    frames = [(1, [(1, 2)]), (0, [(60, 90), (127, 128)]), (1, [(33, 40)]), (0, [(2, 3)])]

    async def ask(ctx):
        await load(ctx, bench, keys, PARAMS)
        for dense, bounds in frames:
            ctx.set(bench.prober.dense, dense)
            await put_frame(ctx, bench.prober, keys, bounds, PARAMS)
            answer.append(await get_frame(ctx, bench.prober))

    run(bench, ask)
    assert answer == [expected(keys, bounds) for _, bounds in frames]
