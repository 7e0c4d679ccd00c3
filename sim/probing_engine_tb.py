"""In-simulator tests of hw.rtl.probing_engine.ProbingEngine over a memory."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, FallingEdge

from hw.rtl.layouts import main_words
from hw.spec import JoinParams, Side
from sim.coverage import Coverage
from sim.elaborate import bench_settings
from sim.probing import (
    MATCHES,
    PREDICATES,
    StreamBench,
    expected_records,
    index_entries,
    matches_of,
    memory_words,
    records_by_search,
    register_bits,
    wide_frame,
)
from sim.probing_tops import ProbingTop
from sim.stimulus import KINDS, STALL_RATES, generator, keys
from sim.stream_bfm import never

PARAMS = JoinParams(**bench_settings()["params"])
FIGURES = bench_settings().get("figures", False)
TOP = ProbingTop(PARAMS).signature.members
COVER = Coverage(
    "probing engine", operator=PREDICATES, side=("l", "r"), matches=MATCHES,
    stall_in=STALL_RATES, stall_out=STALL_RATES,
)


class Bench(StreamBench):
    """An engine with its memory of two main arrays."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut, TOP, rng, stall_in, stall_out)
        self.write__writes.pause = self.entries.pause = never
        self.array = 0

    async def load(self, stored):
        """Fill the other of the two main arrays, and its index array."""
        self.array ^= 1
        base = self.array * main_words(PARAMS)
        self.write__writes.send(memory_words(stored, PARAMS, base))
        self.entries.send(index_entries(stored, PARAMS, self.array))
        await self.sent(self.write__writes)
        await self.sent(self.entries)
        await self.set(base=base, array=self.array, rows=len(stored))

    async def ask(self, predicate, side, *, dense, chunk):
        """Set the registers of a predicate."""
        bits, count = register_bits(predicate, side, PARAMS.key_bits, TOP["bands"].shape)
        await self.set(bands=bits, band_count=count, negated=int(predicate.negated), explicit=0,
                       dense=dense, chunk_words=chunk)

    def send(self, probes):
        self.probes.send(wide_frame(probes, PARAMS.lanes))

    async def answer(self):
        words = await self.records.frame()
        return [
            (record["start"], record["end"])
            for word in words for record in word["data"][: word["count"]]
        ]


@cocotb.test(skip=FIGURES, timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(stall_in=STALL_RATES, stall_out=STALL_RATES)
async def every_operator_in_both_directions(dut, stall_in, stall_out):
    """Records of all predicates from both sides, on main arrays that match none, one and many."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for rows in (0, 1, 2, 21):
        stored = np.sort(np.r_[np_rng.integers(-7, 7, max(0, rows - 2)), [-8, 8][:rows]])
        await bench.load(stored)
        for name, predicate in PREDICATES.items():
            for side in Side:
                dense = rng.randrange(2)
                await bench.ask(predicate, side, dense=dense, chunk=rng.choice([1, 2, 4]))
                reach = 12 if rows > 2 else 3
                around = int(stored[0]) if rows and rows <= 2 else 0
                probes = np.arange(around - reach, around + reach + 1)
                bench.send(probes)
                answer = await bench.answer()
                assert answer == expected_records(stored, probes, predicate, side), (name, side)
                for matches in matches_of(answer, len(stored), predicate):
                    COVER.hit(operator=name, side=side.letter, matches=matches,
                              stall_in=stall_in, stall_out=stall_out)


@cocotb.test(skip=FIGURES, timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS, dense=[0, 1])
async def frames_of_every_kind_follow_each_other(dut, kind, dense):
    """Back-to-back batches, sorted or not, of random, skewed, equal, extreme and no keys."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.3, 0.3)
    await bench.start()
    for predicate in (PREDICATES["="], PREDICATES["band"], PREDICATES["bands"]):
        stored = np.sort(keys(np_rng, kind, int(np_rng.integers(0, PARAMS.subwindow + 1)),
                              PARAMS.key_bits))
        await bench.load(stored)
        await bench.ask(predicate, Side.LEFT, dense=dense, chunk=2)
        batches = [keys(np_rng, kind, int(count), PARAMS.key_bits) for count in (40, 0, 3, 17)]
        batches[0].sort()
        for probes in batches:
            bench.send(probes)
        for probes in batches:
            assert await bench.answer() == expected_records(stored, probes, predicate, Side.LEFT)


@cocotb.test(skip=FIGURES, timeout_time=1, timeout_unit="ms")
async def a_reset_forgets_the_batch(dut):
    """After a reset in the middle of a batch the next batch is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.1, 0.1)
    await bench.start()
    stored = np.sort(np_rng.integers(-50, 50, 60))
    predicate = PREDICATES["band"]
    for number in range(8):
        await bench.load(stored)
        await bench.ask(predicate, Side.RIGHT, dense=number % 2, chunk=2)
        probes = np.sort(np_rng.integers(-60, 60, 30))
        bench.send(probes)
        await ClockCycles(dut.clk, 7 + 13 * number)
        await bench.stop()
        bench = Bench(dut, rng, 0.1, 0.1)
        await bench.reset()
        await bench.load(stored)
        await bench.ask(predicate, Side.RIGHT, dense=number % 2, chunk=2)
        bench.send(probes)
        assert await bench.answer() == expected_records(stored, probes, predicate, Side.RIGHT)


@cocotb.test(skip=FIGURES)
async def every_bin_was_hit(dut):
    """The functional coverage of this bench."""
    COVER.check()


#: Batches of each shape that follow each other without a pause, and the probes of one.
FIGURE_BATCHES = {
    "dense": (1, PARAMS.subwindow // 8),
    "sparse": (16, PARAMS.subwindow // 1024),
    "alone": (1, PARAMS.subwindow // 1024),
}


@cocotb.test(skip=not FIGURES, timeout_time=10, timeout_unit="ms")
@cocotb.parametrize(
    shape=["dense =", "dense band", "sparse =", "sparse band", "alone =", "alone band"]
)
async def probes_a_cycle(dut, shape):
    """Cycles from the first key to the last record, for sorted batches without stalls.

    dense   one batch with a probe for every 8 stored tuples
    sparse  batches with a probe for every 1024 stored tuples, sent one right behind the other:
            the engine takes the next while it still works at the one before
    alone   one such batch: how long it takes to fill and to empty the engine counts too
    """
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    density, name = shape.split()
    rows = PARAMS.subwindow
    span = 8 * rows
    stored = np.sort(np_rng.integers(0, span, rows))
    count, probes_each = FIGURE_BATCHES[density]
    batches = np.sort(np_rng.integers(0, span, (count, probes_each))).astype(np.int32)
    predicate = PREDICATES[name]
    await bench.load(stored)
    await bench.ask(predicate, Side.LEFT, dense=int(density == "dense"), chunk=1)
    for probes in batches:
        bench.send(probes)
    first = len(bench.records.cycles)
    while dut.probes__valid.value != 1:
        await FallingEdge(dut.clk)
    began = cocotb.utils.get_sim_time("ns")
    answers = [await bench.answer() for _ in batches]
    cycles = int(cocotb.utils.get_sim_time("ns") - began) // 10 + 1
    assert first == 0
    for probes, answer in zip(batches, answers, strict=True):
        assert answer == records_by_search(stored, probes, predicate, Side.LEFT).tolist()
    print(f"figure probing engine, {shape}: {count} x {probes_each} probes in {rows} tuples, "
          f"{cycles} cycles, {batches.size / cycles:.3f} probes a cycle")
