"""In-simulator tests of hw.rtl.merger.Merger."""

import json

import cocotb

from hw.rtl.layouts import token, tuple_layout
from hw.spec import JoinParams
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.merging import MergeBench, reset_within_frames
from sim.scoreboard import merged, same_tuples
from sim.stimulus import KINDS, STALL_RATES, generator, merge_cases, sorted_tuples

PARAMS = JoinParams(key_bits=bench_settings().get("key_bits", 32))
TOKEN = token(tuple_layout(PARAMS))
FRAMES = 6
COVER = Coverage(
    "merger", kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES,
    sizes=("both", "main only", "batch only", "none"),
    # Of the empty kind there is one size; both sides of the other kinds meet every size.
    skip=lambda kind, stall_in, stall_out, sizes: (kind == "empty") != (sizes == "none"),
)


class Bench(MergeBench):
    """A merger."""

    token = TOKEN

    @staticmethod
    def frame(tuples):
        data = [{"data": {"key": key, "rid": rid}, "end": 0} for key, rid in tuples.tolist()]
        return [*data, {"data": {"key": 0, "rid": 0}, "end": 1}]

    async def expect(self, main, batch):
        tokens = await self.merged.frame()
        same_tuples([token["data"] for token in tokens], merged(main, batch))


def sizes_of(main, batch):
    if len(main) and len(batch):
        return "both"
    return "main only" if len(main) else "batch only" if len(batch) else "none"


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES)
async def frames_are_merged_in_order(dut, kind, stall_in, stall_out):
    """Back-to-back frames of all sizes come out merged and stable whatever stalls."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    most = 12 if max(stall_in, stall_out) > 0.5 else 40
    cases = [merge_cases(np_rng, kind, most, PARAMS.key_bits) for _ in range(FRAMES)]
    main, batch = (sorted_tuples(np_rng, kind, 9, PARAMS.key_bits) for _ in range(2))
    cases += [(main, batch), (main, batch[:0]), (main[:0], batch)]
    for case in cases:
        bench.send(*case)
    for case in cases:
        await bench.expect(*case)
        sizes = sizes_of(*case)
        if kind == "empty" or sizes != "none":
            COVER.hit(kind=kind, stall_in=stall_in, stall_out=stall_out, sizes=sizes)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_reset_forgets_the_frame(dut):
    """After a reset in the middle of a frame the next frame is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    long = sorted_tuples(np_rng, "uniform", 60, PARAMS.key_bits)
    await reset_within_frames(
        dut, lambda: Bench(dut, rng, 0.2, 0.2), np_rng, long, 60, PARAMS.key_bits
    )


@cocotb.test(timeout_time=100, timeout_unit="us")
@cocotb.parametrize(kind=["uniform", "skewed", "equal"])
async def a_tuple_a_cycle(dut, kind):
    """Without stalls at least 0.99 tuples a cycle, and the first one after at most 8 cycles."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    main, batch = (sorted_tuples(np_rng, kind, 1000, PARAMS.key_bits) for _ in range(2))
    bench.send(main, batch)
    await bench.expect(main, batch)
    rate = round(2000 / (bench.merged.cycles[-1] - bench.merged.cycles[0]), 4)
    latency = bench.merged.cycles[0] - bench.main.cycles[0]
    print("FIGURE", json.dumps({"kind": kind, "tuples_a_cycle": rate, "latency_cycles": latency}))
    assert rate >= 0.99, f"{rate} tuples a cycle"
    assert latency <= 8, f"a latency of {latency} cycles"


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
