# amaranth: UnusedElaboratable=no
"""Small frames, and what stands in the places of a frame's parts that have their own proofs."""

from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.boards import frame_receiver, frame_transmitter
from hw.boards.framing import Stuffer, Unstuffer
from hw.spec.link import FRAME

__all__ = ["AnyChecksum", "AnyMarks", "AnyTaker", "make_frames_small", "WINDOW", "PAYLOAD", "RING",
           "HEAD", "CRC"]

#: Frames of a window, bytes of a payload, of the ring, of a head, of a checksum.
WINDOW, PAYLOAD, RING, HEAD, CRC = 2, 4, 8, FRAME.itemsize, 4


def make_frames_small(monkeypatch):
    """A window of two frames of four bytes: the control is the same, the proof is smaller."""
    for module in (frame_receiver, frame_transmitter):
        for name, value in (("WINDOW", WINDOW), ("MOST_PAYLOAD", PAYLOAD), ("RING", RING)):
            monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(frame_transmitter, "SLOT_BITS", 1)


class AnyMarks(wiring.Component):
    """In the place of an unstuffer: any bytes and flags, at any time."""

    def __init__(self):
        super().__init__(Unstuffer().signature)

    def elaborate(self, platform):
        m = Module()
        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += self.o.valid.eq(AnySeq(1))
            m.d.sync += Value.cast(self.o.payload).eq(AnySeq(len(Value.cast(self.o.payload))))
        return m


class AnyTaker(wiring.Component):
    """In the place of a stuffer: takes what it is given at any time."""

    def __init__(self):
        super().__init__(Stuffer().signature)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.i.ready.eq(AnySeq(1))
        return m


class AnyChecksum(wiring.Component):
    """In the place of a checksum's processor: it makes whatever it likes of the bytes it gets."""

    def __init__(self):
        super().__init__({"start": In(1), "data": In(8), "valid": In(1), "crc": Out(32),
                          "match_detected": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.comb += self.match_detected.eq(AnySeq(1))
        with m.If(self.start | self.valid):
            m.d.sync += self.crc.eq(AnySeq(32))
        return m
