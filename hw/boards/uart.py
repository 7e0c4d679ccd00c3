"""The serial line of a board: eight bits, no parity, one stop bit."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["UartReceiver", "UartTransmitter"]


class UartReceiver(wiring.Component):
    """Bits of ``rx`` -> ``bytes``; ``divisor`` clock cycles make a bit.

    A byte that is not taken before the next one is complete is lost, as one that the line
    damaged would be; a byte without its stop bit is dropped.
    """

    def __init__(self, divisor):
        if divisor < 4:
            raise ValueError(f"divisor must be from 4 on, not {divisor}")
        self.divisor = divisor
        super().__init__({"rx": In(1, init=1), "bytes": Out(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        line = Signal(init=1)
        m.submodules += FFSynchronizer(self.rx, line, init=1)
        ticks = Signal(range(2 * self.divisor))
        bits = Signal(range(10))  # that are still to come, the stop bit among them
        shift = Signal(8)
        with m.If(self.bytes.ready):
            m.d.sync += self.bytes.valid.eq(0)
        with m.If(bits == 0), m.If(~line):
            # The middle of the first data bit is one and a half bits away.
            m.d.sync += ticks.eq(self.divisor + self.divisor // 2 - 2)
            m.d.sync += bits.eq(9)
        with m.Elif(ticks != 0):
            m.d.sync += ticks.eq(ticks - 1)
        with m.Else():
            m.d.sync += ticks.eq(self.divisor - 1)
            m.d.sync += bits.eq(bits - 1)
            with m.If(bits != 1):
                m.d.sync += shift.eq(Cat(shift[1:], line))
            with m.Elif(line & ~self.bytes.valid):
                m.d.sync += self.bytes.payload.eq(shift)
                m.d.sync += self.bytes.valid.eq(1)
        return m


class UartTransmitter(wiring.Component):
    """``bytes`` -> bits of ``tx``; ``divisor`` clock cycles make a bit, ten bits a byte."""

    def __init__(self, divisor):
        if divisor < 2:
            raise ValueError(f"divisor must be from 2 on, not {divisor}")
        self.divisor = divisor
        super().__init__({"tx": Out(1, init=1), "bytes": In(stream.Signature(8))})

    def elaborate(self, platform):
        m = Module()
        ticks = Signal(range(self.divisor))
        bits = Signal(range(11))  # that are still to be held on the line, this one among them
        shift = Signal(9, init=-1)
        done = Signal()
        m.d.comb += done.eq((bits == 0) | ((bits == 1) & (ticks == 0)))
        m.d.comb += self.bytes.ready.eq(done)
        with m.If(ticks != 0):
            m.d.sync += ticks.eq(ticks - 1)
        with m.Elif(bits != 0):
            m.d.sync += Cat(self.tx, shift).eq(Cat(shift, 1))
            m.d.sync += bits.eq(bits - 1)
            m.d.sync += ticks.eq(self.divisor - 1)
        with m.If(done & self.bytes.valid):
            m.d.sync += Cat(self.tx, shift).eq(Cat(C(0, 1), self.bytes.payload, C(1, 1)))
            m.d.sync += bits.eq(10)
            m.d.sync += ticks.eq(self.divisor - 1)
        return m
