"""A board that sends back what it receives: the link and the line without an engine."""

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from amaranth.hdl import Module, Mux, ResetInserter, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.boards.link import BoardLink
from hw.boards.uart import UartReceiver, UartTransmitter
from hw.rtl.digest import library_directory
from sim.cosim import DIVISOR, HARNESS
from sim.elaborate import short_verilog
from sim.verilated import QUICK, compile_library

__all__ = ["Echo", "EchoBoard", "build_echo"]


def build_echo(flush, *, where=None):
    """Build the library of an echo board unless it is there (see sim/board_harness.cpp)."""
    where = Path(where or library_directory())
    where.mkdir(parents=True, exist_ok=True)
    text = short_verilog(EchoBoard(DIVISOR, flush), "core")
    made_of = "\0".join([text, HARNESS.read_text(), QUICK])
    library = where / f"echo-{hashlib.sha256(made_of.encode()).hexdigest()[:20]}.so"
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not library.exists():
            with tempfile.TemporaryDirectory(prefix="echo-", dir=where) as directory:
                made = compile_library(text, HARNESS, Path(directory), {"DIVISOR": DIVISOR}, QUICK)
                os.replace(made, library)
    return library


class Echo(wiring.Component):
    """The cable's bytes ``receive`` come back on ``transmit``; every `flush`-th closes a frame."""

    def __init__(self, flush):
        self.flush = flush
        self.link = BoardLink(b"an echo")
        super().__init__(
            {"receive": In(stream.Signature(8)), "transmit": Out(stream.Signature(8)),
             "reset": In(1)}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.link = ResetInserter(self.reset)(self.link)
        wiring.connect(m, wiring.flipped(self.receive), self.link.receive)
        wiring.connect(m, self.link.transmit, wiring.flipped(self.transmit))
        count = Signal(range(self.flush))
        last = count == self.flush - 1
        commands, answers = self.link.commands, self.link.answers
        m.d.comb += [answers.payload.byte.eq(commands.payload), answers.valid.eq(commands.valid)]
        m.d.comb += [answers.payload.flush.eq(last), commands.ready.eq(answers.ready)]
        with m.If(commands.valid & commands.ready):
            m.d.sync += count.eq(Mux(last, 0, count + 1))
        with m.If(self.link.restart):
            m.d.sync += count.eq(0)
        return m


class EchoBoard(wiring.Component):
    """An echo behind a serial line."""

    def __init__(self, divisor, flush):
        self.divisor = divisor
        self.echo = Echo(flush)
        super().__init__({"rx": In(1, init=1), "tx": Out(1, init=1), "restart": In(1)})

    def elaborate(self, platform):
        m = Module()
        receiver, transmitter = UartReceiver(self.divisor), UartTransmitter(self.divisor)
        for name, part in (
            ("echo", self.echo), ("receiver", receiver), ("transmitter", transmitter)
        ):
            m.submodules[name] = ResetInserter(self.restart)(part)
        m.d.comb += [receiver.rx.eq(self.rx), self.tx.eq(transmitter.tx)]
        wiring.connect(m, receiver.bytes, self.echo.receive)
        wiring.connect(m, self.echo.transmit, transmitter.bytes)
        return m
