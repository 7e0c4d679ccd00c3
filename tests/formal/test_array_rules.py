"""Readers, writers, memory and splitter lose, double or invent nothing: proofs.

All count: what came in is what went out and what is inside, for all time, by induction.
"""

import pytest
from amaranth.hdl import *

from hw.rtl.arrays import TupleReader, TupleWriter, WideReader, WideWriter, WordReader
from hw.rtl.memory import BlockMemory, ReadShare, WriteShare
from hw.rtl.splitter import Splitter
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import counted, equal, in_buffer, in_queue, moves
from tests.formal.test_stream_rules import SMALL, Harness, streams_of

pytestmark = pytest.mark.formal

LANE_BITS = 1  # SMALL has two lanes


def prove_of(dut, claims, where, steps=4, *, police=False):
    """Prove the claims of a component whose streams are all free but keep the contract."""
    # That its outputs keep it too is mostly in test_stream_rules and test_probing_rules.
    prove(Harness(dut, *streams_of(dut), claims, police=police), where, steps)


class ShortShare(ReadShare):
    """A read share with few tickets: the control is the same, the proof is smaller."""

    TICKETS = 4


def places_of(m, queue):
    """(used, payload bits) of each place of a short queue, the one on offer first."""
    bits = (queue.depth - 1).bit_length()
    places = [(queue.o.valid, Value.cast(queue.o.payload))]
    for place, port in enumerate(queue.looked_at):
        m.d.comb += port.addr.eq(place)
        used = Signal(name=f"in_use_{place}")
        m.d.comb += used.eq((place - queue.read_at)[:bits] < queue.level)
        places.append((used, port.data))
    return places


def test_a_block_memory_answers_each_word_once(tmp_path):
    dut = BlockMemory(2, 4)

    def claims(m, rules):
        request = dut.read.requests
        m.d.comb += Assume(request.payload.count != 0)
        came = counted(m, "came", Mux(moves(request), request.payload.count, 0))
        went = counted(m, "went", moves(dut.read.words))
        equal(m, came, went + dut.counter.left + dut.fetched + in_buffer(m, dut.out))

    prove_of(dut, claims, tmp_path)


def test_a_read_share_gives_each_reader_its_own_words(tmp_path):
    dut = ShortShare(1, 1, 2)
    dut.tickets.looked_at = [dut.tickets.storage.read_port(domain="comb") for _ in range(4)]

    def claims(m, rules):
        in_queue(m, rules, dut.tickets)
        places = places_of(m, dut.tickets)
        first, finished = dut.tickets.o.payload, moves(dut.tickets.o)
        # Bursts: each is before the tickets, among them, or served to its end.
        for number, reader in enumerate(dut.readers):
            m.d.comb += Assume(reader.requests.payload.count != 0)
            asked = counted(m, f"asked_{number}", moves(reader.requests))
            served = counted(m, f"served_{number}", finished & (first.source == number))
            chosen = dut.arbiter.o.valid & (dut.arbiter.o.payload.source == number)
            held = [used & (dut.ticket(bits).source == number) for used, bits in places]
            equal(m, asked, served + chosen + sum(held))
            mine = dut.tickets.o.valid & (first.source == number)
            m.d.comb += Assert(~moves(reader.words) | mine)
        # Words: as many as the first ticket says, then the next one's.
        given = Signal(2)
        word = moves(dut.port.words)
        m.d.comb += Assert(word == sum(moves(reader.words) for reader in dut.readers))
        with m.If(word):
            m.d.sync += given.eq(Mux(finished, 0, given + 1))
        m.d.comb += Assert(given == dut.done)
        m.d.comb += Assert(finished == (word & (given + 1 == first.count)))

    prove_of(dut, claims, tmp_path)


def test_a_write_share_passes_each_word_once(tmp_path):
    dut = WriteShare(2, 2, 2)

    def claims(m, rules):
        came = counted(m, "came", sum(moves(writer.writes) for writer in dut.writers))
        went = counted(m, "went", moves(dut.port.writes))
        equal(m, came, went + dut.port.writes.valid)

    prove_of(dut, claims, tmp_path)


def owed_words(m, rules, reader):
    """Memory gives what it was asked for, and no more: a word reader knows what it is owed."""
    request, words = reader.read.requests, reader.read.words
    offered = Mux(request.valid, request.payload.count, 0)
    due = Signal(6)
    m.d.sync += due.eq(due + Mux(moves(request), request.payload.count, 0) - moves(words))
    m.d.comb += Assume(~words.valid | (due != 0))
    m.d.comb += Assert(due + offered + in_queue(m, rules, reader.queue) == reader.owed)
    m.d.comb += Assert(~request.valid | (request.payload.count != 0))
    m.d.comb += Assert(reader.owed < reader.depth)
    return offered


def test_a_word_reader_asks_for_its_jobs_and_always_has_room(tmp_path):
    dut = WordReader(2, 4, depth=8, burst=4)

    def claims(m, rules):
        request, words = dut.read.requests, dut.read.words
        job = counted(m, "job", Mux(moves(dut.jobs), dut.jobs.payload.count, 0))
        asked = counted(m, "asked", Mux(moves(request), request.payload.count, 0))
        equal(m, job, asked + dut.left + owed_words(m, rules, dut))
        with m.If(rules.started):
            m.d.comb += Assert(~words.valid | words.ready)

    prove_of(dut, claims, tmp_path)


