"""In-simulator tests of the partitioners of hw.rtl.partitioner."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hw.rtl.partitioner import PipelinedPartitioner
from hw.spec import JoinParams
from hw.spec.tuples import key_limits
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import StreamBench, frame, index_entries
from sim.stimulus import KINDS, STALL_RATES, generator, keys
from sim.stream_bfm import never

PARAMS = JoinParams(**bench_settings()["params"])
ARRAYS = bench_settings()["arrays"]
TOP = PipelinedPartitioner(PARAMS, ARRAYS).signature.members
ORDERS = ("ascending", "any")
COVER = Coverage(
    bench_settings()["name"], kind=KINDS, order=ORDERS, rows=("none", "some", "all"),
    stall_in=STALL_RATES, stall_out=STALL_RATES,
    skip=lambda kind, order, rows, stall_in, stall_out: kind == "empty" and rows != "none",
)


class Bench(StreamBench):
    """A partitioner with its index arrays."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut, TOP, rng, stall_in, stall_out)
        self.entries.pause = never
        self.array = 0

    async def load(self, stored):
        self.array = (self.array + 1) % ARRAYS
        self.entries.send(index_entries(stored, PARAMS, self.array))
        await self.sent(self.entries)
        await self.set(array=self.array, rows=len(stored))

    def send(self, bounds):
        pairs = [{"lo": lo, "hi": hi} for lo, hi in bounds]
        self.bounds.send(frame(pairs, empty={"lo": 0, "hi": 0}))

    async def expect(self, stored, bounds):
        index = stored[:: PARAMS.partition_rows].tolist()
        for token, pair in zip(await self.targets.frame(), bounds, strict=True):
            for side, bound in zip(("lo", "hi"), pair, strict=True):
                before = sum(key < bound for key in index)
                found = token["data"][side]
                assert found == {"bound": bound, "partition": max(0, before - 1)}, (pair, index)


def bounds_of(np_rng, kind, order, stored):
    """Pairs of bounds near the stored keys, and beyond every key."""
    smallest, largest = key_limits(PARAMS.key_bits)
    near = np.r_[stored, keys(np_rng, kind, 8, PARAMS.key_bits)].astype(object)
    if not len(near):
        near = np.array([0], object)
    chosen = np_rng.choice(near, (10, 2)) + np_rng.integers(-1, 2, (10, 2))
    chosen = np.clip(chosen, smallest, largest + 1)
    chosen = np.r_[chosen, [[smallest, largest + 1], [largest + 1, smallest]]]
    return (np.sort(chosen, axis=0) if order == "ascending" else chosen).tolist()


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def bounds_find_their_partitions(dut, stall_in, stall_out):
    """Back-to-back frames in and out of order, on index arrays of every kind and length."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for kind in KINDS:
        some = int(np_rng.integers(1, PARAMS.subwindow))
        for rows, count in (("none", 0), ("some", some), ("all", PARAMS.subwindow)):
            if kind == "empty" and rows != "none":
                continue
            stored = np.sort(keys(np_rng, kind, count, PARAMS.key_bits))
            await bench.load(stored)
            cases = [bounds_of(np_rng, kind, order, stored) for order in ORDERS]
            for bounds in [*cases, []]:
                bench.send(bounds)
            for bounds in [*cases, []]:
                await bench.expect(stored, bounds)
            for order in ORDERS:
                COVER.hit(kind=kind, order=order, rows=rows, stall_in=stall_in,
                          stall_out=stall_out)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_the_frame(dut):
    """After a reset in the middle of a search the next frame is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    stored = np.sort(keys(np_rng, "uniform", PARAMS.subwindow, PARAMS.key_bits))
    await bench.load(stored)
    for number in range(8):
        bench.send(bounds_of(np_rng, "uniform", "ascending", stored))
        await ClockCycles(dut.clk, 3 + 5 * number)
        await bench.stop()
        array = bench.array
        bench = Bench(dut, rng)
        bench.array = array
        await bench.reset()
        bounds = bounds_of(np_rng, "uniform", "any", stored)
        bench.send(bounds)
        await bench.expect(stored, bounds)


@cocotb.test()
async def every_bin_was_hit(dut):
    """The functional coverage of this bench."""
    COVER.check()
