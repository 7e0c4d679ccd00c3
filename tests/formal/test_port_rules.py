"""An engine's byte port loses, doubles and changes no byte: proofs."""

import pytest
from amaranth.hdl import *

from hw.rtl.engine_port import AnswerWriter, CommandReader
from hw.rtl.layouts import key_shape, tuple_layout
from hw.spec.engine_bytes import RESULT
from tests.formal.proofs import Inside, prove
from tests.formal.test_probing_rules import moves
from tests.formal.test_stream_rules import Harness
from tests.formal.test_tree_rules import SMALL

pytestmark = pytest.mark.formal


def test_a_command_reader_puts_each_byte_into_its_place(tmp_path):
    """Any one byte of a word, followed from the stream of bytes to the word that has it."""
    dut = CommandReader(SMALL)
    inside = Inside(dut)
    tuple_bytes, key_bytes = tuple_layout(SMALL).size // 8, key_shape(SMALL).width // 8
    head, lane, at, item = (inside.signal(name) for name in ("head", "lane", "at", "item"))
    in_head, in_items, in_word = (inside.state(name) for name in ("HEAD", "ITEMS", "WORD"))

    def claims(m, rules):
        count, keys = head[:4], head[5]
        with m.If(in_head & dut.bytes.valid):
            m.d.comb += Assume(dut.bytes.payload[:4] <= SMALL.lanes)
        came = Signal(8)  # bytes of this word
        with m.If(moves(dut.bytes)):
            m.d.sync += came.eq(came + 1)
        with m.If(moves(dut.words)):
            m.d.sync += came.eq(0)
        size = Mux(keys, key_bytes, tuple_bytes)
        m.d.comb += Assert(in_head | in_items | in_word)
        m.d.comb += Assert(in_head == (came == 0))
        m.d.comb += Assert(in_head | (count <= SMALL.lanes))
        with m.If(in_items):
            m.d.comb += Assert((lane < count) & (at < size))
            m.d.comb += Assert(came == 1 + lane * size + at)
        with m.If(in_word):
            m.d.comb += Assert(came == 1 + count * size)
        # The byte that is followed, where it comes in and where it must be in the word.
        own_lane, own_at = rules.constant(4), rules.constant(3)
        m.d.comb += Assume(own_lane < SMALL.lanes)
        value = Signal(8)
        first = Signal(8)
        own = ~in_head & (own_lane < count) & (own_at < size)
        with m.If(moves(dut.bytes) & own & (came == 1 + own_lane * size + own_at)):
            m.d.sync += value.eq(dut.bytes.payload)
        with m.If(moves(dut.bytes) & (came == 0)):
            m.d.sync += first.eq(dut.bytes.payload)
        m.d.comb += Assert(in_head | (head == first))
        word = dut.words.payload
        there = Value.cast(word.data).word_select(own_lane * tuple_bytes + own_at, 8)
        with m.If(own & (in_word | (lane > own_lane))):
            m.d.comb += Assert(there == value)
        with m.If(in_items & own & (lane == own_lane) & (at > own_at)):
            m.d.comb += Assert(item.word_select((tuple_bytes + own_at - at)[:4], 8) == value)
        with m.If(dut.words.valid):
            m.d.comb += Assert((word.count == first[:4]) & (word.end == first[4]))

    prove(Harness(dut, [dut.bytes], [dut.words], claims), tmp_path, steps=2)


def test_an_answer_writer_sends_each_byte_of_an_answer_once(tmp_path):
    dut = AnswerWriter(SMALL)
    at = Inside(dut).signal("at")

    def claims(m, rules):
        answer = dut.answers.payload
        last = Mux(answer.present, RESULT.itemsize, 0)
        sent = Signal(8)  # bytes of the answer on offer
        with m.If(moves(dut.bytes)):
            m.d.sync += sent.eq(sent + 1)
        with m.If(moves(dut.answers)):
            m.d.sync += sent.eq(0)
            m.d.comb += Assert(moves(dut.bytes) & (sent == last))
        m.d.comb += Assert((sent == at) & ((sent == 0) | rules.waiting["i0"]))
        m.d.comb += Assert(~dut.answers.valid | (sent <= last))
        # The fields of an answer, each in the bytes that hw.spec.engine_bytes gives it.
        result, record = answer.data, answer.data.record
        head = Cat(_wide(answer.stars, 4), answer.side, answer.last, answer.present,
                   result.reply)
        body = [_wide(result.core, 8), _wide(result.number, 32), _wide(record.start, 32),
                _wide(record.end, 32)]
        m.d.comb += Assert(dut.bytes.payload.byte == Cat(head, *body).word_select(sent, 8))
        flush = answer.last & (sent == last)
        m.d.comb += Assert(dut.bytes.payload.flush == flush)

    prove(Harness(dut, [dut.answers], [dut.bytes], claims), tmp_path, steps=2)


def _wide(value, bits):
    """A value with zeros above it."""
    value = Value.cast(value)
    return Cat(value, C(0, bits - len(value)))
