"""In-simulator tests of hw.rtl.splitter.Splitter, its memories outside of the design."""

import cocotb
from cocotb.triggers import ClockCycles

from hw.rtl.splitter import piece_layout, split_layout
from hw.spec import JoinParams, tuple_dtype
from sim.coverage import Coverage
from sim.design_bench import DesignBench
from sim.elaborate import bench_settings
from sim.memory_bfm import MemoryBfm
from sim.scoreboard import cut_points, index_array
from sim.stimulus import KINDS, STALL_RATES, generator, sorted_tuples
from sim.stream_bfm import StreamSink, StreamSource, stalls

PARAMS = JoinParams(**bench_settings()["params"])
MAIN_BITS = bench_settings()["address_bits"]
BATCH_BITS = bench_settings()["batch_bits"]
INDEX_BITS = (2 * PARAMS.partitions - 1).bit_length()
SLOT = PARAMS.subwindow // PARAMS.lanes
WORD_BYTES = PARAMS.lanes * tuple_dtype(PARAMS.key_bits).itemsize
MEMORIES = {"fast": {}, "slow": dict(latency_cycles=11, refresh_every=40, refresh_cycles=9)}
SIZES = {"many": 0.6, "few": 0.05, "none": 0.0}
COVER = Coverage(
    "splitter", kind=KINDS, memory=tuple(MEMORIES), stall=STALL_RATES,
    stored=tuple(SIZES), inserted=tuple(SIZES),
    skip=lambda kind, memory, stall, stored, inserted: kind == "empty"
    and (stored, inserted) != ("none", "none"),
)


class Bench(DesignBench):
    """A splitter with its memories."""

    def __init__(self, dut, rng, memory="fast", stall=0.0):
        super().__init__(dut)
        slow = MEMORIES[memory]
        cells = [0] * (2 * SLOT), [0] * (2 * PARAMS.partitions), [0] * (1 << BATCH_BITS)
        self.main = MemoryBfm(dut, read="main", cells=cells[0], address_bits=MAIN_BITS, **slow)
        self.index = MemoryBfm(dut, read="index", cells=cells[1], address_bits=INDEX_BITS)
        self.batch = MemoryBfm(dut, read="batch", cells=cells[2], address_bits=BATCH_BITS)
        pause = stalls(rng, stall)
        splits = split_layout(PARAMS, MAIN_BITS)
        self.splits = StreamSource(dut, "splits", shape=splits, pause=pause)
        self.pieces = StreamSink(dut, "pieces", shape=piece_layout(PARAMS), pause=pause)

    def send(self, main, batch, slot):
        store(self.main.cells, slot * SLOT, cells_of(main))
        store(self.batch.cells, 0, cells_of(batch))
        keys = index_array(main, PARAMS.partition_rows).tolist()
        mask = (1 << PARAMS.key_bits) - 1
        store(self.index.cells, slot * PARAMS.partitions, [key & mask for key in keys])
        sizes = {"stored": len(main), "inserted": len(batch)}
        self.splits.send([{"address": slot * SLOT, **sizes}])

    async def check(self, main, batch, slot):
        self.send(main, batch, slot)
        pieces = [await self.pieces.queue.get() for _ in range(PARAMS.mergers)]
        assert pieces == expected(main, batch)


def store(cells, first, words):
    cells[first : first + len(words)] = words


def cells_of(tuples):
    data = tuples.tobytes()
    data += bytes(-len(data) % WORD_BYTES)
    return [
        int.from_bytes(data[n : n + WORD_BYTES], "little") for n in range(0, len(data), WORD_BYTES)
    ]


def expected(main, batch):
    total = len(main) + len(batch)
    size = -(-total // (PARAMS.mergers * PARAMS.lanes)) * PARAMS.lanes
    places = [min(n * size, total) for n in range(PARAMS.mergers + 1)]
    cuts = cut_points(main, batch, places)
    return [
        {
            "main_first": cuts[n],
            "main_count": cuts[n + 1] - cuts[n],
            "batch_first": places[n] - cuts[n],
            "batch_count": places[n + 1] - cuts[n + 1] - places[n] + cuts[n],
            "first": places[n],
        }
        for n in range(PARAMS.mergers)
    ]


@cocotb.test(timeout_time=2, timeout_unit="ms")
@cocotb.parametrize(kind=KINDS, memory=tuple(MEMORIES), stall=STALL_RATES)
async def cuts_are_exact(dut, kind, memory, stall):
    """Splits of all sizes in both slots, one after the other."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng, memory, stall)
    await bench.start()
    number = 0
    for stored, large in SIZES.items():
        for inserted, small in SIZES.items():
            if kind == "empty" and (stored, inserted) != ("none", "none"):
                continue
            main = sorted_tuples(np_rng, kind, int(large * PARAMS.subwindow))
            batch = sorted_tuples(np_rng, kind, int(small * PARAMS.insert_buffer))
            await bench.check(main, batch, number % 2)
            number += 1
            COVER.hit(kind=kind, memory=memory, stall=stall, stored=stored, inserted=inserted)


@cocotb.test(timeout_time=200, timeout_unit="us")
async def a_reset_forgets_the_search(dut):
    """After a reset in the middle of a search the next one is exact."""
    np_rng, rng = generator(cocotb.RANDOM_SEED)
    bench = Bench(dut, rng)
    await bench.start()
    for number in range(6):
        main = sorted_tuples(np_rng, "uniform", PARAMS.subwindow // 2)
        batch = sorted_tuples(np_rng, "uniform", PARAMS.insert_buffer)
        bench.send(main, batch, 0)
        await ClockCycles(dut.clk, 10 + 19 * number)
        await bench.stop()
        bench = Bench(dut, rng)
        await bench.reset()
        await bench.check(main, batch, 1)


@cocotb.test()
async def every_bin_was_hit(dut):
    """Last: the functional coverage of this bench."""
    COVER.check()
