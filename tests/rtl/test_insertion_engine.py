# amaranth: UnusedElaboratable=no
"""hw.rtl.insertion_engine in Amaranth's own simulator."""

import numpy as np
import pytest
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.insertion_engine import DESIGNS, InsertionEngine
from hw.rtl.layouts import word_layout
from hw.rtl.memory import BlockMemory
from hw.spec import JoinParams
from sim.insertion_bench import InsertionBench
from sim.scoreboard import index_array, merged
from sim.stimulus import KINDS, sorted_tuples
from tests.rtl.helpers import run, stream_get, stream_put

PARAMS = JoinParams(subwindow=128, partitions=16, insert_buffer=64, mergers=2, lanes=2)


def insert(batches, design, params=PARAMS):
    """Insert batches one after the other, between two slots; the main arrays and index arrays."""
    bench = InsertionBench(params, design)
    lanes = params.lanes
    slots = (0, params.subwindow // lanes)
    results = []

    async def process(ctx):
        stored = 0
        for number, batch in enumerate(batches):
            for address in range(-(-len(batch) // lanes)):
                rows = batch[address * lanes : (address + 1) * lanes].tolist()
                rows += [(0, 0)] * (lanes - len(rows))
                word = [{"key": key, "rid": rid} for key, rid in rows]
                await stream_put(ctx, bench.fill.writes, {"address": address, "word": word})
            source, target = slots[number % 2], slots[1 - number % 2]
            sizes = {"stored": stored, "inserted": len(batch)}
            await stream_put(ctx, bench.commands, {"source": source, "target": target, **sizes})
            stored = await stream_get(ctx, bench.done)
            words = await dump(ctx, bench.dump, target, -(-stored // lanes))
            tuples = [(lane.key, lane.rid) for word in words for lane in word][:stored]
            entries = -(-stored // params.partition_rows)
            index = await dump(ctx, bench.peek, target * lanes // params.partition_rows, entries)
            results.append((tuples, index))

    run(bench, process)
    return results


async def dump(ctx, port, address, count):
    if count == 0:
        return []
    await stream_put(ctx, port.requests, {"address": address, "count": count})
    return [await stream_get(ctx, port.words) for _ in range(count)]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_go_into_the_main_array(kind, design):
    rng = np.random.default_rng(2)
    batches = []
    for size in (30, 1, 0, 64, 33):
        rid = sum(len(batch) for batch in batches)
        batches.append(sorted_tuples(rng, kind, size, first_rid=rid))
    main = batches[0][:0]
    for batch, (tuples, index) in zip(batches, insert(batches, design), strict=True):
        main = merged(main, batch)
        assert tuples == main.tolist()
        assert index == index_array(main, PARAMS.partition_rows).tolist()


class OverBatch(wiring.Component):
    """An insertion engine with memory for its batch alone."""

    def __init__(self, design):
        self.engine = InsertionEngine(PARAMS, 7, 5, design)
        self.batch = BlockMemory(word_layout(PARAMS), 32)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = self.engine
        m.submodules.batch = self.batch
        wiring.connect(m, self.engine.batch, self.batch.read)
        return m


@pytest.mark.parametrize("design", DESIGNS)
def test_done_waits_for_the_last_word(design):
    bench = OverBatch(design)
    engine = bench.engine

    async def process(ctx):
        for address in range(2):
            word = [{"key": 2 * address + lane, "rid": 0} for lane in range(2)]
            await stream_put(ctx, bench.batch.write.writes, {"address": address, "word": word})
        ctx.set(engine.new_index.writes.ready, 1)
        command = {"source": 0, "target": 64, "stored": 0, "inserted": 3}
        await stream_put(ctx, engine.commands, command)
        await stream_get(ctx, engine.new_main.writes)
        for _ in range(40):
            await ctx.tick()
            assert not ctx.get(engine.done.valid)
        await stream_get(ctx, engine.new_main.writes)
        assert await stream_get(ctx, engine.done) == 3

    run(bench, process)


def test_an_unknown_design_is_refused():
    with pytest.raises(ValueError, match=r"^design must be wide or narrow, not tall$"):
        InsertionEngine(PARAMS, 8, 5, "tall")


def test_sizes_that_do_not_nest_are_refused():
    odd = JoinParams(subwindow=100)
    message = r"^subwindow must be a power of two in gateware, not 100$"
    with pytest.raises(ValueError, match=message):
        InsertionEngine(odd, 8, 5)
    short = JoinParams(subwindow=64, partitions=32, lanes=4)
    with pytest.raises(
        ValueError, match=r"^a partition of 2 tuples is shorter than a memory word of 4$"
    ):
        InsertionEngine(short, 8, 5)
