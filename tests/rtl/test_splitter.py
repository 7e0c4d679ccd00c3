"""hw.rtl.splitter in Amaranth's own simulator."""

import numpy as np
import pytest
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import BlockMemory
from hw.rtl.splitter import Splitter
from hw.spec import JoinParams
from sim.scoreboard import cut_points, index_array
from sim.stimulus import KINDS, sorted_tuples
from tests.rtl.helpers import run, stream_get, stream_put

PARAMS = JoinParams(subwindow=128, partitions=16, insert_buffer=64, mergers=4, lanes=4)


class Bench(wiring.Component):
    """A splitter with block RAM for its main array, index array and batch."""

    def __init__(self, params):
        self.params = params
        word = word_layout(params)
        self.memories = {
            "main": BlockMemory(word, 2 * params.subwindow // params.lanes),
            "index": BlockMemory(key_shape(params), 2 * params.partitions),
            "batch": BlockMemory(word, params.insert_buffer // params.lanes),
        }
        bits = {name: memory.address_bits for name, memory in self.memories.items()}
        self.splitter = Splitter(params, bits["main"], bits["batch"])
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.splitter = self.splitter
        for name, memory in self.memories.items():
            m.submodules[name] = memory
            wiring.connect(m, getattr(self.splitter, name), memory.read)
        return m


def fill(ctx, memory, words):
    """A process's part: write words from address 0 on."""
    return [stream_put(ctx, memory.write.writes, {"address": a, "word": w}) for a, w in words]


def packed(tuples, lanes, first=0):
    rows = [{"key": key, "rid": rid} for key, rid in tuples.tolist()]
    rows += [{"key": 0, "rid": 0}] * (-len(rows) % lanes)
    return [(first + n // lanes, rows[n : n + lanes]) for n in range(0, len(rows), lanes)]


def split(main, batch, params=PARAMS, address=0):
    """The pieces that a splitter finds, as dicts."""
    bench = Bench(params)
    pieces = []

    async def process(ctx):
        base = address * params.lanes // params.partition_rows
        index = index_array(main, params.partition_rows).tolist()
        parts = (
            ("main", packed(main, params.lanes, address)),
            ("index", [(base + n, key) for n, key in enumerate(index)]),
            ("batch", packed(batch, params.lanes)),
        )
        for name, words in parts:
            for put in fill(ctx, bench.memories[name], words):
                await put
        command = {"address": address, "stored": len(main), "inserted": len(batch)}
        await stream_put(ctx, bench.splitter.splits, command)
        for _ in range(params.mergers):
            piece = await stream_get(ctx, bench.splitter.pieces)
            names = ("main_first", "main_count", "batch_first", "batch_count", "first")
            pieces.append({name: getattr(piece, name) for name in names})

    run(bench, process)
    return pieces


def expected(main, batch, params=PARAMS):
    total = len(main) + len(batch)
    size = -(-total // (params.mergers * params.lanes)) * params.lanes
    places = [min(n * size, total) for n in range(params.mergers + 1)]
    cuts = cut_points(main, batch, places)
    return [
        {
            "main_first": cuts[n],
            "main_count": cuts[n + 1] - cuts[n],
            "batch_first": places[n] - cuts[n],
            "batch_count": places[n + 1] - cuts[n + 1] - places[n] + cuts[n],
            "first": places[n],
        }
        for n in range(params.mergers)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sizes", [(80, 40), (3, 50), (0, 20), (90, 0)])
def test_pieces_are_balanced_and_exact(kind, sizes):
    rng = np.random.default_rng(sum(sizes))
    main, batch = (sorted_tuples(rng, kind, size) for size in sizes)
    assert split(main, batch) == expected(main, batch)


def test_a_main_array_in_the_second_slot_has_its_own_index_array():
    rng = np.random.default_rng(9)
    main, batch = sorted_tuples(rng, "uniform", 100), sorted_tuples(rng, "uniform", 28)
    assert split(main, batch, address=32) == expected(main, batch)


def test_one_merger_gets_everything():
    params = JoinParams(subwindow=64, partitions=8, insert_buffer=16, mergers=1, lanes=2)
    rng = np.random.default_rng(3)
    main, batch = sorted_tuples(rng, "skewed", 40), sorted_tuples(rng, "skewed", 9)
    assert split(main, batch, params) == expected(main, batch, params)
