"""A banked memory answers each search and each read once, at its port, from the word asked for."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *

from hw.rtl.banked_memory import BankedMemory
from hw.rtl.seeker import comes_before
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import BY_WORD, moves
from tests.formal.test_stream_rules import Harness, streams_of

pytestmark = pytest.mark.formal

#: Cycles from a search that is taken to its answer, and from an address to its word.
SEARCH, READ = 5, 2


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
    """Any one address, and the keys that were written there last: what its bank has."""
    address = Signal(dut.address_bits)
    kept = Signal.like(address)
    m.d.comb += address.eq(Mux(rules.started, kept, AnySeq(len(kept))))
    m.d.sync += kept.eq(address)
    lanes = dut.params.lanes
    write = dut.write.writes
    word = Signal(write.payload.word.shape())
    written = write.valid & (write.payload.address == address)
    with m.If(written):
        m.d.sync += word.eq(write.payload.word)
    for bank, port in enumerate(looks):
        m.d.comb += port.addr.eq(address[dut.bank_bits :])
        here = address[: dut.bank_bits] == bank
        keys = Cat(word[lane].key for lane in range(lanes))
        m.d.comb += Assert(~here | (port.data == keys))
    return address, word, written


def test_a_banked_memory_answers_each_search_once_from_its_word(tmp_path):
    dut = BankedMemory(BY_WORD, 8, 3)
    looks = [cells.read_port(domain="comb") for cells in dut.keys]

    def claims(m, rules):
        address, word, written = follow(m, rules, dut, looks)
        lanes = range(dut.params.lanes)
        for n, port in enumerate(dut.searches):
            request = port.requests.payload
            taken = moves(port.requests)
            m.d.comb += Assert(port.found.valid == delayed(m, f"asked_{n}", taken, SEARCH))
            # No word is searched while it is written.
            about = (request.address == address) & port.requests.valid
            m.d.comb += Assume(~(about & written))
            count = prefix_before([word[lane].key for lane in lanes], request.bound)
            due = delayed(m, f"due_{n}", taken & about, SEARCH)
            right = delayed(m, f"right_{n}", count, SEARCH)
            m.d.comb += Assert(~due | (port.found.count == right))
        whole = dut.counter.addresses
        came = delayed(m, "whole", moves(whole), READ)
        m.d.comb += Assert(dut.read.words.valid == came)
        about = whole.valid & (whole.payload == address)
        m.d.comb += Assume(~(about & written))
        due = delayed(m, "whole_due", moves(whole) & about, READ)
        for lane in lanes:
            right = delayed(m, f"whole_right_{lane}", word[lane].key, READ)
            m.d.comb += Assert(~due | (dut.read.words.payload[lane].key.as_unsigned() == right))

    inputs, outputs = streams_of(dut)
    prove(Harness(dut, inputs, outputs, claims, police=False), tmp_path, steps=SEARCH + 2)
