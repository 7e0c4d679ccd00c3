"""An engine behind bytes: what a link carries to it, and what it answers.

A command word is a byte that says what it holds, and then its items: tuples, or keys alone.
An answer is a byte with its stars, and a result where it has one.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.combiner import answer_layout
from hw.rtl.engine_words import word_token
from hw.rtl.layouts import key_shape, layout_of, tuple_layout
from hw.rtl.plumbing import Buffer
from hw.spec import JoinParams
from hw.spec.engine_bytes import ANSWER, RESULT, WORD

__all__ = ["CommandReader", "AnswerWriter", "EnginePort", "answer_byte"]


def answer_byte():
    """A byte of an answer; `flush` where nothing follows before the next command."""
    return data.StructLayout({"byte": 8, "flush": 1})


def _bits(fields):
    """A byte's fields as a layout, the first in the low bits."""
    return data.StructLayout(dict(fields))


class CommandReader(wiring.Component):
    """``bytes`` -> the ``words`` of commands: one byte a cycle."""

    def __init__(self, params: JoinParams):
        self.params = params
        super().__init__(
            {"bytes": In(stream.Signature(8)), "words": Out(stream.Signature(word_token(params)))}
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        tuple_bits = tuple_layout(params).size
        key_bytes, tuple_bytes = key_shape(params).width // 8, tuple_bits // 8
        head = Signal(_bits(WORD))
        lane = Signal(range(params.lanes + 1))
        at = Signal(range(tuple_bytes))
        item = Signal(tuple_bits)
        word = self.words.payload
        # A key alone ends at the top of the shift register as a tuple does, further up.
        shifted = Cat(item, self.bytes.payload)[8:]
        whole = Mux(head.keys, shifted[8 * (tuple_bytes - key_bytes) :], shifted)
        m.d.comb += [word.count.eq(head.count), word.end.eq(head.end)]
        with m.FSM():
            with m.State("HEAD"):
                m.d.comb += self.bytes.ready.eq(1)
                m.d.sync += [Value.cast(head).eq(self.bytes.payload), lane.eq(0), at.eq(0)]
                with m.If(self.bytes.valid):
                    m.next = "ITEMS"
                    with m.If(_bits(WORD)(self.bytes.payload).count == 0):
                        m.next = "WORD"
            with m.State("ITEMS"):
                m.d.comb += self.bytes.ready.eq(1)
                with m.If(self.bytes.valid):
                    m.d.sync += [item.eq(shifted), at.eq(at + 1)]
                    with m.If(at == Mux(head.keys, key_bytes, tuple_bytes) - 1):
                        m.d.sync += [at.eq(0), lane.eq(lane + 1)]
                        for n in range(params.lanes):
                            with m.If(lane == n):
                                m.d.sync += Value.cast(word.data[n]).eq(whole)
                        with m.If(lane + 1 == head.count):
                            m.next = "WORD"
            with m.State("WORD"):
                m.d.comb += self.words.valid.eq(1)
                with m.If(self.words.ready):
                    m.next = "HEAD"
        return m


class AnswerWriter(wiring.Component):
    """``answers`` -> ``bytes``: one a cycle."""

    def __init__(self, params: JoinParams):
        super().__init__(
            {
                "answers": In(stream.Signature(answer_layout(params))),
                "bytes": Out(stream.Signature(answer_byte())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        answer = self.answers.payload
        head = Signal(_bits(ANSWER))
        for name in ("stars", "side", "last", "present"):
            m.d.comb += head[name].eq(answer[name])
        m.d.comb += head.reply.eq(answer.data.reply)
        result = Signal(layout_of(RESULT))
        m.d.comb += [result.core.eq(answer.data.core), result.number.eq(answer.data.number)]
        for name in ("start", "end"):
            m.d.comb += result[name].eq(answer.data.record[name])
        at = Signal(range(RESULT.itemsize + 1))  # 0 is the head
        last = Signal()
        m.d.comb += last.eq(at == Mux(answer.present, RESULT.itemsize, 0))
        whole = Cat(head, result)
        m.d.comb += self.bytes.payload.byte.eq(whole.word_select(at, 8))
        m.d.comb += self.bytes.payload.flush.eq(last & answer.last)
        m.d.comb += self.bytes.valid.eq(self.answers.valid)
        m.d.comb += self.answers.ready.eq(self.bytes.ready & last)
        with m.If(self.bytes.valid & self.bytes.ready):
            m.d.sync += at.eq(Mux(last, 0, at + 1))
        return m


class EnginePort(wiring.Component):
    """``engine`` with its ``commands`` and ``answers`` as bytes; ``restart`` is the engine's."""

    def __init__(self, params: JoinParams, engine):
        self.params, self.engine = params, engine
        super().__init__(
            {
                "commands": In(stream.Signature(8)),
                "answers": Out(stream.Signature(answer_byte())),
                "restart": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.engine = self.engine
        reader, writer = CommandReader(self.params), AnswerWriter(self.params)
        # Whether there is room for a byte is known far from who takes an answer.
        answers = Buffer(self.engine.answers.payload.shape())
        for name, part in (("reader", reader), ("writer", writer), ("buffer", answers)):
            m.submodules[name] = ResetInserter(self.restart)(part)
        m.d.comb += self.engine.restart.eq(self.restart)
        wiring.connect(m, wiring.flipped(self.commands), reader.bytes)
        wiring.connect(m, reader.words, self.engine.words)
        wiring.connect(m, self.engine.answers, answers.i)
        wiring.connect(m, answers.o, writer.answers)
        wiring.connect(m, writer.bytes, wiring.flipped(self.answers))
        return m
