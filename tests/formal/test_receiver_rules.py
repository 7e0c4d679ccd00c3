"""A frame receiver gives each byte of an accepted frame once, in order, and no other: a proof."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *

from hw.boards import frame_receiver
from hw.boards.frame_receiver import FrameReceiver
from tests.formal.frames import (
    CRC,
    HEAD,
    PAYLOAD,
    RING,
    AnyChecksum,
    AnyMarks,
    make_frames_small,
)
from tests.formal.proofs import Inside, prove
from tests.formal.test_probing_rules import moves
from tests.formal.test_stream_rules import Harness

pytestmark = pytest.mark.formal


def at_most(value, most):
    return Mux(value > most, most, value)


class Arrival:
    """What comes between flags: how many bytes, and how the last frame ended."""

    def __init__(self, m, marks, check):
        mark = marks.o.payload
        self.byte = moves(marks.o) & ~mark.flag
        self.data = mark.byte
        flag = moves(marks.o) & mark.flag
        self.count = Signal(5)  # since the last flag; no frame is as long as it can count
        self.last = Signal(5)  # bytes of the last frame
        self.right = Signal()  # its checksum was, and no escape was in front of its end
        self.ends = flag & (self.count != 0)
        with m.If(self.byte & ~self.count.all()):
            m.d.sync += self.count.eq(self.count + 1)
        with m.If(flag):
            m.d.sync += self.count.eq(0)
        with m.If(self.ends):
            m.d.sync += self.last.eq(self.count)
            m.d.sync += self.right.eq(check.match_detected & ~mark.damaged)
        # The checksum is of all bytes between two flags.
        m.d.comb += Assert((check.valid == self.byte) & (check.start == flag))
        m.d.comb += Assert(~self.byte | (check.data == self.data))
        # A frame is judged for three cycles, in which nothing comes.
        self.weighed, self.ended, self.settles = Signal(), Signal(), Signal()
        m.d.sync += [self.weighed.eq(self.ends), self.ended.eq(self.weighed)]
        m.d.sync += self.settles.eq(self.ended)
        self.judged = self.weighed | self.ended | self.settles
        m.d.comb += Assert(self.weighed + self.ended + self.settles <= 1)
        m.d.comb += Assert(~self.judged | (self.count == 0))
        self.bytes = Mux(self.judged, self.last, self.count)  # of the frame that is there


def a_head_is_of_the_first_bytes(m, rules, dut, came, inside):
    """Any one of them is followed."""
    own, said = rules.constant(3), Signal(8)
    with m.If(came.byte & (came.count == own)):
        m.d.sync += said.eq(came.data)
    place = (HEAD - at_most(came.bytes, HEAD) + own)[:3]
    there = Value.cast(dut.head).word_select(place, 8)
    m.d.comb += Assert((own >= came.bytes) | (there == said))
    m.d.comb += Assert(inside.signal("count") == at_most(came.count, HEAD + PAYLOAD + CRC + 1))


def a_frame_is_sound_if_what_it_says_is_so(m, dut, came, ring):
    """And if there was room for each byte of its payload when it came."""
    has_length = came.last == dut.head.length + HEAD + CRC
    fits = Signal()
    with m.If(came.ends):
        m.d.sync += fits.eq(~ring.missed)
    m.d.comb += Assert(dut.ended == came.ended)
    with m.If(dut.ended):
        whole = has_length & (dut.head.length <= PAYLOAD)
        m.d.comb += Assert(dut.sound == (came.right & whole & fits))
    stored = Mux(came.bytes > HEAD + CRC, came.bytes - HEAD - CRC, 0)
    m.d.comb += Assert(ring.length == at_most(stored, PAYLOAD + 1))
    stores = came.byte & (came.count >= HEAD + CRC) & (ring.length <= PAYLOAD)
    missed = Signal()
    with m.If(stores & (ring.used + ring.length >= RING)):
        m.d.sync += missed.eq(1)
    with m.If(came.settles):
        m.d.sync += missed.eq(0)
    m.d.comb += Assert(ring.missed == missed)
    m.d.comb += Assert(missed | (ring.used + ring.length <= RING))
    m.d.comb += Assert(~(came.weighed | came.ended) | (fits == ~missed))
    m.d.comb += Assert(~ring.accepted | ~missed)


class Following:
    """Accepted bytes are numbered; any one number is followed, from the cable to the payload."""

    def __init__(self, m, rules, dut, came):
        self.dut, self.came = dut, came
        self.number = rules.constant(4)
        self.first, self.went = Signal(4), Signal(4)  # what comes, and what goes next
        self.own = Signal(4)  # where it is in the frame that is there
        self.coming, self.value = Signal(8), Signal(8)
        m.d.comb += self.own.eq(self.number - self.first)
        with m.If(came.byte & (came.count == HEAD + self.own)):
            m.d.sync += self.coming.eq(came.data)
        with m.If(dut.ended & dut.accept & ~dut.clear):
            m.d.sync += self.first.eq(self.first + dut.head.length)
            with m.If(self.own < dut.head.length):
                m.d.sync += self.value.eq(self.coming)
        with m.If(moves(dut.payload)):
            m.d.sync += self.went.eq(self.went + 1)
        with m.If(dut.clear):
            m.d.sync += self.went.eq(self.first)

    def comes_out(self, m):
        offered = self.dut.payload.valid
        m.d.comb += Assert(~offered | (self.went != self.first))
        about = offered & (self.went == self.number)
        m.d.comb += Assert(~about | (self.dut.payload.payload == self.value))


class Ring:
    """What is in the ring: accepted bytes, and behind them those of the frame that comes."""

    def __init__(self, inside):
        self.inside = inside
        self.begin, self.read_at, self.length, self.used, self.accepted, self.fetched = (
            inside.signal(name)
            for name in ("begin", "read_at", "length", "used", "accepted", "fetched")
        )
        self.missed = inside.signal("missed")  # some byte of the frame that comes
        self.looked_at = [Signal(range(RING), name=f"looked_at_{n}") for n in range(2)]
        self.rows = [inside.row("ring", address) for address in self.looked_at]

    def holds(self, m, dut, came, byte):
        kept = (self.used + Mux(self.accepted, self.length, 0))[:4]
        before = dut.payload.valid + self.fetched
        m.d.comb += Assert((byte.first - byte.went)[:4] == (kept + before)[:4])
        m.d.comb += Assert((self.begin - self.read_at - self.used)[:3] == 0)
        m.d.comb += Assert(kept <= RING)
        m.d.comb += Assert(~self.accepted | (came.settles & (self.length <= PAYLOAD)))
        behind = (byte.number - byte.went - before)[:4]
        m.d.comb += self.looked_at[0].eq(self.read_at + behind)
        m.d.comb += Assert((behind >= kept) | (self.rows[0] == byte.value))
        next_one = byte.number == (byte.went + dut.payload.valid)[:4]
        shown = self.inside.shown("ring")
        m.d.comb += Assert(~(self.fetched & next_one) | (shown == byte.value))

    def takes(self, m, came, byte):
        """Payload four bytes late, so that no checksum is stored."""
        m.d.comb += self.looked_at[1].eq(self.begin + byte.own)
        mine = byte.own < PAYLOAD
        here = mine & (byte.own < self.length) & ~self.accepted & ~self.missed
        m.d.comb += Assert(~here | (self.rows[1] == byte.coming))
        late = (came.count > HEAD + byte.own) & (came.count <= HEAD + CRC + byte.own)
        at = (HEAD + CRC + byte.own - came.count)[:2]
        there = self.inside.signal("delay").word_select(at, 8)
        m.d.comb += Assert(~(mine & late) | (there == byte.coming))


def there_is_room_for_what_is_credited(m, dut, used, accepts):
    """As soon as the last frame has been counted."""
    counting = Signal(2)
    m.d.sync += counting.eq(Mux(accepts, 2, Mux(counting == 0, 0, counting - 1)))
    m.d.comb += Assert((counting != 0) | (used + dut.credit * PAYLOAD <= RING))


def test_a_frame_receiver_gives_each_byte_of_an_accepted_frame_once(tmp_path, monkeypatch):
    make_frames_small(monkeypatch)
    marks, check = AnyMarks(), AnyChecksum()
    monkeypatch.setattr(frame_receiver, "Unstuffer", lambda: marks)
    monkeypatch.setattr(frame_receiver, "checksum", lambda: check)
    dut = FrameReceiver()
    inside = Inside(dut)
    ring = Ring(inside)

    def claims(m, rules):
        m.d.comb += [dut.accept.eq(AnySeq(1)), dut.clear.eq(AnySeq(1))]
        m.d.comb += Assume(~(dut.ended & dut.accept) | dut.sound)
        came = Arrival(m, marks, check)
        a_head_is_of_the_first_bytes(m, rules, dut, came, inside)
        a_frame_is_sound_if_what_it_says_is_so(m, dut, came, ring)
        byte = Following(m, rules, dut, came)
        byte.comes_out(m)
        ring.holds(m, dut, came, byte)
        ring.takes(m, came, byte)
        there_is_room_for_what_is_credited(m, dut, ring.used, dut.ended & dut.accept)

    prove(Harness(dut, [dut.cable], [dut.payload], claims, police=False), tmp_path, steps=3)
