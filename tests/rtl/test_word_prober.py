# amaranth: UnusedElaboratable=no
"""WordProber and Searcher in Amaranth's simulator: one word of memory answers each bound."""

import re

import numpy as np
import pytest
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.layouts import main_words, word_layout
from hw.rtl.memory import BlockMemory, SlowMemory
from hw.rtl.searcher import Searcher
from hw.rtl.word_prober import WordProber
from hw.spec import JoinParams
from tests.rtl.helpers import pauses, run, stream_get, stream_put
from tests.rtl.test_prober import target

PARAMS = JoinParams(subwindow=64, partitions=16, lanes=4)
EVERYWHERE = list(range(-3, 133))


class Bench(Elaboratable):
    """A prober, its searcher and the memory of that one."""

    def __init__(self, params, base, memory=BlockMemory):
        self.memory = memory(word_layout(params), base + main_words(params))
        self.prober = WordProber(params, self.memory.address_bits)
        self.searcher = Searcher(params, self.memory.address_bits)

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        m.submodules.prober = self.prober
        m.submodules.searcher = self.searcher
        wiring.connect(m, self.prober.search, self.searcher.search)
        wiring.connect(m, self.searcher.read, self.memory.read)
        return m


def positions_of(keys, frames, *, params=PARAMS, base=0, seed=None, garbage=-9,
                 memory=BlockMemory):
    """The positions of frames of bounds, and the cycles in which bounds were offered; memory
    beyond the keys is garbage.
    """
    keys = np.asarray(keys)
    bench = Bench(params, base, memory)
    prober = bench.prober
    pause = pauses(seed) if seed is not None else lambda: 0
    answers = []
    clock = []

    async def put(ctx):
        padded = [*keys.tolist(), *[garbage] * (params.subwindow - len(keys))]
        for first in range(0, params.subwindow, params.lanes):
            word = [{"key": key, "rid": 0} for key in padded[first : first + params.lanes]]
            write = {"address": base + first // params.lanes, "word": word}
            await stream_put(ctx, bench.memory.write.writes, write)
        ctx.set(prober.rows, len(keys))
        ctx.set(prober.base, base)
        await ctx.tick()
        for bounds in frames:
            for bound in bounds:
                data = {"bound": int(bound), "partition": target(keys, bound, params)}
                await stream_put(ctx, prober.targets, {"data": data, "end": 0}, pause())
            await stream_put(ctx, prober.targets, {"end": 1}, pause())

    async def get(ctx):
        for _ in frames:
            positions = []
            while not (token := await stream_get(ctx, prober.positions, pause())).end:
                positions.append(token.data)
            answers.append(positions)

    async def count(ctx):
        while len(answers) < len(frames):
            await ctx.tick()
            clock.append(ctx.get(prober.targets.valid))

    run(bench, put, get, count)
    return answers, sum(clock)


def expected(keys, bounds):
    return [int(np.searchsorted(keys, bound, "left")) for bound in bounds]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_every_bound_finds_its_position(seed):
    keys = np.arange(0, 128, 2)
    answers, _ = positions_of(keys, [EVERYWHERE, [], EVERYWHERE[::-1]], seed=seed)
    assert answers == [expected(keys, EVERYWHERE), [], expected(keys, EVERYWHERE[::-1])]


def test_a_bound_takes_a_cycle():
    _, busy = positions_of(np.arange(64), [EVERYWHERE])
    assert busy <= len(EVERYWHERE) + 2


def test_a_memory_that_stalls_holds_up_but_changes_nothing():
    keys = np.arange(0, 128, 2)
    answers, _ = positions_of(keys, [EVERYWHERE, EVERYWHERE[::-1]], memory=SlowMemory)
    assert answers == [expected(keys, EVERYWHERE), expected(keys, EVERYWHERE[::-1])]


@pytest.mark.parametrize("garbage", [-9, 1 << 30])
@pytest.mark.parametrize("rows", [0, 1, 3, 4, 5, 61, 63])
def test_memory_beyond_the_rows_does_not_count(rows, garbage):
    keys = np.arange(rows) * 3
    bounds = range(-2, 194, 4)
    assert positions_of(keys, [bounds], garbage=garbage)[0] == [expected(keys, bounds)]


def test_equal_keys_and_the_ends_of_the_keys():
    smallest, largest = -(1 << 31), (1 << 31) - 1
    keys = np.array([smallest] * 3 + [1] * 9 + [7] * 20 + [largest] * 5)
    bounds = [smallest, smallest + 1, 0, 1, 2, 7, 8, largest, largest + 1]
    assert positions_of(keys, [bounds], seed=3)[0] == [expected(keys, bounds)]


@pytest.mark.parametrize(
    "params",
    [JoinParams(subwindow=32, partitions=32, lanes=1),
     JoinParams(subwindow=64, partitions=8, lanes=8, key_bits=64)],
    ids=["one lane", "eight lanes, 64 bits"],
)
def test_other_sizes_and_another_base(params):
    scale = 1 << (params.key_bits - 9)
    keys = (np.arange(params.subwindow - 3) - 10) * scale
    bounds = [b * scale // 2 for b in range(-30, 70)]
    base = main_words(params)
    assert positions_of(keys, [bounds], params=params, base=base)[0] == [expected(keys, bounds)]


def test_partitions_of_several_words_are_refused():
    message = "a WordProber needs partitions of a memory word, 4 tuples, not 8"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        WordProber(JoinParams(subwindow=64, partitions=8, lanes=4), 4)
