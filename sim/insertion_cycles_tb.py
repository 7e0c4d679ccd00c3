"""Cycle figures of hw.rtl.insertion_engine.InsertionEngine, its memories outside of the design."""

import json

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

from hw.rtl.insertion_engine import insertion_layout
from hw.rtl.layouts import row_count
from hw.spec import JoinParams, tuple_dtype
from sim.elaborate import bench_settings
from sim.memory_bfm import MemoryBfm
from sim.scoreboard import index_array, merged, same_tuples
from sim.stimulus import generator, sorted_tuples
from sim.stream_bfm import StreamSink, StreamSource

SETTINGS = bench_settings()
PARAMS = JoinParams(**SETTINGS.get("params", {}))
#: Address bits of the engine's ports: two main arrays, their index arrays, a batch.
MAIN_BITS = (2 * PARAMS.subwindow // PARAMS.lanes - 1).bit_length()
INDEX_BITS = (2 * PARAMS.partitions - 1).bit_length()
BATCH_BITS = (PARAMS.insert_buffer // PARAMS.lanes - 1).bit_length()
SLOT = PARAMS.subwindow // PARAMS.lanes
WORD_BYTES = PARAMS.lanes * tuple_dtype(PARAMS.key_bits).itemsize


def cells_of(tuples, count):
    """Tuples as `count` memory words, the last ones empty."""
    data = tuples.tobytes().ljust(count * WORD_BYTES, b"\0")
    return [
        int.from_bytes(data[n : n + WORD_BYTES], "little") for n in range(0, len(data), WORD_BYTES)
    ]


def tuples_of(cells):
    data = b"".join(cell.to_bytes(WORD_BYTES, "little") for cell in cells)
    return np.frombuffer(data, tuple_dtype(PARAMS.key_bits))


@cocotb.test(timeout_time=20, timeout_unit="ms")
@cocotb.parametrize(kind=["uniform", "skewed", "equal"])
async def a_batch_into_a_main_array(dut, kind):
    """A batch of insert_buffer tuples into `stored`, with the clock counted."""
    rng, _ = generator(cocotb.RANDOM_SEED)
    main = sorted_tuples(rng, kind, SETTINGS["stored"])
    batch = sorted_tuples(rng, kind, PARAMS.insert_buffer, first_rid=len(main))
    memory = MemoryBfm(
        dut, read="main", write="new_main", cells=cells_of(main, 2 * SLOT),
        address_bits=MAIN_BITS, **SETTINGS["memory"],
    )
    keys = [key & (1 << PARAMS.key_bits) - 1 for key in
            index_array(main, PARAMS.partition_rows).tolist()]
    index = MemoryBfm(
        dut, read="index", write="new_index", address_bits=INDEX_BITS,
        cells=keys + [0] * (2 * PARAMS.partitions - len(keys)),
    )
    MemoryBfm(
        dut, read="batch", address_bits=BATCH_BITS,
        cells=cells_of(batch, PARAMS.insert_buffer // PARAMS.lanes),
    )
    commands = StreamSource(dut, "commands", shape=insertion_layout(PARAMS, MAIN_BITS))
    done = StreamSink(dut, "done", shape=row_count(PARAMS))
    Clock(dut.clk, 10, unit="ns").start()
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    commands.send(
        [{"source": 0, "target": SLOT, "stored": len(main), "inserted": len(batch)}]
    )
    assert await done.queue.get() == len(main) + len(batch)
    cycles = done.cycles[0] - commands.cycles[0]
    await RisingEdge(dut.clk)

    expected = merged(main, batch)
    same_tuples(tuples_of(memory.cells[SLOT:])[: len(expected)], expected)
    entries = index_array(expected, PARAMS.partition_rows)
    found = np.array(index.cells[PARAMS.partitions :][: len(entries)], "<u8")
    same_tuples(found.astype(entries.dtype), entries, "index entries")
    rate = round(len(expected) / cycles, 3)
    figure = {"kind": kind, "cycles": cycles, "tuples_a_cycle": rate, "words": memory.moved}
    print("FIGURE", json.dumps(figure))
