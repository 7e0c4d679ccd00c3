"""The board's end of the link (hw.spec.link): it answers, the host alone keeps time."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.boards.frame_receiver import FrameReceiver
from hw.boards.frame_transmitter import NUMBER_BITS, FrameTransmitter, sent_payload
from hw.spec.link import WINDOW, Kind

__all__ = ["BoardLink"]

#: From the end of a frame until `credit` counts it.
SETTLE_CYCLES = 2


class BoardLink(wiring.Component):
    """Cable bytes ``receive`` and ``transmit`` <-> payload ``commands`` and ``answers``.

    welcome  what the board says of itself
    restart  for one cycle: a new session begins, whatever was under way is to be forgotten
    alive    a session has begun

    What was damaged or overtaken is asked for again once; if that is lost as well, the host asks
    after a while, so the board needs no clock.
    """

    def __init__(self, welcome: bytes):
        self.receiver = FrameReceiver()
        self.transmitter = FrameTransmitter(welcome)
        super().__init__(
            {
                "receive": In(stream.Signature(8)),
                "transmit": Out(stream.Signature(8)),
                "commands": Out(stream.Signature(8)),
                "answers": In(stream.Signature(sent_payload())),
                "restart": Out(1),
                "alive": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.receiver = receiver = self.receiver
        m.submodules.transmitter = transmitter = self.transmitter
        wiring.connect(m, wiring.flipped(self.receive), receiver.cable)
        wiring.connect(m, transmitter.cable, wiring.flipped(self.transmit))
        wiring.connect(m, receiver.payload, wiring.flipped(self.commands))
        wiring.connect(m, wiring.flipped(self.answers), transmitter.payload)
        session = Signal(16)  # 0 is none
        expected = Signal(NUMBER_BITS)
        asked = Signal()  # for what is missing now
        owed = Signal()
        kind = Signal(Kind)
        m.d.comb += [transmitter.session.eq(session), transmitter.expected.eq(expected)]
        m.d.comb += [transmitter.credit.eq(receiver.credit), self.alive.eq(session != 0)]
        # An answer tells the credit that is left when the frame it is for has been stored.
        settling = Signal(range(SETTLE_CYCLES + 1))
        m.d.sync += settling.eq(Mux(settling == 0, 0, settling - 1))
        m.d.comb += [transmitter.answer.eq(owed & (settling == 0)), transmitter.kind.eq(kind)]
        m.d.comb += [receiver.clear.eq(self.restart), transmitter.clear.eq(self.restart)]
        with m.If(transmitter.answered):
            m.d.sync += owed.eq(0)

        def owe(what):
            m.d.sync += [owed.eq(1), kind.eq(what), settling.eq(SETTLE_CYCLES)]

        # Room for a frame where there was none is news for a sender who waits for it.
        blocked = Signal()
        m.d.sync += blocked.eq(receiver.credit == 0)
        with m.If(blocked & (receiver.credit != 0) & ~owed):
            owe(Kind.ACK)
        head = receiver.head
        m.d.comb += [transmitter.ack.eq(head.ack), transmitter.allowed.eq(head.credit)]
        # What a frame's head says to others is told a cycle later, when the head is still there.
        m.d.sync += [self.restart.eq(0), transmitter.heard.eq(0), transmitter.again.eq(0)]
        # A head has all come two cycles before its frame ends: what it is to this session is
        # known by then.
        mine = Signal()
        m.d.sync += mine.eq(self.alive & (head.session == session))
        ahead = Signal(NUMBER_BITS)
        m.d.sync += ahead.eq(head.seq - expected)
        with m.If(receiver.ended & ~receiver.sound), m.If(~asked & self.alive):
            m.d.sync += asked.eq(1)
            owe(Kind.AGAIN)
        with m.Elif(receiver.ended & (head.kind == Kind.HELLO)):
            owe(Kind.WELCOME)
            # A HELLO that was sent twice must not end the session that it began.
            m.d.sync += self.restart.eq(~mine)
            m.d.sync += session.eq(head.session)
            with m.If(~mine):
                m.d.sync += [expected.eq(0), asked.eq(0)]
        with m.Elif(receiver.ended & ~mine):
            # A reset in the middle of a session: the host learns it from the other number.
            owe(Kind.AGAIN)
        with m.Elif(receiver.ended):
            m.d.sync += transmitter.heard.eq(1)
            m.d.sync += transmitter.again.eq(head.kind == Kind.AGAIN)
            with m.If(head.kind == Kind.AGAIN):
                owe(Kind.ACK)
            with m.If(head.kind == Kind.DATA):
                m.d.comb += receiver.accept.eq(ahead == 0)
                owe(Kind.ACK)
                with m.If(ahead == 0):
                    m.d.sync += [expected.eq(expected + 1), asked.eq(0)]
                with m.Elif((ahead <= WINDOW) & ~asked):
                    m.d.sync += asked.eq(1)
                    owe(Kind.AGAIN)
        return m
