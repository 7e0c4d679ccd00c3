"""Flags and escapes of the link's frames (hw.spec.link)."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.spec.link import ESCAPE, FLAG, MASK

__all__ = ["Stuffer", "Unstuffer", "marked"]


def marked():
    """A byte between flags, or the `flag` itself."""
    return data.StructLayout({"byte": 8, "flag": 1})


class Stuffer(wiring.Component):
    """Marked bytes ``i`` -> the bytes ``o`` that go over the cable.

    Latency 1 cycle; one byte a cycle, two cycles for one that must be escaped.
    """

    def __init__(self):
        super().__init__({"i": In(stream.Signature(marked())), "o": Out(stream.Signature(8))})
        self.escaped = Signal()  # the escape of the byte on offer has been sent

    def elaborate(self, platform):
        m = Module()
        byte, flag = self.i.payload.byte, self.i.payload.flag
        special = Signal()
        m.d.comb += special.eq(~flag & ((byte == FLAG) | (byte == ESCAPE)))
        room = ~self.o.valid | self.o.ready
        m.d.comb += self.i.ready.eq(room & (~special | self.escaped))
        with m.If(room):
            m.d.sync += self.o.valid.eq(self.i.valid)
            with m.If(self.i.valid):
                m.d.sync += self.escaped.eq(special & ~self.escaped)
                with m.If(flag):
                    m.d.sync += self.o.payload.eq(FLAG)
                with m.Elif(special):
                    m.d.sync += self.o.payload.eq(Mux(self.escaped, byte ^ MASK, ESCAPE))
                with m.Else():
                    m.d.sync += self.o.payload.eq(byte)
        return m


class Unstuffer(wiring.Component):
    """Bytes ``i`` of the cable -> marked bytes ``o``; an escape before a flag is a damaged frame.

    damaged  with a flag: the frame that it ends is damaged. Latency 1 cycle, one byte a cycle.
    """

    def __init__(self):
        layout = data.StructLayout({"byte": 8, "flag": 1, "damaged": 1})
        super().__init__({"i": In(stream.Signature(8)), "o": Out(stream.Signature(layout))})
        self.escaped = Signal()

    def elaborate(self, platform):
        m = Module()
        byte = self.i.payload
        room = ~self.o.valid | self.o.ready
        m.d.comb += self.i.ready.eq(room)
        with m.If(room):
            m.d.sync += self.o.valid.eq(self.i.valid & (byte != ESCAPE))
            with m.If(self.i.valid):
                m.d.sync += self.escaped.eq(byte == ESCAPE)
                m.d.sync += self.o.payload.byte.eq(Mux(self.escaped, byte ^ MASK, byte))
                m.d.sync += self.o.payload.flag.eq(byte == FLAG)
                m.d.sync += self.o.payload.damaged.eq(self.escaped)
        return m
