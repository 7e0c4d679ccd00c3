"""In-simulator tests of hw.rtl.prober.Prober over a memory."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from hw.rtl.layouts import main_words
from hw.spec import JoinParams, Side
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import (
    MATCHES,
    PREDICATES,
    StreamBench,
    expected_records,
    frame,
    matches_of,
    memory_words,
)
from sim.probing_tops import ProberTop
from sim.stimulus import KINDS, STALL_RATES, generator, keys
from sim.stream_bfm import never

PARAMS = JoinParams(**bench_settings()["params"])
TOP = ProberTop(PARAMS).signature.members
COVER = Coverage(
    "prober", operator=PREDICATES, side=("l", "r"), matches=MATCHES, way=("dense", "sparse"),
    stall_in=STALL_RATES, stall_out=STALL_RATES,
)
NOTHING = {side: {"bound": 0, "partition": 0} for side in ("lo", "hi")}


class Bench(StreamBench):
    """A prober with its memory of two main arrays."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut, TOP, rng, stall_in, stall_out)
        self.write__writes.pause = never
        self.array = 0

    async def load(self, stored):
        """Fill the other of the two main arrays."""
        self.array ^= 1
        self.stored = stored
        base = self.array * main_words(PARAMS)
        self.write__writes.send(memory_words(stored, PARAMS, base))
        await self.sent(self.write__writes)
        await self.set(base=base, rows=len(stored))

    def target(self, bound):
        index = self.stored[:: PARAMS.partition_rows]
        before = int(np.searchsorted(index, bound, "left"))
        return {"bound": bound, "partition": max(0, before - 1)}

    def send(self, probes, predicate, side):
        """The frame of targets that boundary generator and partitioner would send."""
        wanted = predicate.intervals(side, probes).reshape(-1).tolist()
        self.send_bounds([(lo, hi + 1) for lo, hi in wanted])

    def send_bounds(self, pairs):
        targets = [{"lo": self.target(int(lo)), "hi": self.target(int(hi))} for lo, hi in pairs]
        self.targets.send(frame(targets, empty=NOTHING))

    async def answer(self):
        tokens = await self.records.frame()
        return [(token["data"]["start"], token["data"]["end"]) for token in tokens]


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_operator_in_both_directions(dut, stall_in, stall_out):
    """Records of all predicates from both sides, on main arrays that match none, one and many."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for rows in (1, 2, 21):
        stored = np.sort(np.r_[np_rng.integers(-7, 7, max(0, rows - 2)), [-8, 8][:rows]])
        await bench.load(stored)
        for way in ("dense", "sparse"):
            for name, predicate in PREDICATES.items():
                await bench.set(dense=int(way == "dense"), negated=int(predicate.negated))
                reach = 12 if rows > 2 else 3
                around = int(stored[0]) if rows <= 2 else 0
                probes = np.arange(around - reach, around + reach + 1, dtype=np.int32)
                for side in Side:
                    bench.send(probes, predicate, side)
                for side in Side:
                    answer = await bench.answer()
                    assert answer == expected_records(stored, probes, predicate, side), name
                    for matches in matches_of(answer, len(stored), predicate):
                        COVER.hit(operator=name, side=side.letter, matches=matches, way=way,
                                  stall_in=stall_in, stall_out=stall_out)


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS, dense=[0, 1])
async def bounds_in_any_order(dut, kind, dense):
    """Frames of random bounds, also empty intervals, on main arrays of every kind and length."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.3, 0.3)
    await bench.start()
    for count in (PARAMS.subwindow, 0, 7, 16, 17):
        stored = np.sort(keys(np_rng, kind, count, PARAMS.key_bits))
        await bench.load(stored)
        await bench.set(dense=dense, negated=0)
        near = np.r_[stored, keys(np_rng, "extremes", 4)].astype(object)
        bounds = np_rng.choice(near, (20, 2)) + np_rng.integers(0, 2, (20, 2))
        bounds[:10].sort(axis=0)
        for pairs in (bounds, bounds[:0], bounds[::-1]):
            bench.send_bounds(pairs)
        for pairs in (bounds, bounds[:0], bounds[::-1]):
            starts = [int(np.searchsorted(stored, int(lo), "left")) for lo, _ in pairs]
            ends = [int(np.searchsorted(stored, int(hi), "left")) for _, hi in pairs]
            expected = [(start, max(start, end)) for start, end in zip(starts, ends, strict=True)]
            assert await bench.answer() == expected


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_the_frame(dut):
    """After a reset in the middle of a scan or of searches the next frame is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    predicate = PREDICATES["band"]
    for number in range(10):
        stored = np.sort(np_rng.integers(-50, 50, 60))
        await bench.load(stored)
        await bench.set(dense=number % 2, negated=0)
        probes = np.sort(np_rng.integers(-60, 60, 20)).astype(np.int32)
        bench.send(probes, predicate, Side.LEFT)
        await ClockCycles(dut.clk, 4 + 9 * number)
        await bench.stop()
        bench = Bench(dut, rng)
        await bench.reset()
        await bench.load(stored)
        bench.send(probes, predicate, Side.LEFT)
        assert await bench.answer() == expected_records(stored, probes, predicate, Side.LEFT)


@cocotb.test()
async def every_bin_was_hit(dut):
    """The functional coverage of this bench."""
    COVER.check()
