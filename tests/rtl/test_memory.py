"""hw.rtl.memory and hw.rtl.arrays in Amaranth's own simulator."""

import pytest
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.arrays import TupleReader, TupleWriter, WideReader, WordReader
from hw.rtl.memory import BlockMemory, ReadShare, SlowMemory, WriteShare
from hw.spec import JoinParams
from tests.rtl.helpers import (
    get_frame,
    get_words,
    no_pause,
    pauses,
    put_frame,
    run,
    stream_get,
    stream_put,
)

PARAMS = JoinParams(subwindow=64, partitions=8, lanes=4)
MEMORIES = {
    "block": BlockMemory,
    "slow": lambda shape, depth: SlowMemory(
        shape, depth, latency_cycles=5, refresh_every=20, refresh_cycles=7, shared=False
    ),
    "shared": lambda shape, depth: SlowMemory(shape, depth, refresh_every=30, refresh_cycles=4),
}


class Wired(wiring.Component):
    """Components and the connections between their interfaces."""

    def __init__(self, parts, *pairs):
        self.parts, self.pairs = parts, pairs
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        for n, part in enumerate(self.parts):
            m.submodules[f"part_{n}"] = part
        for one, other in self.pairs:
            wiring.connect(m, one, other)
        return m


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("pause", [no_pause, pauses(3)])
def test_bursts_bring_what_was_written(memory, pause):
    dut = MEMORIES[memory](8, 32)
    bursts = [(0, 32), (5, 1), (5, 1), (30, 2), (0, 7)]
    got = []

    async def write(ctx):
        for address in range(32):
            await stream_put(ctx, dut.write.writes, {"address": address, "word": 3 * address})
        for address, count in bursts:
            await stream_put(ctx, dut.read.requests, {"address": address, "count": count})

    async def read(ctx):
        for _ in range(sum(count for _, count in bursts)):
            got.append(await stream_get(ctx, dut.read.words, pause()))

    run(dut, write, read)
    assert got == [3 * (a + n) for a, count in bursts for n in range(count)]


def test_a_write_is_seen_by_the_next_read():
    dut = BlockMemory(8, 4)
    got = []

    async def process(ctx):
        for value in (1, 2, 3):
            await stream_put(ctx, dut.write.writes, {"address": 2, "word": value})
            await stream_put(ctx, dut.read.requests, {"address": 2, "count": 1})
            got.append(await stream_get(ctx, dut.read.words))

    run(dut, process)
    assert got == [1, 2, 3]


def test_readers_share_a_port_and_each_gets_its_own_words():
    memory = BlockMemory(8, 32)
    share = ReadShare(8, 5, 3)
    readers = [WordReader(8, 5, depth=8, burst=4) for _ in range(3)]
    pairs = [(reader.read, share.readers[n]) for n, reader in enumerate(readers)]
    bench = Wired([memory, share, *readers], (share.port, memory.read), *pairs)
    jobs = [[(0, 9), (3, 1)], [(10, 10)], [(20, 12), (0, 0), (1, 2)]]
    got = [[], [], []]

    async def fill(ctx):
        for address in range(32):
            await stream_put(ctx, memory.write.writes, {"address": address, "word": address})
        for number in range(3):
            for address, count in jobs[number]:
                job = {"address": address, "count": count}
                await stream_put(ctx, readers[number].jobs, job)

    def taker(number):
        pause = pauses(number)

        async def take(ctx):
            for _ in range(sum(count for _, count in jobs[number])):
                got[number].append(await stream_get(ctx, readers[number].words, pause()))

        return take

    run(bench, fill, *(taker(number) for number in range(3)))
    assert got == [[a + n for a, count in job for n in range(count)] for job in jobs]


def test_writers_share_a_port():
    memory = BlockMemory(8, 32)
    share = WriteShare(8, 5, 2)
    bench = Wired([memory, share], (share.port, memory.write))
    got = []

    def writer(number):
        async def write(ctx):
            for address in range(16 * number, 16 * number + 16):
                token = {"address": address, "word": 100 + address}
                await stream_put(ctx, share.writers[number].writes, token)

        return write

    async def read(ctx):
        await ctx.tick().repeat(60)
        await stream_put(ctx, memory.read.requests, {"address": 0, "count": 32})
        for _ in range(32):
            got.append(await stream_get(ctx, memory.read.words))

    run(bench, writer(0), writer(1), read)
    assert got == [100 + address for address in range(32)]


FRAMES = [(0, 0, 13), (4, 0, 0), (4, 3, 5), (4, 2, 1), (9, 4, 4)]


def test_frames_written_are_frames_read():
    """Tuples go to memory through a writer and come back through a reader, from any tuple on."""
    writer, reader = TupleWriter(PARAMS, 5), TupleReader(PARAMS, 5)
    memory = BlockMemory(writer.write.writes.payload.word.shape(), 32)
    bench = Wired(
        [writer, reader, memory], (writer.write, memory.write), (reader.read, memory.read)
    )
    stored = {0: [(n, n + 50) for n in range(13)], 4: [(-n, n) for n in range(9)], 9: [(5, 5)] * 8}
    got = []

    async def process(ctx):
        for address, tuples in stored.items():
            await stream_put(ctx, writer.jobs, {"address": address})
            await put_frame(ctx, writer.tuples, tuples, pauses(address))
        await ctx.tick().repeat(4)
        for address, first, count in FRAMES:
            job = {"address": address, "first": first, "count": count}
            await stream_put(ctx, reader.jobs, job)
            got.append(await get_frame(ctx, reader.tuples, pauses(first)))

    run(bench, process)
    assert got == [stored[a][first : first + count] for a, first, count in FRAMES]


@pytest.mark.parametrize("count", [0, 1, 4, 5, 31, 60])
def test_a_wide_reader_frames_words(count):
    reader = WideReader(PARAMS, 4)
    memory = BlockMemory(reader.read.words.payload.shape(), 16)
    bench = Wired([reader, memory], (reader.read, memory.read))
    tuples = [(3 * n, n) for n in range(64)]
    got = []

    async def process(ctx):
        for address in range(16):
            rows = tuples[4 * address : 4 * address + 4]
            word = [{"key": key, "rid": rid} for key, rid in rows]
            await stream_put(ctx, memory.write.writes, {"address": address, "word": word})
        await stream_put(ctx, reader.jobs, {"address": 0, "count": count})
        got.extend(await get_words(ctx, reader.tuples, pauses(count)))

    run(bench, process)
    assert got == tuples[:count]
