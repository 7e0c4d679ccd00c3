"""A frame transmitter sends each byte in one frame, and keeps it until it is heard: a proof."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *

from hw.boards import frame_transmitter
from hw.boards.frame_transmitter import FrameTransmitter
from hw.rtl.layouts import layout_of
from hw.spec.link import FRAME, Kind
from tests.formal.frames import (
    CRC,
    HEAD,
    PAYLOAD,
    RING,
    WINDOW,
    AnyChecksum,
    AnyTaker,
    make_frames_small,
)
from tests.formal.proofs import Inside, prove
from tests.formal.test_probing_rules import moves
from tests.formal.test_stream_rules import Harness, ports_of

pytestmark = pytest.mark.formal


class Following:
    """What is handed over: bytes of frames, numbered from the last clear on.

    Any one byte of any one number is followed, as it was handed over last.
    """

    def __init__(self, m, rules, dut):
        self.dut = dut
        self.number, self.at = rules.constant(8), rules.constant(2)
        self.value, self.size = Signal(8), Signal(3)  # the byte, and how many its frame has
        next_one, held = Signal(8), Signal(3)  # the open frame
        given = dut.payload.payload
        closes = moves(dut.payload) & (given.flush | (held == PAYLOAD - 1))
        mine = next_one == self.number
        self.closes = closes & mine
        with m.If(moves(dut.payload)):
            m.d.sync += held.eq(Mux(closes, 0, held + 1))
            m.d.sync += next_one.eq(next_one + closes)
            with m.If(mine & (held == self.at)):
                m.d.sync += self.value.eq(given.byte)
        with m.If(self.closes):
            m.d.sync += self.size.eq(held + 1)
        with m.If(dut.clear):
            m.d.sync += [next_one.eq(0), held.eq(0)]
        self.open, self.held = next_one, held
        # Frames of the window: there, sent once, sent since something was lost; and its own place.
        self.there, self.once, self.sent, self.place = (
            (one - dut.base)[:8] for one in (dut.closed, dut.reached, dut.sent, self.number)
        )

    def is_kept(self, m, inside, row, looked_at):
        """While it is not acknowledged it is in its place, and so is what the open frame has."""
        dut = self.dut
        self.begin = Cat(C(0, 2), self.number[0])
        m.d.comb += looked_at.eq(self.begin + self.at)
        m.d.comb += Assert((dut.closed == self.open) & (inside.signal("length") == self.held))
        m.d.comb += Assert(self.held < PAYLOAD)
        m.d.comb += Assert(inside.signal("begin") == Cat(C(0, 2), dut.closed[0]))
        opened = (self.number == dut.closed) & (self.at < self.held)
        with m.If(self.place < self.there):
            m.d.comb += Assert((self.size != 0) & (self.size <= PAYLOAD))
            for n, place in enumerate(dut.places):
                right = (place.begin == self.begin) & (place.length == self.size)
                m.d.comb += Assert((self.number[0] != n) | right)
            m.d.comb += Assert((self.at >= self.size) | (row == self.value))
        m.d.comb += Assert(~opened | (row == self.value))
        m.d.comb += [Assert(place.length <= PAYLOAD) for place in dut.places]

    def has_room(self, m, rules):
        """A byte is taken as soon as its frame has a place."""
        room = Signal()
        closes = self.dut.payload.payload.flush | (self.held == PAYLOAD - 1)
        m.d.sync += room.eq((self.there < WINDOW) & ~(moves(self.dut.payload) & closes))
        m.d.comb += Assert(self.dut.payload.ready == (room & rules.started))
        m.d.comb += Assert(~self.dut.payload.ready | (self.there < WINDOW))
        m.d.comb += Assert((self.sent <= self.once) & (self.once <= self.there))
        m.d.comb += Assert(self.there <= WINDOW)


class Hearing:
    """The host's acknowledgements: of what was sent, they are taken; of anything else, not."""

    def __init__(self, m, dut):
        just_heard = Signal()
        m.d.sync += just_heard.eq(dut.heard)
        m.d.comb += Assume(~(dut.heard & just_heard))
        m.d.comb += Assume(~dut.again | dut.heard)
        told, ack, allowed, again = Signal(), Signal(8), Signal(8), Signal()
        m.d.sync += [told.eq(dut.heard & ~dut.clear), again.eq(dut.again)]
        m.d.sync += [ack.eq(dut.ack), allowed.eq(dut.allowed)]
        done = (ack - dut.base)[:8]
        good = told & (done <= (dut.reached - dut.base)[:8])
        back = again | (done > (dut.sent - dut.base)[:8])
        expected = [Signal(8, name=f"expected_{name}") for name in ("base", "limit", "sent")]
        base, limit, sent = expected
        m.d.sync += [base.eq(Mux(good, ack, dut.base)), limit.eq(Mux(good, allowed, dut.limit))]
        m.d.sync += sent.eq(Mux(good & back, ack, Mux(told & again, dut.base, dut.sent)))
        with m.If(dut.clear):
            m.d.sync += [one.eq(0) for one in expected]
        m.d.comb += Assert((dut.base == base) & (dut.limit == limit))
        self.sent = sent  # but for a frame that begins


