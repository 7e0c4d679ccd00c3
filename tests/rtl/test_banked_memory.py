# amaranth: UnusedElaboratable=no
"""BankedMemory in Amaranth's simulator: many readers of one main array in block RAM."""

import random

import pytest

from hw.rtl.banked_memory import BankedMemory
from hw.rtl.block_core import BlockCore
from hw.spec import JoinParams
from tests.rtl.helpers import run, stream_get, stream_put

PARAMS = JoinParams(subwindow=32, partitions=8, lanes=4)
DEPTH = 64


def word_of(address, version=0):
    return [{"key": 8 * address + lane - version, "rid": address ^ lane} for lane in range(4)]


async def fill(ctx, memory, addresses, version=0):
    for address in addresses:
        word = word_of(address, version)
        await stream_put(ctx, memory.write.writes, {"address": address, "word": word})


async def read(ctx, port, addresses, taken):
    """Ask for single words, as fast as they are taken; note the keys of each that comes."""
    waiting = list(addresses)
    ctx.set(port.words.ready, 1)
    while len(taken) < len(addresses):
        ctx.set(port.requests.valid, bool(waiting))
        if waiting:
            ctx.set(port.requests.payload, {"address": waiting[0], "count": 1})
        _, _, valid, word, went = await ctx.tick().sample(
            port.words.valid, port.words.payload, port.requests.ready
        )
        if waiting and went:
            waiting.pop(0)
        if valid:
            taken.append([word[lane].key for lane in range(4)])
    ctx.set(port.requests.valid, 0)


def keys_of(addresses, version=0):
    return [[lane["key"] for lane in word_of(address, version)] for address in addresses]


@pytest.mark.parametrize("ports", [1, 3, 8])
def test_every_reader_gets_its_own_words_in_order(ports):
    memory = BankedMemory(PARAMS, DEPTH, ports)
    rng = random.Random(ports)
    wanted = [[rng.randrange(DEPTH) for _ in range(40)] for _ in range(ports)]
    wanted[-1] = [8] * 40  # one bank, while others want it too
    taken = [[] for _ in wanted]
    ready = []

    async def write(ctx):
        await fill(ctx, memory, range(DEPTH))
        ready.append(True)

    def reader(number):
        async def process(ctx):
            while not ready:
                await ctx.tick()
            await read(ctx, memory.keys[number], wanted[number], taken[number])

        return process

    run(memory, write, *map(reader, range(ports)))
    assert taken == [keys_of(addresses) for addresses in wanted]


def test_one_array_is_read_whole_while_another_is_written():
    memory = BankedMemory(PARAMS, DEPTH, 2)
    words = []
    filled = []

    async def write(ctx):
        await fill(ctx, memory, range(DEPTH // 2))
        filled.append(True)
        await fill(ctx, memory, range(DEPTH // 2, DEPTH), version=3)

    async def read_whole(ctx):
        while not filled:
            await ctx.tick()
        burst = {"address": 0, "count": DEPTH // 2}
        ctx.set(memory.read.words.ready, 1)
        await stream_put(ctx, memory.read.requests, burst)
        for _ in range(DEPTH // 2):
            word = await stream_get(ctx, memory.read.words)
            words.append([{"key": word[lane].key, "rid": word[lane].rid} for lane in range(4)])

    async def check(ctx):
        while len(words) < DEPTH // 2:
            await ctx.tick()
        await ctx.tick().repeat(8)
        taken = []
        await read(ctx, memory.keys[1], range(DEPTH // 2, DEPTH), taken)
        assert taken == keys_of(range(DEPTH // 2, DEPTH), version=3)

    run(memory, write, read_whole, check)
    assert words == [word_of(address) for address in range(DEPTH // 2)]


def test_partitions_of_several_words_are_refused():
    with pytest.raises(
        ValueError,
        match=r"^block RAM serves partitions of a memory word, 4 tuples, not 8$",
    ):
        BlockCore(JoinParams(subwindow=32, partitions=4, lanes=4))
