"""In-simulator tests of hw.rtl.indexer.Indexer."""

import cocotb
from cocotb.triggers import ClockCycles

from hw.rtl.indexer import index_address_bits
from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import write_layout
from hw.spec import JoinParams
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.scoreboard import index_array
from sim.stimulus import KINDS, STALL_RATES, generator, sorted_tuples
from sim.stream_bfm import StreamSink, StreamSource, stalls

PARAMS = JoinParams(**bench_settings()["params"])
ADDRESS_BITS = bench_settings()["address_bits"]
WRITE = write_layout(word_layout(PARAMS), ADDRESS_BITS)
ENTRY = write_layout(key_shape(PARAMS), index_address_bits(PARAMS, ADDRESS_BITS))
COVER = Coverage("indexer", kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES, slot=(0, 1))


class Bench(DesignBench):
    """An indexer between a source of words and sinks for words and entries."""

    def __init__(self, dut, rng, stall_in=0.0, stall_out=0.0):
        super().__init__(dut)
        out = stalls(rng, stall_out)
        self.merged = StreamSource(dut, "merged__writes", shape=WRITE, pause=stalls(rng, stall_in))
        self.main = StreamSink(dut, "main__writes", shape=WRITE, pause=out)
        self.index = StreamSink(dut, "index__writes", shape=ENTRY, pause=out)

    async def check(self, tuples, slot):
        """Send a main array; the same words and its index array must come out."""
        words = words_of(tuples, slot)
        self.merged.send(words)
        assert [await self.main.queue.get() for _ in words] == words
        first = slot * PARAMS.subwindow // PARAMS.partition_rows
        entries = [
            {"address": first + n, "word": key}
            for n, key in enumerate(index_array(tuples, PARAMS.partition_rows).tolist())
        ]
        assert [await self.index.queue.get() for _ in entries] == entries
        assert self.index.queue.empty(), "an entry too many"


def words_of(tuples, slot):
    lanes = PARAMS.lanes
    rows = [{"key": key, "rid": rid} for key, rid in tuples.tolist()]
    rows += [{"key": 0, "rid": 0}] * (-len(rows) % lanes)
    first = slot * PARAMS.subwindow // lanes
    return [
        {"address": first + n // lanes, "word": rows[n : n + lanes]}
        for n in range(0, len(rows), lanes)
    ]


@cocotb.test(timeout_time=400, timeout_unit="us")
@cocotb.parametrize(kind=KINDS, stall_in=STALL_RATES, stall_out=STALL_RATES)
async def main_arrays_are_indexed(dut, kind, stall_in, stall_out):
    """Main arrays in both slots, back to back, pass unchanged and are indexed."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, stall_in, stall_out)
    await bench.start()
    for slot, size in ((0, PARAMS.subwindow), (1, PARAMS.subwindow // 2 + 1), (0, 1), (1, 0)):
        await bench.check(sorted_tuples(np_rng, kind, size), slot)
        COVER.hit(kind=kind, stall_in=stall_in, stall_out=stall_out, slot=slot)


@cocotb.test(timeout_time=100, timeout_unit="us")
async def a_reset_forgets_the_word(dut):
    """After a reset in the middle of a main array the next one is whole."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, 0.2, 0.5)
    await bench.start()
    for number in range(8):
        tuples = sorted_tuples(np_rng, "uniform", PARAMS.subwindow)
        bench.merged.send(words_of(tuples, 0))
        await ClockCycles(dut.clk, 3 + number)
        await bench.stop()
        bench = Bench(dut, rng, 0.2, 0.5)
        await bench.reset()
        await bench.check(tuples, number % 2)


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
