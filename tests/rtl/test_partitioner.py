"""Both partitioners in Amaranth's simulator."""

import numpy as np
import pytest

from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.rebounding_partitioner import ReboundingPartitioner
from hw.spec import JoinParams
from tests.rtl.helpers import run, stream_get, stream_put


class MixedPartitioner(PipelinedPartitioner):
    """Small, and still with levels of both kinds."""

    QUICK = 2


class FarPartitioner(MixedPartitioner):
    """The same with its memories all over a chip."""

    def __init__(self, params, arrays=1):
        super().__init__(params, arrays, far=True)


ALL = pytest.mark.parametrize("kind", [MixedPartitioner, FarPartitioner, ReboundingPartitioner])
PARAMS = JoinParams(subwindow=64, partitions=16, lanes=4)  # partitions of 4 tuples


def partitions_of(kind, index, rows, bounds, params=PARAMS, arrays=1, array=0, pause=0):
    """The pairs of bounds with their target partitions."""
    partitioner = kind(params, arrays)
    answer = []

    async def put(ctx):
        ctx.set(partitioner.array, array)
        ctx.set(partitioner.rows, rows)
        # Every other index array has other keys.
        for number in [array, *(set(range(arrays)) - {array})]:
            for partition, key in enumerate(index if number == array else reversed(index)):
                entry = {"array": number, "partition": partition, "key": int(key)}
                ctx.set(partitioner.entries.payload, entry)
                ctx.set(partitioner.entries.valid, 1)
                await ctx.tick()
        ctx.set(partitioner.entries.valid, 0)
        for lo, hi in bounds:
            token = {"data": {"lo": int(lo), "hi": int(hi)}, "end": 0}
            await stream_put(ctx, partitioner.bounds, token)
        await stream_put(ctx, partitioner.bounds, {"end": 1})

    async def get(ctx):
        await ctx.tick().repeat(20 * pause + 1)
        while not (token := await stream_get(ctx, partitioner.targets)).end:
            await ctx.tick().repeat(pause + 1)
            data = token.data
            answer.append((data.lo.bound, data.lo.partition, data.hi.bound, data.hi.partition))

    run(partitioner, put, get)
    return answer


