"""BoundaryGenerator in Amaranth's simulator."""

import numpy as np
import pytest

from hw.rtl.boundary_generator import BoundaryGenerator, register_layout
from hw.spec import Band, JoinParams, Predicate, Side, compare, key_dtype
from hw.spec.predicates import REGISTER, registers
from hw.spec.tuples import key_limits
from tests.rtl.helpers import run, stream_get, stream_put

FAR = pytest.mark.parametrize("far", [False, True])


def bounds_of(predicate, side, keys, key_bits=32, pause=0, far=False):
    """What the gateware makes of those probe keys: (lo, hi + 1) for each band."""
    generator = BoundaryGenerator(JoinParams(key_bits=key_bits), far=far)
    words = registers(predicate, side, key_bits)
    answer = []

    async def put(ctx):
        for number, word in enumerate(words):
            for name in ("lo", "hi", "lo_bound", "hi_bound"):
                ctx.set(generator.bands[number][name], int(word[name]))
        ctx.set(generator.band_count, len(words))
        for key in keys:
            await stream_put(ctx, generator.probes, {"data": int(key), "end": 0})
        await stream_put(ctx, generator.probes, {"end": 1})

    async def get(ctx):
        await ctx.tick().repeat(10 * pause + 1)
        while not (token := await stream_get(ctx, generator.bounds)).end:
            await ctx.tick().repeat(pause + 1)
            answer.append((token.data.lo, token.data.hi))

    run(generator, put, get)
    return answer


def expected(predicate, side, keys, key_bits=32):
    """The spec's closed intervals as bounds; None for an empty one."""
    wanted = predicate.intervals(side, np.array(keys, key_dtype(key_bits))).reshape(-1)
    pairs = [(int(lo), int(hi)) for lo, hi in wanted]
    return [(lo, hi + 1) if lo <= hi else None for lo, hi in pairs]


def same(answer, wanted):
    """Equal bounds; an empty interval may lie anywhere."""
    return len(answer) == len(wanted) and all(
        got == want if want else got[0] >= got[1]
        for got, want in zip(answer, wanted, strict=True)
    )


def test_a_register_word_begins_with_the_layouts_bits():
    layout = register_layout()
    assert {name: field.offset for name, field in layout} == {
        name: REGISTER.fields[name][1] * 8 for name in ("lo", "hi", "lo_bound", "hi_bound")
    }


@pytest.mark.parametrize("key_bits", [32, 64])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
def test_every_operator_gives_the_specs_interval(operator, side, key_bits):
    smallest, largest = key_limits(key_bits)
    keys = [smallest, smallest + 2, -1, 0, 5, largest - 2, largest]
    predicate = compare(operator, 2)
    answer = bounds_of(predicate, side, keys, key_bits)
    assert same(answer, expected(predicate, side, keys, key_bits))


@FAR
@pytest.mark.parametrize("side", Side)
def test_four_bands_come_in_the_order_of_the_predicate(side, far):
    bands = (Band(None, -100), Band(-20, -10), Band(0, 0), Band(30, None))
    keys = [-(1 << 31), -5, 0, 7, (1 << 31) - 1]
    answer = bounds_of(Predicate(bands), side, keys, far=far)
    assert len(answer) == 20
    assert same(answer, expected(Predicate(bands), side, keys))


@FAR
@pytest.mark.parametrize("pause", [1, 3])
def test_a_stalled_generator_waits(pause, far):
    predicate = Predicate((Band(-20, -10), Band(5, 6)))
    keys = list(range(40))
    answer = bounds_of(predicate, Side.LEFT, keys, pause=pause, far=far)
    assert same(answer, expected(predicate, Side.LEFT, keys))


def test_a_bound_beyond_every_key_saturates_and_stays_in_order():
    largest = (1 << 31) - 1
    predicate = Predicate((Band(10, 20),))
    answer = bounds_of(predicate, Side.LEFT, [largest - 30, largest - 15, largest - 5])
    assert answer == [
        (largest - 20, largest - 9), (largest - 5, largest + 1), (largest + 1, largest + 1),
    ]
    answer = bounds_of(predicate, Side.RIGHT, [-(1 << 31) + 5, -(1 << 31) + 15])
    assert answer == [(-(1 << 31), -(1 << 31)), (-(1 << 31), -(1 << 31) + 6)]


def test_an_offset_wider_than_every_difference_matches_all_or_nothing():
    least, most = -(1 << 31), 1 << 31
    assert bounds_of(Predicate((Band(-(1 << 40), 1 << 40),)), Side.LEFT, [7]) == [(least, most)]
    assert bounds_of(Predicate((Band(1 << 40, None),)), Side.LEFT, [7]) == [(most, most)]
    assert bounds_of(Predicate((Band(None, -(1 << 40)),)), Side.LEFT, [7]) == [(least, least)]


@FAR
def test_explicit_intervals_pass_with_their_upper_end_made_exclusive(far):
    generator = BoundaryGenerator(JoinParams(), far=far)
    answer = []

    async def put(ctx):
        ctx.set(generator.explicit, 1)
        ctx.set(generator.bands[0], {"lo": 4, "hi": 5, "lo_bound": 1, "hi_bound": 2})
        for key in (3, 9, 5, -5, -(1 << 31), (1 << 31) - 1):
            await stream_put(ctx, generator.probes, {"data": key, "end": 0})
        await stream_put(ctx, generator.probes, {"end": 1})

    async def get(ctx):
        while not (token := await stream_get(ctx, generator.bounds)).end:
            answer.append((token.data.lo, token.data.hi))

    run(generator, put, get)
    assert answer == [(3, 10), (5, -4), (-(1 << 31), 1 << 31)]


@pytest.mark.parametrize(("far", "latency_cycles"), [(False, 5), (True, 7)])
def test_one_interval_a_cycle_and_a_few_cycles_of_latency(far, latency_cycles):
    generator = BoundaryGenerator(JoinParams(), far=far)
    taken = []

    async def put(ctx):
        ctx.set(generator.band_count, 1)
        ctx.set(generator.probes.valid, 1)
        for key in range(20):
            ctx.set(generator.probes.payload.data, key)
            await ctx.tick().until(generator.probes.ready)
        ctx.set(generator.probes.valid, 0)

    async def get(ctx):
        ctx.set(generator.bounds.ready, 1)
        for cycle in range(30):
            *_, valid = await ctx.tick().sample(generator.bounds.valid)
            if valid:
                taken.append(cycle)

    run(generator, put, get)
    assert taken == list(range(latency_cycles, latency_cycles + 20))
