"""A banked memory answers each search and each read once, at its port, from the word asked for."""

import pytest
from amaranth.hdl import *
from amaranth.lib import data

from hw.rtl import banked_memory, searcher
from hw.rtl.banked_memory import BankedMemory
from hw.rtl.seeker import comes_before
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import BY_WORD, moves
from tests.formal.test_stream_rules import Harness, inside_buffer, streams_of

pytestmark = pytest.mark.formal

#: Cycles from a search that has its bank to its answer, and from an address to its word; without
#: hops.
SEARCH, READ = 7, 7
#: Bits of a key.
NARROW = 3


def delayed(m, name, value, cycles):
    """What a value was so many cycles ago."""
    for n in range(cycles):
        later = Signal(len(value), name=f"{name}_{n}")
        m.d.sync += later.eq(value)
        value = later
    return value


def prefix_before(keys, bound):
    """How many keys come before the first that does not come before the bound."""
    count = C(0)
    for key in reversed(keys):
        count = Mux(comes_before(key, bound), count + 1, 0)
    return count


def follow(m, rules, dut, looks):
    """Any one address; the word that is there for who asks now; whether one is on its way."""
    address = rules.constant(dut.address_bits)
    lanes = dut.params.lanes
    write = dut.write.writes
    comes = write.valid & (write.payload.address == address)
    word = Signal(write.payload.word.shape())
    bits = Value.cast(write.payload.word)
    on_the_way = delayed(m, "comes_1", comes, 1)
    # What who asks now finds in its block, though it is not there yet: the newest first.
    passing = [
        (delayed(m, f"comes_{n}", comes, n), word.shape()(delayed(m, f"word_{n}", bits, n)))
        for n in range(2, 4 + dut.hops)
    ]
    arrives, arriving = passing[-1]
    with m.If(arrives):
        m.d.sync += word.eq(arriving)
    for bank, port in enumerate(looks):
        m.d.comb += port.addr.eq(address[dut.bank_bits :])
        here = address[: dut.bank_bits] == bank
        keys = Cat(word[lane].key for lane in range(lanes))
        m.d.comb += Assert(~here | (port.data == keys))
    seen = Signal.like(word)
    m.d.comb += seen.eq(word)
    for passes, newer in reversed(passing):
        with m.If(passes):
            m.d.comb += seen.eq(newer)
    return address, seen, comes | on_the_way


@pytest.fixture
def narrow(monkeypatch):
    """Short keys and rids: ways and times are the same, the proof is smaller."""
    key, rid = signed(NARROW), unsigned(2)
    word = data.ArrayLayout(data.StructLayout({"key": key, "rid": rid}), BY_WORD.lanes)
    for module in (banked_memory, searcher):
        monkeypatch.setattr(module, "key_shape", lambda params: key)
        monkeypatch.setattr(module, "bound_shape", lambda params: signed(NARROW + 1))
        monkeypatch.setattr(module, "word_layout", lambda params: word)


@pytest.mark.parametrize("hops", [0, 1])
def test_a_banked_memory_answers_each_search_once_from_its_word(tmp_path, narrow, hops):
    dut = BankedMemory(BY_WORD, 8, 2, hops=hops)
    asks, reads = SEARCH + 2 * hops, READ + 2 * hops
    looks = [cells.read_port(domain="comb") for cells in dut.keys]

    def claims(m, rules):
        address, word, on_the_way = follow(m, rules, dut, looks)
        lanes = range(dut.params.lanes)
        for n, port in enumerate(dut.searches):
            asked = dut.asking[n].o
            request = asked.payload
            taken = moves(asked)
            for valid, bits in inside_buffer(dut.asking[n]):
                ask = dut.ask(bits)
                bank = 1 << ask.address[: dut.bank_bits]
                m.d.comb += Assert(~valid | (ask.banks == bank))
            m.d.comb += Assert(port.found.valid == delayed(m, f"asked_{n}", taken, asks))
            # No word is searched before it is there.
            about = (request.address == address) & asked.valid
            m.d.comb += Assume(~(about & on_the_way))
            due = delayed(m, f"due_{n}", taken & about, asks)
            bound = delayed(m, f"bound_{n}", request.bound, asks).as_signed()
            keys = [
                delayed(m, f"key_{n}_{lane}", word[lane].key, asks).as_signed() for lane in lanes
            ]
            m.d.comb += Assert(~due | (port.found.count == prefix_before(keys, bound)))
        whole = dut.counter.addresses
        came = delayed(m, "whole", moves(whole), reads)
        m.d.comb += Assert(dut.read.words.valid == came)
        about = whole.valid & (whole.payload == address)
        m.d.comb += Assume(~(about & on_the_way))
        due = delayed(m, "whole_due", moves(whole) & about, reads)
        for lane in lanes:
            right = delayed(m, f"whole_right_{lane}", word[lane].key, reads)
            m.d.comb += Assert(~due | (dut.read.words.payload[lane].key.as_unsigned() == right))

    inputs, outputs = streams_of(dut)
    prove(Harness(dut, inputs, outputs, claims, police=False), tmp_path, steps=asks + 2)
