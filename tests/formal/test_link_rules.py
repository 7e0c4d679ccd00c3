"""The board's link keeps the stream contract, and loses and doubles no byte: proofs."""

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import wiring

from hw.boards import frame_receiver, frame_transmitter
from hw.boards.framing import Stuffer, Unstuffer
from hw.boards.uart import UartReceiver
from hw.spec.link import ESCAPE, FLAG, MASK
from tests.formal.proofs import prove
from tests.formal.test_probing_rules import counted, equal, moves
from tests.formal.test_stream_rules import Harness, ports_of, streams_of

pytestmark = pytest.mark.formal


@pytest.fixture
def small_frames(monkeypatch):
    """A window of two frames of four bytes: the control is the same, the proof is smaller."""
    for module in (frame_receiver, frame_transmitter):
        for name, value in (("WINDOW", 2), ("MOST_PAYLOAD", 4), ("RING", 8)):
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(frame_transmitter, "SLOT_BITS", 1)


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


@pytest.mark.usefixtures("small_frames")
@pytest.mark.parametrize("name", ["receiver", "transmitter"])
def test_an_offered_byte_stays_until_it_is_taken(name, tmp_path):
    """Unless the receiver is told to forget it: `clear` is a register here, and stays as it is."""
    dut = {
        "receiver": frame_receiver.FrameReceiver,
        "transmitter": lambda: frame_transmitter.FrameTransmitter(b"hi"),
    }[name]()

    def claims(m, rules):
        for port in ports_of(dut)[0]:
            free = port is not Value.cast(dut.clear)
            m.d.comb += port.eq(AnySeq(len(port))) if free else []

    prove(Harness(dut, *streams_of(dut), claims), tmp_path, steps=3)