class Beginning:
    """Frames begin one by one, with a head that says what it was to say."""

    def __init__(self, m, dut, head, inside):
        self.dut, self.head = dut, head
        chosen, self.answered, self.asked = Signal(), Signal(), Signal()
        m.d.sync += [chosen.eq(inside.state("CHOOSE")), self.answered.eq(dut.answered)]
        m.d.sync += self.asked.eq(dut.answer)
        m.d.comb += Assume(dut.kind != Kind.DATA)  # it is not for the link to ask for
        self.now = chosen & inside.state("FLAG")
        self.said = Signal.like(head)
        for name, value in (("kind", dut.kind), ("session", dut.session), ("ack", dut.expected),
                            ("credit", dut.credit)):
            m.d.sync += self.said[name].eq(value)
        self.is_data = head.kind == Kind.DATA

    def is_as_asked(self, m, sent):
        head = self.head
        with m.If(self.now):
            for name in ("session", "ack", "credit"):
                m.d.comb += Assert(head[name] == self.said[name])
        with m.If(self.now & ~self.is_data):
            m.d.comb += Assert(self.answered & (head.kind == self.said.kind) & (head.seq == 0))
        m.d.comb += Assert(~self.answered | self.now)
        # Payload says what an acknowledgement would, and goes before nothing else.
        with m.If(self.now & self.is_data):
            m.d.comb += Assert(self.answered == self.asked)
            m.d.comb += Assert(~self.asked | (self.said.kind == Kind.ACK))
        data = self.now & self.is_data
        m.d.comb += Assert(self.dut.sent == (sent + data)[:8])

    def is_in_the_window(self, m, byte):
        """Allowed, and none passed over: what counts as sent has begun."""
        head, dut = self.head, self.dut
        with m.If(self.now & self.is_data):
            ahead = (head.seq - dut.base)[:8]
            m.d.comb += Assert((ahead < byte.there) & (ahead < dut.limit))
            m.d.comb += Assert(dut.sent == (head.seq + 1)[:8])
        self.is_own = self.is_data & (head.seq == byte.number)
        begun, before = Signal(), Signal()
        m.d.comb += begun.eq(before | (self.now & self.is_own))
        m.d.sync += before.eq(begun & ~byte.closes)
        m.d.comb += Assert((byte.place >= byte.once) | begun)