def frame_of_job(m, dut, words, inside, width):
    """A job of n tuples gives n and an end; its words are those that the word reader has."""
    job = dut.jobs.payload.count
    came = counted(m, "came", Mux(moves(dut.jobs), job + 1, 0))
    went = counted(m, "went", Mux(moves(dut.tuples), width(dut.tuples.payload), 0))
    equal(m, came, went + inside + Mux(dut.busy, dut.left + 1, 0))
    ordered = counted(m, "ordered", Mux(moves(dut.reader.jobs), dut.reader.jobs.payload.count, 0))
    taken = counted(m, "taken", moves(dut.reader.words))
    equal(m, ordered, taken + Mux(dut.busy & (dut.left != 0), words, 0))


def test_a_tuple_reader_gives_each_tuple_of_a_job_and_one_end(tmp_path):
    dut = TupleReader(SMALL, 4)

    def claims(m, rules):
        m.d.comb += Assume(dut.jobs.payload.first + dut.jobs.payload.count <= SMALL.subwindow)
        m.d.comb += Assert(~dut.busy | (dut.left <= SMALL.subwindow))
        words = (dut.lane + dut.left + 1) >> LANE_BITS
        frame_of_job(m, dut, words, in_buffer(m, dut.out), lambda token: C(1))

    prove_of(dut, claims, tmp_path)


def test_a_wide_reader_gives_each_tuple_of_a_job_and_one_end(tmp_path):
    dut = WideReader(SMALL, 4, depth=8)

    def width(token):
        return token.count + token.end

    def claims(m, rules):
        m.d.comb += Assume(dut.jobs.payload.count <= SMALL.subwindow)
        m.d.comb += Assert(~dut.busy | (dut.left <= SMALL.subwindow))
        m.d.comb += Assert(~dut.busy | (dut.none == (dut.left == 0)))
        words = (dut.left + 1) >> LANE_BITS
        frame_of_job(m, dut, words, 0, width)
        # No word can come while the end is on offer, and so its payload stays too.
        owed_words(m, rules, dut.reader)
        m.d.comb += Assert(dut.reader.left + dut.reader.owed == Mux(dut.busy, words, 0))

    prove_of(dut, claims, tmp_path, police=True)


def written_words(m, dut, tuples, words, inside):
    """Words of a frame go to places one after the other: address is where the next one goes."""
    base = Signal(4)
    with m.If(moves(dut.jobs)):
        m.d.sync += base.eq(dut.jobs.payload.address)
    with m.If(dut.busy):
        m.d.comb += Assert(dut.address == (base + words)[:4])
    jobs = counted(m, "jobs", moves(dut.jobs))
    ends = counted(m, "ends", moves(dut.tuples) & dut.tuples.payload.end)
    equal(m, jobs, ends + dut.busy)
    came = counted(m, "came", tuples)
    went = counted(m, "went", moves(dut.write.writes))
    equal(m, came, went + inside)


def test_a_tuple_writer_writes_each_word_of_a_frame_once(tmp_path):
    dut = TupleWriter(SMALL, 4)

    def claims(m, rules):
        token = dut.tuples.payload
        taken = moves(dut.tuples)
        number = Signal(6)  # tuples of this frame so far
        with m.If(moves(dut.jobs)):
            m.d.sync += number.eq(0)
        with m.Elif(taken & ~token.end):
            m.d.sync += number.eq(number + 1)
        with m.If(dut.busy):
            m.d.comb += Assert(dut.lane == number[:LANE_BITS])
        with m.Else():
            m.d.comb += Assert(dut.lane == 0)
        # A word is complete with its last lane, or with the end of a frame inside of it.
        complete = taken & Mux(token.end, number[:LANE_BITS] != 0, number[:LANE_BITS] == 1)
        written_words(m, dut, complete, number >> LANE_BITS, in_buffer(m, dut.out))

    prove_of(dut, claims, tmp_path)


def test_a_wide_writer_writes_each_word_of_a_frame_once(tmp_path):
    dut = WideWriter(SMALL, 4)

    def claims(m, rules):
        word = moves(dut.tuples) & ~dut.tuples.payload.end
        number = Signal(6)
        with m.If(moves(dut.jobs)):
            m.d.sync += number.eq(0)
        with m.Elif(word):
            m.d.sync += number.eq(number + 1)
        written_words(m, dut, word, number, C(0))

    prove_of(dut, claims, tmp_path)


def test_a_splitter_answers_each_split_with_a_piece_for_each_merger(tmp_path):
    dut = Splitter(SMALL, 4, 2)

    def claims(m, rules):
        emitting = dut.out.i.valid
        m.d.comb += Assert(~emitting | (dut.number < SMALL.mergers))
        due = Mux(emitting, SMALL.mergers - dut.number, SMALL.mergers)
        came = counted(m, "came", Mux(moves(dut.splits), SMALL.mergers, 0))
        went = counted(m, "went", moves(dut.pieces))
        equal(m, came, went + in_buffer(m, dut.out) + Mux(dut.splits.ready, 0, due))

    prove_of(dut, claims, tmp_path)
