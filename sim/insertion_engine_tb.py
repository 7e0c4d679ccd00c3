"""In-simulator tests of hw.rtl.insertion_engine.InsertionEngine with its memories."""

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, RisingEdge

from hw.rtl.insertion_engine import insertion_layout
from hw.rtl.layouts import key_shape, row_count, word_layout
from hw.rtl.memory import ReadPort, WritePort
from hw.spec import JoinParams, tuple_dtype
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.scoreboard import index_array, merged, same_tuples
from sim.stimulus import KINDS, STALL_RATES, generator, sorted_tuples
from sim.stream_bfm import StreamSink, StreamSource, stalls

SETTINGS = bench_settings()
PARAMS = JoinParams(**SETTINGS.get("params", {}))
LANES = PARAMS.lanes
MAIN_BITS = (2 * PARAMS.subwindow // LANES - 1).bit_length()
INDEX_BITS = (2 * PARAMS.partitions - 1).bit_length()
BATCH_BITS = max(1, (PARAMS.insert_buffer // LANES - 1).bit_length())
SLOT = PARAMS.subwindow // LANES
SIZES = ("none", "one", "some", "all")


def _impossible(kind, stall, stored, inserted):
    """An empty kind has no tuples; a full main array takes no more."""
    if kind == "empty":
        return (stored, inserted) != ("none", "none")
    return stored == "all" and inserted != "none"


COVER = Coverage(
    "insertion_engine", kind=KINDS, stall=STALL_RATES, stored=SIZES, inserted=SIZES[:3],
    skip=_impossible,
)


class Bench(DesignBench):
    """Drives the commands and the memories of an InsertionBench."""

    def __init__(self, dut, rng, stall=0.0):
        super().__init__(dut)
        pause = stalls(rng, stall)
        word, key = word_layout(PARAMS), key_shape(PARAMS)

        def source(name, shape):
            return StreamSource(dut, name, shape=shape, pause=pause)

        def sink(name, shape):
            return StreamSink(dut, name, shape=shape, pause=pause)

        main = WritePort(word, MAIN_BITS).members["writes"].signature
        index = WritePort(key, INDEX_BITS).members["writes"].signature
        batch = WritePort(word, BATCH_BITS).members["writes"].signature
        reads = ReadPort(word, MAIN_BITS).members["requests"].signature
        peeks = ReadPort(key, INDEX_BITS).members["requests"].signature
        self.commands = source("commands", insertion_layout(PARAMS, MAIN_BITS))
        self.done = sink("done", row_count(PARAMS))
        self.fill = source("fill__writes", payload(batch))
        self.load = source("load__writes", payload(main))
        self.load_index = source("load_index__writes", payload(index))
        self.dump = source("dump__requests", payload(reads))
        self.words = sink("dump__words", word)
        self.peek = source("peek__requests", payload(peeks))
        self.entries = sink("peek__words", key)

    async def store(self, main, slot):
        """Put a main array and its index array where the engine finds them."""
        self.load.send(packed(main, slot * SLOT))
        first = slot * PARAMS.subwindow // PARAMS.partition_rows
        keys = index_array(main, PARAMS.partition_rows).tolist()
        self.load_index.send({"address": first + n, "word": key} for n, key in enumerate(keys))
        while not (self.load.idle and self.load_index.idle):
            await RisingEdge(self.dut.clk)

    async def insert(self, batch, stored, slot):
        """Insert a batch into the main array in `slot`; the cycles that it took."""
        self.fill.send(packed(batch, 0))
        while not self.fill.idle:
            await RisingEdge(self.dut.clk)
        self.commands.send([command(stored, len(batch), slot)])
        count = 0
        while self.done.queue.empty():
            await RisingEdge(self.dut.clk)
            count += 1
        assert self.done.queue.get_nowait() == stored + len(batch)
        return count

    async def expect(self, main, slot):
        """Read back a main array and its index array."""
        words = -(-len(main) // LANES)
        if words:
            self.dump.send([{"address": slot * SLOT, "count": words}])
            first = slot * PARAMS.subwindow // PARAMS.partition_rows
            entries = index_array(main, PARAMS.partition_rows).tolist()
            self.peek.send([{"address": first, "count": len(entries)}])
            rows = [row for _ in range(words) for row in await self.words.queue.get()]
            same_tuples(rows[: len(main)], main)
            same_tuples([await self.entries.queue.get() for _ in entries], entries, "index entries")
        await RisingEdge(self.dut.clk)


def payload(signature):
    return signature.members["payload"].shape


def command(stored, inserted, slot):
    return {
        "source": slot * SLOT, "target": (1 - slot) * SLOT, "stored": stored, "inserted": inserted
    }


def packed(tuples, first):
    rows = [{"key": key, "rid": rid} for key, rid in tuples.tolist()]
    rows += [{"key": 0, "rid": 0}] * (-len(rows) % LANES)
    return [
        {"address": first + n // LANES, "word": rows[n : n + LANES]}
        for n in range(0, len(rows), LANES)
    ]


def size_of(count):
    if count == PARAMS.subwindow:
        return "all"
    return "none" if count == 0 else "one" if count == 1 else "some"


@cocotb.test(timeout_time=4, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS, stall=STALL_RATES)
async def batches_go_into_the_main_array(dut, kind, stall):
    """Commands back to back, between two slots, from empty to full."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall)
    await bench.start()
    most, full = PARAMS.insert_buffer, PARAMS.subwindow
    for sizes in ((0, 1, 1, most, 0, 1, most, full), (most, 5, full, full, full, 0), (1, 0, 7)):
        main, slot = np.empty(0, tuple_dtype(32)), 0
        for size in sizes:
            wanted = min(size, most, full - len(main))
            batch = sorted_tuples(np_rng, kind, wanted, first_rid=len(main))
            COVER.hit(
                kind=kind, stall=stall, stored=size_of(len(main)), inserted=size_of(len(batch))
            )
            await bench.insert(batch, len(main), slot)
            main, slot = merged(main, batch), 1 - slot
            await bench.expect(main, slot)
    await bench.stop()


@cocotb.test(timeout_time=400, timeout_unit="us")
async def a_reset_forgets_the_command(dut):
    """After a reset in the middle of an insertion the next insertion is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    half = PARAMS.subwindow // 2
    for number in range(6):
        main = sorted_tuples(np_rng, "uniform", half)
        batch = sorted_tuples(np_rng, "uniform", PARAMS.insert_buffer, first_rid=half)
        await bench.store(main, 0)
        bench.fill.send(packed(batch, 0))
        bench.commands.send([command(half, len(batch), 0)])
        await ClockCycles(dut.clk, 20 + 31 * number)
        await bench.stop()
        bench = Bench(dut, rng)
        await bench.reset()
        await bench.store(main, 0)
        await bench.insert(batch, half, 0)
        await bench.expect(merged(main, batch), 1)


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
