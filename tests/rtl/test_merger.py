"""hw.rtl.merger in Amaranth's own simulator."""

import numpy as np
import pytest
from amaranth.hdl import *

from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.spec import JoinParams
from sim.scoreboard import merged
from sim.stimulus import KINDS, sorted_tuples
from tests.rtl.helpers import get_frame, no_pause, pauses, put_frame, run, stream_get


def merge(frames, key_bits=32, pause=(no_pause, no_pause, no_pause)):
    """Send (main, batch) frames through one merger; the merged frames."""
    pause_main, pause_batch, pause_merged = pause
    dut = Merger(tuple_layout(JoinParams(key_bits=key_bits)))
    results = []

    async def send_main(ctx):
        for main, _ in frames:
            await put_frame(ctx, dut.main, main, pause_main)

    async def send_batch(ctx):
        for _, batch in frames:
            await put_frame(ctx, dut.batch, batch, pause_batch)

    async def receive(ctx):
        for _ in frames:
            results.append(await get_frame(ctx, dut.merged, pause_merged))

    run(dut, send_main, send_batch, receive)
    return results


def test_two_frames_become_one():
    assert merge([([(1, 0), (4, 1)], [(2, 2), (3, 3)])]) == [[(1, 0), (2, 2), (3, 3), (4, 1)]]


def test_equal_keys_keep_their_order():
    main, batch = [(5, 0), (5, 1)], [(5, 2), (5, 3)]
    assert merge([(main, batch)]) == [[(5, 0), (5, 1), (5, 2), (5, 3)]]


def test_empty_frames_are_one_token():
    frames = [([], []), ([(1, 0)], []), ([], [(2, 0)]), ([], [])]
    assert merge(frames) == [[], [(1, 0)], [(2, 0)], []]


@pytest.mark.parametrize("key_bits", [32, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_frames_follow_each_other(kind, key_bits):
    rng = np.random.default_rng(4)
    frames = [
        (sorted_tuples(rng, kind, 9, key_bits), sorted_tuples(rng, kind, 5, key_bits, 100))
        for _ in range(3)
    ]
    expected = [merged(main, batch).tolist() for main, batch in frames]
    assert merge(frames, key_bits) == expected


@pytest.mark.parametrize("slow", range(3))
def test_stalls_change_nothing(slow):
    rng = np.random.default_rng(6)
    frames = [
        (sorted_tuples(rng, "skewed", 20), sorted_tuples(rng, "skewed", 15, first_rid=100))
        for _ in range(2)
    ]
    pause = [pauses(end) if end == slow else no_pause for end in range(3)]
    expected = [merged(main, batch).tolist() for main, batch in frames]
    assert merge(frames, pause=pause) == expected


def test_the_first_tuple_comes_out_within_eight_cycles():
    dut = Merger(tuple_layout(JoinParams()))
    cycles = []

    async def send(ctx):
        for stream in (dut.main, dut.batch):
            ctx.set(stream.payload, {"data": {"key": 1, "rid": 1}, "end": 0})
            ctx.set(stream.valid, 1)

    async def receive(ctx):
        ctx.set(dut.merged.ready, 1)
        count = 0
        while not ctx.get(dut.merged.valid):
            await ctx.tick()
            count += 1
        cycles.append(count)
        await stream_get(ctx, dut.merged)

    run(dut, send, receive)
    assert cycles == [4]
