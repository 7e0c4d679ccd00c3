"""hw.rtl.indexer in Amaranth's own simulator."""

import pytest

from hw.rtl.indexer import Indexer, index_address_bits
from hw.spec import JoinParams
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

#: Partitions of 8 tuples, which are 4 words.
PARAMS = JoinParams(subwindow=64, partitions=8, lanes=2)
ADDRESS_BITS = 6


def index(addresses, key_of, pause=(no_pause, no_pause, no_pause)):
    """Send words at those addresses; (the words that pass, the entries of the index array)."""
    dut = Indexer(PARAMS, ADDRESS_BITS)
    passed, entries = [], []
    firsts = sum(address % 4 == 0 for address in addresses)

    async def send(ctx):
        for address in addresses:
            word = [{"key": key_of(address, lane), "rid": address} for lane in range(2)]
            write = {"address": address, "word": word}
            await stream_put(ctx, dut.merged.writes, write, pause[0]())

    async def take_main(ctx):
        for _ in addresses:
            write = await stream_get(ctx, dut.main.writes, pause[1]())
            passed.append((write.address, write.word[0].key, write.word[1].key, write.word[1].rid))

    async def take_index(ctx):
        for _ in range(firsts):
            write = await stream_get(ctx, dut.index.writes, pause[2]())
            entries.append((write.address, write.word))
        while len(passed) < len(addresses):
            await ctx.tick()
            assert not ctx.get(dut.index.writes.valid), "an entry too many"

    run(dut, send, take_main, take_index)
    return passed, entries


def key_of(address, lane):
    return 1000 - 10 * address - lane


def expected(addresses):
    passed = [(a, key_of(a, 0), key_of(a, 1), a) for a in addresses]
    return passed, [(a // 4, key_of(a, 0)) for a in addresses if a % 4 == 0]


@pytest.mark.parametrize("slow", [None, 0, 1, 2])
def test_the_first_key_of_each_partition_is_indexed(slow):
    addresses = list(range(32))
    pause = [pauses(end) if end == slow else no_pause for end in range(3)]
    assert index(addresses, key_of, pause) == expected(addresses)


def test_words_may_come_in_any_order_and_in_any_slot():
    addresses = [40, 0, 41, 1, 4, 60, 33, 8, 32, 63]
    assert index(addresses, key_of) == expected(addresses)


def test_negative_keys_stay_negative():
    _, entries = index([0], lambda address, lane: -7)
    assert entries == [(0, -7)]


def test_index_arrays_have_an_entry_for_each_partition_of_their_memory():
    assert index_address_bits(PARAMS, ADDRESS_BITS) == 4
