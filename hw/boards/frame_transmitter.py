"""The sending half of a board's link: payload in frames, each kept until it is acknowledged."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.boards.frame_receiver import RING, checksum
from hw.boards.framing import Stuffer
from hw.rtl.layouts import layout_of
from hw.spec.link import FRAME, MOST_PAYLOAD, WINDOW, Kind

__all__ = ["FrameTransmitter", "sent_payload"]

NUMBER_BITS = 8
SLOT_BITS = (WINDOW - 1).bit_length()


def sent_payload():
    """A byte for the host; with `flush` its frame is closed behind it."""
    return data.StructLayout({"byte": 8, "flush": 1})


class FrameTransmitter(wiring.Component):
    """``payload`` -> DATA frames on ``cable``; other frames between them when they are asked for.

    welcome      bytes of the WELCOME frame, a constant of the board
    session, expected, credit   what every frame's head says
    answer, kind   ask for a frame of that kind; it is `answered` when it begins, and an ACK also
                   by a DATA frame
    heard, ack, allowed   the host has acknowledged up to `ack` and allows so many frames from it
    again        send again from the oldest frame that is not acknowledged
    clear        forget all payload, begin at number 0
    """

    def __init__(self, welcome: bytes):
        if len(welcome) > MOST_PAYLOAD:
            raise ValueError(f"welcome has {MOST_PAYLOAD} bytes at most, not {len(welcome)}")
        self.welcome = welcome
        super().__init__(
            {
                "payload": In(stream.Signature(sent_payload())),
                "cable": Out(stream.Signature(8)),
                "session": In(16),
                "expected": In(NUMBER_BITS),
                "credit": In(range(WINDOW + 1)),
                "answer": In(1),
                "kind": In(Kind),
                "answered": Out(1),
                "heard": In(1),
                "ack": In(NUMBER_BITS),
                "allowed": In(8),
                "again": In(1),
                "clear": In(1),
            }
        )
        #: Frames that are closed, sent and acknowledged, each as the number after the last.
        self.closed = Signal(NUMBER_BITS)
        self.sent = Signal(NUMBER_BITS)
        self.base = Signal(NUMBER_BITS)
        self.reached = Signal(NUMBER_BITS)  # frames before this one were sent at least once

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring = ring = Memory(shape=8, depth=RING, init=[])
        self.write, self.read = ring.write_port(), ring.read_port()
        #: By number modulo the window, where a frame's payload begins and ends.
        places = data.StructLayout({"begin": range(RING), "length": range(MOST_PAYLOAD + 1)})
        self.places = Array(Signal(places, name=f"place_{n}") for n in range(WINDOW))
        self.limit = Signal(8)
        self._collect(m)
        self._acknowledge(m)
        self._send(m)
        return m

    def _collect(self, m):
        """Fill the open frame; close it when it is full or flushed."""
        begin = Signal(range(RING))
        length = Signal(range(MOST_PAYLOAD + 1))
        # The open frame has a place of its own from its first byte on.
        place = Signal()
        m.d.comb += place.eq((self.closed - self.base)[:NUMBER_BITS] < WINDOW)
        m.d.comb += self.payload.ready.eq(place)
        m.d.comb += self.write.addr.eq(begin + length)
        m.d.comb += self.write.data.eq(self.payload.payload.byte)
        m.d.comb += self.write.en.eq(self.payload.valid & place)
        with m.If(self.write.en):
            m.d.sync += length.eq(length + 1)
            with m.If(self.payload.payload.flush | (length == MOST_PAYLOAD - 1)):
                closing = self.places[self.closed[:SLOT_BITS]]
                m.d.sync += [closing.begin.eq(begin), closing.length.eq(length + 1)]
                # Every frame has the room of a full one: its place tells whether there is any.
                m.d.sync += begin.eq(begin + MOST_PAYLOAD)
                m.d.sync += length.eq(0)
                m.d.sync += self.closed.eq(self.closed + 1)
        with m.If(self.clear):
            m.d.sync += [begin.eq(0), length.eq(0), self.closed.eq(0)]

    def _acknowledge(self, m):
        done = Signal(NUMBER_BITS)
        m.d.comb += done.eq(self.ack - self.base)
        known = (self.reached - self.base)[:NUMBER_BITS]
        on_the_way = (self.sent - self.base)[:NUMBER_BITS]
        with m.If(self.heard & (done <= known)):
            m.d.sync += self.base.eq(self.ack)
            m.d.sync += self.limit.eq(self.allowed)
            with m.If(self.again | (done > on_the_way)):
                m.d.sync += self.sent.eq(self.ack)
        with m.Elif(self.again):
            m.d.sync += self.sent.eq(self.base)
        with m.If(self.clear):
            m.d.sync += [self.base.eq(0), self.sent.eq(0), self.reached.eq(0), self.limit.eq(0)]

    def _send(self, m):
        """One frame after another: flag, head, payload, checksum, flag."""
        m.submodules.stuffer = stuffer = Stuffer()
        m.submodules.crc = check = checksum()
        wiring.connect(m, stuffer.o, wiring.flipped(self.cable))
        out = stuffer.i
        head = Signal(layout_of(FRAME))
        at = Signal(range(MOST_PAYLOAD + 1))
        begin = Signal(range(RING))
        m.d.comb += [check.data.eq(out.payload.byte), check.start.eq(0)]
        with m.FSM():
            with m.State("CHOOSE"):
                m.d.comb += check.start.eq(1)
                m.d.sync += at.eq(0)
                self._choose(m, head, begin)
            with m.State("FLAG"):
                m.d.comb += [out.payload.flag.eq(1), out.valid.eq(1)]
                with m.If(out.ready):
                    m.next = "HEAD"
            with m.State("HEAD"):
                m.d.comb += out.payload.byte.eq(Value.cast(head).word_select(at, 8))
                self._step(m, out, check, at, FRAME.itemsize, "PAYLOAD")
            with m.State("PAYLOAD"):
                with m.If(at == head.length):
                    m.d.sync += at.eq(0)
                    m.next = "CRC"
                with m.Else():
                    m.d.comb += self.read.addr.eq(begin + at)
                    m.next = "BYTE"
            with m.State("BYTE"):
                greeting = Array(self.welcome or b"\0")[at]
                m.d.comb += out.payload.byte.eq(
                    Mux(head.kind == Kind.WELCOME, greeting, self.read.data)
                )
                m.d.comb += self.read.en.eq(0)
                m.d.comb += [out.valid.eq(1), check.valid.eq(out.ready)]
                with m.If(out.ready):
                    m.d.sync += at.eq(at + 1)
                    m.next = "PAYLOAD"
            with m.State("CRC"):
                m.d.comb += out.payload.byte.eq(check.crc.word_select(at[:2], 8))
                m.d.comb += out.valid.eq(1)
                with m.If(out.ready):
                    m.d.sync += at.eq(at + 1)
                    with m.If(at == 3):
                        m.next = "END"
            with m.State("END"):
                m.d.comb += [out.payload.flag.eq(1), out.valid.eq(1)]
                with m.If(out.ready):
                    m.next = "CHOOSE"

    def _choose(self, m, head, begin):
        place = self.places[self.sent[:SLOT_BITS]]
        waiting = Signal()
        m.d.comb += waiting.eq(
            (self.sent != self.closed)
            & ((self.sent - self.base)[:NUMBER_BITS] < self.limit)
            & ~self.clear & ~self.again & ~self.heard
        )
        m.d.sync += [head.session.eq(self.session), head.ack.eq(self.expected)]
        m.d.sync += [head.credit.eq(self.credit), head.seq.eq(0), head.length.eq(0)]
        m.d.sync += head.kind.eq(self.kind)
        with m.If(self.answer & ~((self.kind == Kind.ACK) & waiting)):
            m.d.comb += self.answered.eq(1)
            with m.If(self.kind == Kind.WELCOME):
                m.d.sync += head.length.eq(len(self.welcome))
            m.next = "FLAG"
        with m.Elif(waiting):
            m.d.comb += self.answered.eq(self.answer)
            m.d.sync += [head.kind.eq(Kind.DATA), head.seq.eq(self.sent)]
            m.d.sync += [head.length.eq(place.length), begin.eq(place.begin)]
            m.d.sync += self.sent.eq(self.sent + 1)
            with m.If(self.sent == self.reached):
                m.d.sync += self.reached.eq(self.sent + 1)
            m.next = "FLAG"

    def _step(self, m, out, check, at, count, following):
        m.d.comb += [out.valid.eq(1), check.valid.eq(out.ready)]
        with m.If(out.ready):
            m.d.sync += at.eq(at + 1)
            with m.If(at == count - 1):
                m.d.sync += at.eq(0)
                m.next = following