class Departure:
    """What leaves, byte by byte: flag, head, payload, checksum, flag."""

    def __init__(self, m, dut, cable, check, head):
        self.dut, self.stream, self.check, self.out = dut, cable.i, check, cable.i.payload
        self.index = Signal(5)  # of the byte on offer in its frame
        self.head = Signal.like(head)  # of that frame
        self.end = HEAD + 1 + self.head.length
        index, end = self.index, self.end
        with m.If(moves(cable.i)):
            m.d.sync += index.eq(Mux(index == end + CRC, 0, index + 1))
            with m.If(index == 0):
                m.d.sync += [index.eq(1), self.head.eq(head)]
        self.in_head = (index != 0) & (index <= HEAD)
        self.in_payload = (index > HEAD) & (index < end)
        self.in_crc = (index >= end) & (index < end + CRC)

    def is_a_frame(self, m):
        index, end, out = self.index, self.end, self.out
        place = (index - HEAD - 1)[:5]
        with m.If(self.stream.valid):
            m.d.comb += Assert(index <= end + CRC)
            m.d.comb += Assert(out.flag == ((index == 0) | (index == end + CRC)))
            said = Value.cast(self.head).word_select((index - 1)[:3], 8)
            m.d.comb += Assert(~self.in_head | (out.byte == said))
            right = self.check.crc.word_select((index - end)[:2], 8)
            m.d.comb += Assert(~self.in_crc | (out.byte == right))
            greets = self.in_payload & (self.head.kind == Kind.WELCOME)
            m.d.comb += Assert(~greets | (out.byte == Array(self.dut.welcome)[place[0]]))

    def is_checked(self, m):
        """The checksum is of head and payload, each byte once."""
        check, covered = self.check, Signal(5)
        m.d.sync += covered.eq(Mux(check.start, 0, covered + check.valid))
        self.covered = covered
        inside = self.in_head | self.in_payload
        with m.If(check.valid):
            m.d.comb += Assert(self.stream.valid & inside & (check.data == self.out.byte))
            m.d.comb += Assert(covered + 1 == self.index)
        with m.If(moves(self.stream) & inside):
            m.d.comb += Assert(covered + check.valid == self.index)

    def is_chosen(self, m, head, begins, inside):
        """How far the next byte is, and that the head stays as it is meanwhile."""
        at, index = inside.signal("at"), self.index
        made = index + self.stream.valid
        self.between = between = inside.state("LOOK") | inside.state("CHOOSE")
        with m.If(between | inside.state("FLAG")):
            m.d.comb += Assert(Mux(self.stream.valid, index == self.end + CRC, index == 0))
            clean = (self.covered == 0) & (at == 0)
            m.d.comb += Assert(inside.state("LOOK") | clean)
        with m.Else():
            m.d.comb += Assert(inside.state("HEAD") | (index >= HEAD))
            m.d.comb += Assert((index == 0) | (Value.cast(self.head) == Value.cast(head)))
        end = 1 + HEAD + head.length
        for name, put, limit in (
            ("HEAD", 1 + at, HEAD), ("PAYLOAD", 1 + HEAD + at, head.length + 1),
            ("BYTE", 1 + HEAD + at, head.length), ("CRC", end + at, CRC), ("END", end + CRC, 8),
        ):
            with m.If(inside.state(name)):
                m.d.comb += Assert((made == put) & (at < limit))
                counted = Mux(put < end, put - 1, HEAD + head.length)
                m.d.comb += Assert(self.covered + self.check.valid == counted)
        with m.If(~between & ~begins.is_data):
            welcome = head.kind == Kind.WELCOME
            m.d.comb += Assert(head.length == Mux(welcome, len(self.dut.welcome), 0))
        m.d.comb += Assert((head.length <= PAYLOAD) & (self.head.length <= PAYLOAD))

    def is_what_was_handed_over(self, m, begins, byte, inside):
        """In a frame that is not acknowledged before it is at its end."""
        was_live, live = Signal(), Signal()
        live_now = Mux(begins.now, begins.is_own, was_live)
        m.d.comb += live.eq(live_now & ~self.between & (byte.place < byte.once))
        m.d.sync += was_live.eq(live & ~self.dut.clear)
        here = self.in_payload & (self.index - HEAD - 1 == byte.at)
        with m.If(live & self.stream.valid & here):
            m.d.comb += Assert(self.out.byte == byte.value)
        with m.If(live):
            m.d.comb += Assert(begins.is_own & (begins.head.length == byte.size))
            m.d.comb += Assert(inside.signal("begin", which=1) == byte.begin)
            read = inside.state("BYTE") & (inside.signal("at") == byte.at)
            m.d.comb += Assert(~read | (inside.shown("ring") == byte.value))


def test_a_frame_transmitter_sends_each_byte_in_one_frame_and_keeps_it(tmp_path, monkeypatch):
    """Until it is acknowledged; each time that its frame is sent it is the same."""
    make_frames_small(monkeypatch)
    check, cable = AnyChecksum(), AnyTaker()
    monkeypatch.setattr(frame_transmitter, "checksum", lambda: check)
    monkeypatch.setattr(frame_transmitter, "Stuffer", lambda: cable)
    dut = FrameTransmitter(b"hi")
    inside = Inside(dut)
    head = inside.signal("head", layout_of(FRAME))
    looked_at = Signal(range(RING))
    row = inside.row("ring", looked_at)

    def claims(m, rules):
        m.d.comb += [port.eq(AnySeq(len(port))) for port in ports_of(dut)[0]]
        byte = Following(m, rules, dut)
        byte.is_kept(m, inside, row, looked_at)
        byte.has_room(m, rules)
        heard = Hearing(m, dut)
        begins = Beginning(m, dut, head, inside)
        begins.is_as_asked(m, heard.sent)
        begins.is_in_the_window(m, byte)
        leaves = Departure(m, dut, cable, check, head)
        leaves.is_a_frame(m)
        leaves.is_checked(m)
        leaves.is_chosen(m, head, begins, inside)
        leaves.is_what_was_handed_over(m, begins, byte, inside)

    prove(Harness(dut, [dut.payload], [dut.cable], claims, police=False), tmp_path, steps=3)
