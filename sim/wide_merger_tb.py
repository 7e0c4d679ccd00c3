"""In-simulator tests of hw.rtl.wide_merger.WideMerger."""

import json

import cocotb

from hw.rtl.layouts import tuple_layout, wide_token
from hw.spec import JoinParams
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.merging import MergeBench, reset_within_frames
from sim.scoreboard import merged, same_tuples
from sim.stimulus import KINDS, STALL_RATES, generator, merge_cases, sorted_tuples

LANES = bench_settings().get("lanes", 4)
TOKEN = wide_token(tuple_layout(JoinParams()), LANES)
COVER = Coverage(
    f"wide_merger_{LANES}", kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES,
    # Tuples beyond whole words: that is where lanes are padded.
    left_over=range(LANES),
    skip=lambda kind, stall_in, stall_out, left_over: kind == "empty" and left_over > 0,
)


class Bench(MergeBench):
    """A wide merger."""

    token = TOKEN

    @staticmethod
    def frame(tuples):
        empty = {"key": 0, "rid": 0}
        rows = [{"key": key, "rid": rid} for key, rid in tuples.tolist()]
        words = [rows[first : first + LANES] for first in range(0, len(rows), LANES)]
        tokens = [
            {"data": word + [empty] * (LANES - len(word)), "count": len(word), "end": 0}
            for word in words
        ]
        return [*tokens, {"data": [empty] * LANES, "count": 0, "end": 1}]

    async def expect(self, main, batch):
        tokens = await self.merged.frame()
        assert all(token["count"] == LANES for token in tokens[:-1]), "a word is not full"
        assert all(token["count"] > 0 for token in tokens), "a word is empty"
        tuples = [lane for token in tokens for lane in token["data"][: token["count"]]]
        same_tuples(tuples, merged(main, batch))


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES)
async def frames_are_merged_in_order(dut, kind, stall_in, stall_out):
    """Back-to-back frames of all sizes come out merged and stable whatever stalls."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    most = LANES * (6 if max(stall_in, stall_out) > 0.5 else 16)
    cases = [merge_cases(np_rng, kind, most) for _ in range(3)]
    main, batch = (sorted_tuples(np_rng, kind, 3 * LANES) for _ in range(2))
    cases += [(main, batch[:extra]) for extra in range(LANES)] + [(main[:0], batch)]
    for case in cases:
        bench.send(*case)
    for case in cases:
        await bench.expect(*case)
        left_over = (len(case[0]) + len(case[1])) % LANES
        COVER.hit(kind=kind, stall_in=stall_in, stall_out=stall_out, left_over=left_over)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_reset_forgets_the_frame(dut):
    """After a reset in the middle of a frame the next frame is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    long = sorted_tuples(np_rng, "uniform", 30 * LANES)
    await reset_within_frames(dut, lambda: Bench(dut, rng, 0.2, 0.2), np_rng, long, 9 * LANES)


@cocotb.test(timeout_time=200, timeout_unit="us")
@cocotb.parametrize(kind=["uniform", "skewed", "equal"])
async def every_lane_gives_a_tuple_a_cycle(dut, kind):
    """Without stalls at least 0.98 tuples a cycle and lane."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    count = 500 * LANES
    main, batch = (sorted_tuples(np_rng, kind, count) for _ in range(2))
    bench.send(main, batch)
    await bench.expect(main, batch)
    rate = round(2 * count / (bench.merged.cycles[-1] - bench.merged.cycles[0]), 4)
    latency = bench.merged.cycles[0] - bench.main.cycles[0]
    print("FIGURE", json.dumps({"kind": kind, "tuples_a_cycle": rate, "latency_cycles": latency}))
    assert rate >= 0.98 * LANES, f"{rate} tuples a cycle"


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
