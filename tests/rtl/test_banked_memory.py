# amaranth: UnusedElaboratable=no
"""BankedMemory in Amaranth's simulator: many probers of one main array in block RAM."""

import random

import pytest
from amaranth.hdl import Fragment

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


async def search(ctx, port, wanted, found):
    """Ask for (address, bound), as fast as they are taken; note the counts that come."""
    waiting = list(wanted)
    while len(found) < len(wanted):
        ctx.set(port.requests.valid, bool(waiting))
        if waiting:
            ctx.set(port.requests.payload, {"address": waiting[0][0], "bound": waiting[0][1]})
        _, _, answer, went = await ctx.tick().sample(port.found, port.requests.ready)
        if waiting and went:
            waiting.pop(0)
        if answer.valid:
            found.append(answer.count)
    ctx.set(port.requests.valid, 0)


def counts_of(wanted, version=0):
    """How many keys of each word come before its bound."""
    return [
        sum(lane["key"] < bound for lane in word_of(address, version)) for address, bound in wanted
    ]


def around(rng, address):
    """A bound before, in or behind the keys of that word."""
    return address, 8 * address + rng.randrange(-1, 6)


@pytest.mark.parametrize(("ports", "hops"), [(2, 0), (3, 0), (8, 0), (8, 2)])
def test_every_search_is_answered_in_order(ports, hops):
    memory = BankedMemory(PARAMS, DEPTH, ports, hops=hops)
    rng = random.Random(ports)
    wanted = [[around(rng, rng.randrange(DEPTH)) for _ in range(40)] for _ in range(ports)]
    wanted[-1] = [around(rng, 8) for _ in range(40)]  # one bank, while others want it too
    found = [[] for _ in wanted]
    ready = []

    async def write(ctx):
        await fill(ctx, memory, range(DEPTH))
        ready.append(True)

    def prober(number):
        async def process(ctx):
            while not ready:
                await ctx.tick()
            await search(ctx, memory.searches[number], wanted[number], found[number])

        return process

    run(memory, write, *map(prober, range(ports)))
    assert found == list(map(counts_of, wanted))


@pytest.mark.parametrize("hops", [0, 1])
def test_a_search_takes_a_cycle_and_is_answered_eight_and_twice_the_hops_later(hops):
    memory = BankedMemory(PARAMS, DEPTH, 2, hops=hops)
    cycles = []
    port = memory.searches[1]

    async def count(ctx):
        await fill(ctx, memory, range(DEPTH))
        wanted = [(address, 8 * address + 2) for address in range(12)]
        for cycle in range(21 + 2 * hops):
            ctx.set(port.requests.valid, bool(wanted))
            if wanted:
                address, bound = wanted.pop(0)
                ctx.set(port.requests.payload, {"address": address, "bound": bound})
            _, _, answer, ready = await ctx.tick().sample(port.found, port.requests.ready)
            assert ready or not wanted
            if answer.valid:
                assert answer.count == 2
                cycles.append(cycle)

    run(memory, count)
    assert cycles == list(range(8 + 2 * hops, 20 + 2 * hops))


def test_searches_in_different_banks_are_taken_at_once():
    memory = BankedMemory(PARAMS, DEPTH, 2 * BankedMemory.BANKS)

    async def ask(ctx):
        await fill(ctx, memory, range(DEPTH))
        await ctx.tick().repeat(2)  # the last word is there, and holds up nobody
        for number, port in enumerate(memory.searches):
            address = 5 * number  # of each half of the ports one to each bank
            ctx.set(port.requests.payload, {"address": address, "bound": 8 * address + number % 5})
            ctx.set(port.requests.valid, 1)
        for port in memory.searches:
            assert ctx.get(port.requests.ready)
        await ctx.tick()
        for port in memory.searches:
            ctx.set(port.requests.valid, 0)
        await ctx.tick().repeat(7)
        for number, port in enumerate(memory.searches):
            assert ctx.get(port.found.valid)
            assert ctx.get(port.found.count) == number % 5

    run(memory, ask)


@pytest.mark.parametrize("hops", [0, 1])
def test_one_array_is_read_whole_while_another_is_written(hops):
    memory = BankedMemory(PARAMS, DEPTH, 2, hops=hops)
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

    async def disturb(ctx):
        while len(words) < 4:
            await ctx.tick()
        wanted = [(address, 8 * address) for address in range(DEPTH // 2)]
        await search(ctx, memory.searches[0], wanted, [])

    async def check(ctx):
        while len(words) < DEPTH // 2:
            await ctx.tick()
        await ctx.tick().repeat(8)
        found = []
        wanted = [(address, 8 * address) for address in range(DEPTH // 2, DEPTH)]
        await search(ctx, memory.searches[1], wanted, found)
        assert found == counts_of(wanted, version=3)

    run(memory, write, read_whole, disturb, check)
    assert words == [word_of(address) for address in range(DEPTH // 2)]


@pytest.mark.parametrize("hops", [0, 1])
def test_a_word_comes_eight_cycles_and_twice_the_hops_after_its_request(hops):
    memory = BankedMemory(PARAMS, DEPTH, 2, hops=hops)
    cycles = []

    async def count(ctx):
        await fill(ctx, memory, range(DEPTH))
        ctx.set(memory.read.words.ready, 1)
        ctx.set(memory.read.requests.payload, {"address": 3, "count": 2})
        for cycle in range(14):
            ctx.set(memory.read.requests.valid, cycle == 0)
            _, _, valid = await ctx.tick().sample(memory.read.words.valid)
            if valid:
                cycles.append(cycle)

    run(memory, count)
    assert cycles == [8 + 2 * hops, 9 + 2 * hops]


def test_a_chip_wide_memory_has_a_hop_more(monkeypatch):
    near = BlockCore(PARAMS, slots=1)
    hops = BlockCore(PARAMS, slots=1, hops=2)
    monkeypatch.setattr(BlockCore, "NEAR", 2 * PARAMS.subwindow - 1)
    far = BlockCore(PARAMS, slots=1)
    for core in (near, far, hops):
        Fragment.get(core, None)
    assert [core.memory.hops for core in (near, far, hops)] == [0, 1, 2]


def test_partitions_of_several_words_are_refused():
    with pytest.raises(
        ValueError,
        match=r"^block RAM serves partitions of a memory word, 4 tuples, not 8$",
    ):
        BlockCore(JoinParams(subwindow=32, partitions=4, lanes=4))
