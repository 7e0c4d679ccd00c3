# amaranth: UnusedElaboratable=no
"""hw.rtl.wide_merger in Amaranth's own simulator."""

import numpy as np
import pytest

from hw.rtl.layouts import tuple_layout
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams
from sim.scoreboard import merged
from sim.stimulus import KINDS, sorted_tuples
from tests.rtl.helpers import get_words, no_pause, pauses, put_words, run

LANES = [2, 4, 8]


def merge(frames, lanes, key_bits=32, pause=(no_pause, no_pause, no_pause)):
    """Send (main, batch) frames through one merger; the merged frames."""
    pause_main, pause_batch, pause_merged = pause
    dut = WideMerger(tuple_layout(JoinParams(key_bits=key_bits)), lanes)
    results = []

    async def send_main(ctx):
        for main, _ in frames:
            await put_words(ctx, dut.main, main, lanes, pause_main)

    async def send_batch(ctx):
        for _, batch in frames:
            await put_words(ctx, dut.batch, batch, lanes, pause_batch)

    async def receive(ctx):
        for _ in frames:
            results.append(await get_words(ctx, dut.merged, pause_merged))

    run(dut, send_main, send_batch, receive)
    return results


@pytest.mark.parametrize("lanes", LANES)
def test_empty_frames_are_one_token(lanes):
    frames = [([], []), ([(1, 0)], []), ([], [(2, 0)]), ([], [])]
    assert merge(frames, lanes) == [[], [(1, 0)], [(2, 0)], []]


@pytest.mark.parametrize("lanes", LANES)
def test_equal_keys_keep_their_order(lanes):
    main = [(5, rid) for rid in range(11)]
    batch = [(5, rid) for rid in range(11, 24)]
    assert merge([(main, batch)], lanes) == [main + batch]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize("kind", KINDS)
def test_frames_follow_each_other(kind, lanes):
    rng = np.random.default_rng(5)
    sizes = [(13, 6), (lanes, lanes), (1, 3 * lanes), (4 * lanes, 0)]
    frames = [
        (sorted_tuples(rng, kind, main), sorted_tuples(rng, kind, batch, first_rid=100))
        for main, batch in sizes
    ]
    assert merge(frames, lanes) == [merged(main, batch).tolist() for main, batch in frames]


@pytest.mark.parametrize("slow", range(3))
def test_stalls_change_nothing(slow):
    rng = np.random.default_rng(6)
    frames = [
        (sorted_tuples(rng, "skewed", 150), sorted_tuples(rng, "skewed", 61, first_rid=200))
        for _ in range(2)
    ]
    pause = [pauses(end) if end == slow else no_pause for end in range(3)]
    assert merge(frames, 2, pause=pause) == [merged(*frame).tolist() for frame in frames]


def test_only_powers_of_two_to_eight_are_lanes():
    with pytest.raises(ValueError, match=r"^lanes must be 2, 4 or 8, not 3$"):
        WideMerger(tuple_layout(JoinParams()), 3)