def expected(index, rows, bounds, rows_in_partition=4):
    used = np.asarray(index)[: -(-rows // rows_in_partition)]

    def target(bound):
        return max(0, int(np.searchsorted(used, bound, "left")) - 1)

    return [(lo, target(lo), hi, target(hi)) for lo, hi in bounds]


@ALL
def test_every_bound_finds_the_last_partition_that_begins_before_it(kind):
    index = list(range(0, 160, 10))
    bounds = [(b, b + 13) for b in range(-5, 165)]
    assert partitions_of(kind, index, 64, bounds) == expected(index, 64, bounds)


@ALL
@pytest.mark.parametrize("pause", [1, 3])
def test_a_stalled_search_waits(kind, pause):
    index = list(range(0, 160, 10))
    bounds = [(b % 160, (b * 7) % 160) for b in range(0, 600, 13)]
    answer = partitions_of(kind, index, 64, bounds, pause=pause)
    assert answer == expected(index, 64, bounds)


@ALL
@pytest.mark.parametrize("rows", [0, 1, 4, 5, 23, 31])
def test_entries_beyond_the_rows_do_not_count(kind, rows):
    index = [0, 10, 20, 20, 20, 20, 50, 60, -9, -9, -9, -9, -9, -9, -9, -9]
    bounds = [(b, b + 7) for b in range(-3, 64, 3)]
    assert partitions_of(kind, index, rows, bounds) == expected(index, rows, bounds)


@ALL
@pytest.mark.parametrize("entries", [5, 9, 11, 13])
def test_every_partition_in_use_can_be_a_target(kind, entries):
    """Also where the last number has zeros, behind a digit at which a search left its way."""
    index = [10 * n if n < entries else -9 for n in range(16)]
    bounds = [(b, b + 13) for b in range(-5, 165, 5)]
    rows = 4 * entries
    assert partitions_of(kind, index, rows, bounds) == expected(index, rows, bounds)


@ALL
def test_equal_keys_across_partitions_give_the_lowest_of_them(kind):
    index = [7] * 16
    bounds = [(7, 8), (7, 8), (8, 9)]
    assert partitions_of(kind, index, 64, bounds) == [
        (7, 0, 8, 15), (7, 0, 8, 15), (8, 15, 9, 15),
    ]


@ALL
def test_bounds_in_any_order_and_at_the_ends_of_the_keys(kind):
    rng = np.random.default_rng(3)
    smallest, largest = -(1 << 31), (1 << 31) - 1
    index = sorted([smallest, *rng.integers(-50, 50, 13).tolist(), largest - 1, largest])
    bounds = [tuple(pair) for pair in rng.integers(-60, 60, (60, 2)).tolist()]
    bounds += [(smallest, largest + 1), (largest + 1, smallest), (largest, smallest + 1)]
    assert partitions_of(kind, index, 64, bounds) == expected(index, 64, bounds)


@ALL
def test_an_empty_frame_is_one_end_token(kind):
    assert partitions_of(kind, [0] * 16, 64, []) == []


@ALL
def test_one_partition_is_the_target_of_all(kind):
    params = JoinParams(subwindow=8, partitions=1, lanes=4)
    assert partitions_of(kind, [3], 8, [(1, 9)], params) == [(1, 0, 9, 0)]


@ALL
def test_index_arrays_lie_side_by_side(kind):
    index = list(range(16))
    bounds = [(b, b + 1) for b in range(18)]
    assert partitions_of(kind, index, 64, bounds, arrays=4, array=2) == expected(
        index, 64, bounds
    )


@ALL
def test_the_next_frame_may_search_another_array(kind):
    partitioner = kind(PARAMS, 2)
    indexes = [range(0, 160, 10), range(16)]
    found = []

    async def process(ctx):
        ctx.set(partitioner.rows, 64)
        ctx.set(partitioner.entries.valid, 1)
        for array, index in enumerate(indexes):
            for partition, key in enumerate(index):
                entry = {"array": array, "partition": partition, "key": key}
                ctx.set(partitioner.entries.payload, entry)
                await ctx.tick()
        ctx.set(partitioner.entries.valid, 0)
        # The second bound is in front of the key after the first one's partition, but only there.
        for array, bound in enumerate((35, 36)):
            ctx.set(partitioner.array, array)
            for token in ({"data": {"lo": bound, "hi": bound}, "end": 0}, {"end": 1}):
                await stream_put(ctx, partitioner.bounds, token)
                answer = await stream_get(ctx, partitioner.targets)
                found.append((answer.end, answer.data.lo.partition, answer.data.hi.partition))

    run(partitioner, process)
    assert found[::2] == [(0, 3, 3), (0, 15, 15)]
    assert [end for end, *_ in found[1::2]] == [1, 1]


@ALL
def test_sixty_four_bit_keys(kind):
    params = JoinParams(subwindow=64, partitions=16, lanes=4, key_bits=64)
    index = [key << 40 for key in range(-8, 8)]
    bounds = [(b << 39, (b << 39) + 1) for b in range(-20, 20)]
    assert partitions_of(kind, index, 64, bounds, params) == expected(index, 64, bounds)


def cycles_of(partitioner, index, bounds):
    """Cycles in which targets left, the first bound being offered in cycle 0."""
    taken = []

    async def put(ctx):
        ctx.set(partitioner.rows, 64)
        for partition, key in enumerate(index):
            ctx.set(partitioner.entries.payload, {"partition": partition, "key": int(key)})
            ctx.set(partitioner.entries.valid, 1)
            await ctx.tick()
        ctx.set(partitioner.entries.valid, 0)
        ctx.set(partitioner.bounds.valid, 1)
        for lo, hi in bounds:
            ctx.set(partitioner.bounds.payload, {"data": {"lo": lo, "hi": hi}, "end": 0})
            await ctx.tick().until(partitioner.bounds.ready)
        ctx.set(partitioner.bounds.valid, 0)

    async def get(ctx):
        ctx.set(partitioner.targets.ready, 1)
        await ctx.tick().repeat(len(index))
        for cycle in range(400):
            *_, valid = await ctx.tick().sample(partitioner.targets.valid)
            if valid:
                taken.append(cycle)

    run(partitioner, put, get)
    return taken


def test_the_pipeline_begins_a_search_in_every_cycle():
    rng = np.random.default_rng(5)
    bounds = [tuple(pair) for pair in rng.integers(0, 160, (50, 2)).tolist()]
    taken = cycles_of(MixedPartitioner(PARAMS), list(range(0, 160, 10)), bounds)
    assert taken == list(range(9, 59))  # 3 + 2 log2(16) cycles of latency, less 2 quick levels


def test_the_pipeline_of_a_far_one_is_longer_and_as_fast():
    rng = np.random.default_rng(5)
    bounds = [tuple(pair) for pair in rng.integers(0, 160, (90, 2)).tolist()]
    taken = cycles_of(FarPartitioner(PARAMS), list(range(0, 160, 10)), bounds)
    assert taken == list(range(11, 101))  # a cycle more for each slow level


def test_rebounding_stays_in_a_partition_at_one_bound_a_cycle():
    bounds = [(12, 13)] * 20
    taken = cycles_of(ReboundingPartitioner(PARAMS), list(range(0, 160, 10)), bounds)
    assert np.diff(taken).tolist() == [1] * 19


def test_rebounding_ahead_costs_the_logarithm_of_the_distance():
    index = list(range(0, 160, 10))
    cost = {}
    for ahead in (1, 3, 14):
        taken = cycles_of(
            ReboundingPartitioner(PARAMS), index, [(5, 5), (5 + 10 * ahead, 5 + 10 * ahead)]
        )
        cost[ahead] = int(np.diff(taken)[0])
    assert cost == {1: 8, 3: 12, 14: 16}
