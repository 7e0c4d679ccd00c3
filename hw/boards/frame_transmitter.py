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
    heard, ack, allowed   the host has acknowledged up to `ack` and allows so many frames from it;
                 not in two cycles running
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
        self.layout = data.StructLayout(
            {"begin": range(RING), "length": range(MOST_PAYLOAD + 1)}
        )
        self.places = Array(Signal(self.layout, name=f"place_{n}") for n in range(WINDOW))
        self.limit = Signal(8)
        self.unsettled = Signal()  # what is on the way is about to change
        self._collect(m)
        self._acknowledge(m)
        self._send(m)
        return m

    def _collect(self, m):
        """Fill the open frame; close it when it is full or flushed."""
        begin = Signal(range(RING))
        length = Signal(range(MOST_PAYLOAD + 1))
        # The open frame has a place of its own from its first byte on; behind a frame that is
        # closed there is none for a cycle, in which they are counted.
        place, closes = Signal(), Signal()
        m.d.sync += place.eq(((self.closed - self.base)[:NUMBER_BITS] < WINDOW) & ~closes)
        m.d.comb += self.payload.ready.eq(place)
        m.d.comb += self.write.addr.eq(begin + length)
        m.d.comb += self.write.data.eq(self.payload.payload.byte)
        m.d.comb += self.write.en.eq(self.payload.valid & place)
        full = self.payload.payload.flush | (length == MOST_PAYLOAD - 1)
        m.d.comb += closes.eq(self.write.en & full)
        with m.If(self.write.en):
            m.d.sync += length.eq(length + 1)
        with m.If(closes):
            closing = self.places[self.closed[:SLOT_BITS]]
            m.d.sync += [closing.begin.eq(begin), closing.length.eq(length + 1)]
            # Every frame has the room of a full one: its place tells whether there is any.
            m.d.sync += begin.eq(begin + MOST_PAYLOAD)
            m.d.sync += length.eq(0)
            m.d.sync += self.closed.eq(self.closed + 1)
        with m.If(self.clear):
            m.d.sync += [begin.eq(0), length.eq(0), self.closed.eq(0)]

    def _acknowledge(self, m):
        """Count what was heard from the base in one cycle, judge it in the next."""
        ack, allowed = Signal(NUMBER_BITS), Signal(8)
        done, known, on_the_way = (
            Signal(NUMBER_BITS, name=name) for name in ("done", "known", "on_the_way")
        )
        heard, again = Signal(), Signal()
        m.d.sync += [heard.eq(self.heard), again.eq(self.again)]
        m.d.sync += [ack.eq(self.ack), allowed.eq(self.allowed), done.eq(self.ack - self.base)]
        m.d.sync += [known.eq(self.reached - self.base), on_the_way.eq(self.sent - self.base)]
        with m.If(heard & (done <= known)):
            m.d.sync += self.base.eq(ack)
            m.d.sync += self.limit.eq(allowed)
            with m.If(again | (done > on_the_way)):
                m.d.sync += self.sent.eq(ack)
        with m.Elif(again):
            m.d.sync += self.sent.eq(self.base)
        with m.If(self.clear):
            m.d.sync += [self.base.eq(0), self.sent.eq(0), self.reached.eq(0), self.limit.eq(0)]
            m.d.sync += [heard.eq(0), again.eq(0)]
        # Meanwhile no frame is chosen, so that these numbers stand still.
        m.d.comb += self.unsettled.eq(self.heard | self.again | heard | again | self.clear)

    def _send(self, m):
        """One frame after another: flag, head, payload, checksum, flag."""
        m.submodules.stuffer = stuffer = Stuffer()
        m.submodules.crc = check = checksum()
        wiring.connect(m, stuffer.o, wiring.flipped(self.cable))
        head = Signal(layout_of(FRAME))
        at = Signal(range(MOST_PAYLOAD + 1))
        begin = Signal(range(RING))
        place, allowed = Signal(self.layout), Signal()  # of the frame that is next
        # A byte is chosen in one cycle; sent, and counted in the checksum, from the next on.
        out = stuffer.i.payload
        busy, fresh, covered = Signal(), Signal(), Signal()
        m.d.comb += [check.data.eq(out.byte), check.valid.eq(fresh & covered)]
        m.d.comb += stuffer.i.valid.eq(busy)
        m.d.sync += fresh.eq(0)
        with m.If(stuffer.i.ready):
            m.d.sync += busy.eq(0)

        def put(byte, flag=0, cover=0):
            m.d.sync += [busy.eq(1), fresh.eq(1), covered.eq(cover)]
            m.d.sync += [out.byte.eq(byte), out.flag.eq(flag)]

        with m.FSM():
            with m.State("LOOK"):
                m.d.comb += check.start.eq(1)
                m.d.sync += [at.eq(0), place.eq(self.places[self.sent[:SLOT_BITS]])]
                m.d.sync += allowed.eq(
                    (self.sent != self.closed) & ~self.unsettled
                    & ((self.sent - self.base)[:NUMBER_BITS] < self.limit)
                )
                m.next = "CHOOSE"
            with m.State("CHOOSE"):
                self._choose(m, head, begin, place, allowed)
            with m.State("FLAG"), m.If(~busy):
                put(0, flag=1)
                m.next = "HEAD"
            with m.State("HEAD"), m.If(~busy):
                put(Value.cast(head).word_select(at, 8), cover=1)
                m.d.sync += at.eq(at + 1)
                with m.If(at == FRAME.itemsize - 1):
                    m.d.sync += at.eq(0)
                    m.next = "PAYLOAD"
            with m.State("PAYLOAD"):
                m.d.comb += self.read.addr.eq(begin + at)
                m.next = "BYTE"
                with m.If(at == head.length):
                    m.d.sync += at.eq(0)
                    m.next = "CRC"
            with m.State("BYTE"):
                m.d.comb += self.read.en.eq(0)
                greeting = Array(self.welcome or b"\0")[at]
                with m.If(~busy):
                    put(Mux(head.kind == Kind.WELCOME, greeting, self.read.data), cover=1)
                    m.d.sync += at.eq(at + 1)
                    m.next = "PAYLOAD"
            with m.State("CRC"), m.If(~busy):
                put(check.crc.word_select(at[:2], 8))
                m.d.sync += at.eq(at + 1)
                with m.If(at == 3):
                    m.next = "END"
            with m.State("END"), m.If(~busy):
                put(0, flag=1)
                m.next = "LOOK"

    def _choose(self, m, head, begin, place, allowed):
        """Take what LOOK saw a cycle before, unless something has been heard since."""
        waiting = Signal()
        m.d.comb += waiting.eq(allowed & ~self.unsettled)
        m.d.sync += [head.session.eq(self.session), head.ack.eq(self.expected)]
        m.d.sync += [head.credit.eq(self.credit), head.seq.eq(0), head.length.eq(0)]
        m.d.sync += head.kind.eq(self.kind)
        m.next = "LOOK"
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
