"""The board's link keeps the stream contract; its cable loses and doubles no byte: proofs."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.boards.frame_receiver import FrameReceiver
from hw.boards.frame_transmitter import FrameTransmitter
from hw.boards.framing import Stuffer, Unstuffer
from hw.boards.link import BoardLink
from hw.boards.uart import UartReceiver
from hw.spec.link import ESCAPE, FLAG, MASK
from tests.formal.frames import make_frames_small
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import counted, equal, moves
from tests.formal.test_stream_rules import Harness, ports_of, streams_of

pytestmark = pytest.mark.formal


def test_a_stuffer_sends_each_byte_once_and_an_escape_before_each_special_one(tmp_path):
    dut = Stuffer()

    def claims(m, rules):
        byte = dut.i.payload.byte
        special = ~dut.i.payload.flag & ((byte == FLAG) | (byte == ESCAPE))
        came = counted(m, "came", Mux(moves(dut.i), 1 + special, 0))
        went = counted(m, "went", moves(dut.o))
        equal(m, came + dut.escaped, went + dut.o.valid)
        # The escape of a byte that still waits has gone ahead, or is on offer.
        m.d.comb += Assert(~dut.escaped | (rules.waiting["i0"] & special))

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_an_unstuffer_gives_each_byte_but_the_escapes_once(tmp_path):
    dut = Unstuffer()

    def claims(m, rules):
        came = counted(m, "came", moves(dut.i) & (dut.i.payload != ESCAPE))
        went = counted(m, "went", moves(dut.o))
        equal(m, came, went + dut.o.valid)

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


class Cable(wiring.Component):
    """A stuffer, and the unstuffer at the other end."""

    def __init__(self):
        self.stuffer, self.unstuffer = Stuffer(), Unstuffer()
        super().__init__({"i": self.stuffer.signature.members["i"],
                          "o": self.unstuffer.signature.members["o"]})

    def elaborate(self, platform):
        m = Module()
        m.submodules.stuffer, m.submodules.unstuffer = self.stuffer, self.unstuffer
        wiring.connect(m, wiring.flipped(self.i), self.stuffer.i)
        wiring.connect(m, self.stuffer.o, self.unstuffer.i)
        wiring.connect(m, self.unstuffer.o, wiring.flipped(self.o))
        return m


def test_every_byte_comes_through_a_cable_as_it_was(tmp_path):
    """Whatever is stuffed and unstuffed again leaves as often as it came, and no frame ends
    damaged."""
    dut = Cable()

    def claims(m, rules):
        wire, out = dut.stuffer.o, dut.o.payload
        sent, behind = dut.stuffer.escaped, dut.unstuffer.escaped  # escapes, at either end
        byte = dut.i.payload.byte
        special = ~dut.i.payload.flag & ((byte == FLAG) | (byte == ESCAPE))
        escape = wire.valid & (wire.payload == ESCAPE)
        m.d.comb += Assert(~sent | (rules.waiting["i0"] & special))
        m.d.comb += Assert(sent == (escape | (~wire.valid & behind)))
        m.d.comb += Assert(~(escape & behind))
        masked = (wire.payload == FLAG ^ MASK) | (wire.payload == ESCAPE ^ MASK)
        m.d.comb += Assert(~(wire.valid & behind) | masked)
        m.d.comb += Assert(~(dut.o.valid & out.flag & out.damaged))
        magic = rules.constant(9)
        came = counted(m, "came", moves(dut.i) & _is(dut.i.payload.byte, dut.i.payload.flag, magic))
        went = counted(m, "went", moves(dut.o) & _is(out.byte, out.flag, magic))
        on_wire = Mux(behind, wire.payload ^ MASK, wire.payload)
        flag_on_wire = ~behind & (wire.payload == FLAG)
        held = wire.valid & ~escape & _is(on_wire, flag_on_wire, magic)
        equal(m, came, went + held + (dut.o.valid & _is(out.byte, out.flag, magic)))

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def _is(byte, flag, magic):
    """Whether that byte, or a flag, is the one that is followed."""
    return (flag == magic[8]) & (flag | (byte == magic[:8]))


def test_a_uart_receiver_keeps_its_byte_until_it_is_taken(tmp_path):
    dut = UartReceiver(4)

    def claims(m, rules):
        m.d.comb += dut.rx.eq(AnySeq(1))

    prove(Harness(dut, [], [dut.bytes], claims), tmp_path, steps=3)


@pytest.mark.parametrize("name", ["receiver", "transmitter", "link"])
def test_an_offered_byte_stays_until_it_is_taken(name, tmp_path, monkeypatch):
    """Or, of payload for the board, until a new session begins: then none is left of the old."""
    make_frames_small(monkeypatch)
    dut, kept, forgotten = {
        "receiver": lambda: _ends(FrameReceiver(), None, "payload", "clear"),
        "transmitter": lambda: _ends(FrameTransmitter(b"hi"), "cable", None, None),
        "link": lambda: _ends(BoardLink(b"hi"), "transmit", "commands", "restart"),
    }[name]()

    def claims(m, rules):
        m.d.comb += [port.eq(AnySeq(len(port))) for port in ports_of(dut)[0]]
        if kept is not None:
            rules.kept(kept, "kept")
        if forgotten is not None:
            payload, session = forgotten
            rules.kept(payload, "payload", unless=session)
            began = Signal()
            m.d.sync += began.eq(session)
            m.d.comb += Assert(~(began & payload.valid))

    prove(Harness(dut, *streams_of(dut), claims, police=False), tmp_path, steps=3)


def _ends(dut, kept, payload, session):
    """A part of the link; its stream that stays; its stream that a new session takes back."""
    return (
        dut, kept and getattr(dut, kept),
        payload and (getattr(dut, payload), getattr(dut, session)),
    )
