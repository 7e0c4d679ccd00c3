"""SDRAM behind the ports of hw.rtl.memory: a controller for one chip of 16 data pins."""

import math
from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import enum, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.memory import BurstCounter, ReadPort, WritePort, write_layout
from hw.rtl.plumbing import Queue

__all__ = ["DATA_BITS", "Command", "SdramMemory", "SdramPins", "SdramTiming", "ULX3S_CHIP"]

DATA_BITS = 16


class Command(enum.Enum, shape=3):  # type: ignore[call-arg]
    """What the chip is told: its pins ras, cas, we, the first in bit 2; 1 is active."""

    NOP = 0b000
    STOP = 0b001
    READ = 0b010
    WRITE = 0b011
    ACTIVATE = 0b100
    PRECHARGE = 0b101
    REFRESH = 0b110
    MODE = 0b111


@dataclass(frozen=True, kw_only=True)
class SdramTiming:
    """A chip: its geometry, and what it wants, in nanoseconds where not said otherwise.

    cas            cycles from a read to its first datum
    activate       from a row's opening to a column (tRCD)
    precharge      from a row's closing to the next opening (tRP)
    open_least     that a row stays open (tRAS)
    cycle          from an opening to the next (tRC)
    refresh        that a refresh takes (tRFC)
    recover        from the last datum written to the row's closing (tWR)
    mode_cycles    from setting the mode to the next command (tMRD)
    refresh_every  on average (64 ms / 8192)
    power_up       before the first command
    """

    row_bits: int
    column_bits: int
    bank_bits: int = 2
    cas: int
    activate: float
    precharge: float
    open_least: float
    cycle: float
    refresh: float
    recover: float
    mode_cycles: int = 2
    refresh_every: float = 7812.5
    power_up: float = 200_000.0

    def cycles(self, name: str, hertz: float) -> int:
        """That time in clock cycles, rounded up."""
        return math.ceil(getattr(self, name) * hertz / 1e9 - 1e-9)


#: Slow enough for every 32 MB chip that was put on a ULX3S (their data sheets' slowest grades).
ULX3S_CHIP = SdramTiming(
    row_bits=13, column_bits=9, cas=3, activate=21, precharge=21, open_least=44, cycle=67.5,
    refresh=67.5, recover=15,
)


class SdramPins(wiring.Signature):
    """The controller's side of the chip; `dq_i` of a cycle is what the chip drove in it."""

    def __init__(self, timing: SdramTiming):
        super().__init__(
            {
                "command": Out(Command),
                "bank": Out(timing.bank_bits),
                "address": Out(timing.row_bits),
                "mask": Out(1),
                "dq_o": Out(DATA_BITS),
                "dq_oe": Out(1),
                "dq_i": In(DATA_BITS),
            }
        )


class SdramMemory(wiring.Component):
    """``read`` and ``write`` as BlockMemory has them, ``pins`` to the chip.

    A word is one burst of the chip, so its bits are 16, 32, 64 or 128. One row is open at a time;
    runs of reads and of writes take turns, so that a merge does not change the row at every word.
    A row's words follow each other without a gap.
    """

    #: Words that wait in each direction, and most that go one way while the other waits.
    RUN = 16

    def __init__(self, word, timing: SdramTiming, hertz: float):
        self.word, self.timing, self.hertz = word, timing, hertz
        self.beats = Shape.cast(word).width // DATA_BITS
        if self.beats not in (1, 2, 4, 8) or self.beats * DATA_BITS != Shape.cast(word).width:
            raise ValueError(
                f"a word must have 16, 32, 64 or 128 bits, not {Shape.cast(word).width}"
            )
        self.words_of_row = timing.column_bits - exact_log2(self.beats)
        self.address_bits = bits = self.words_of_row + timing.bank_bits + timing.row_bits
        super().__init__(
            {
                "read": In(ReadPort(word, bits)),
                "write": In(WritePort(word, bits)),
                "pins": Out(SdramPins(timing)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.ready = Signal()  # the chip is set up
        most = {"command": self._cycles("power_up") + 1, "refresh": self._cycles("refresh_every")}
        for name in ("close", "recover", "activate", "column", "write"):
            most[name] = 2 * self.beats + self._cycles("cycle")
        self.waits = {name: self._countdown(m, name, cycles) for name, cycles in most.items()}
        m.submodules.counter = self.counter = BurstCounter(self.address_bits)
        m.submodules.writes = self.writes = Queue(
            write_layout(self.word, self.address_bits), self.RUN
        )
        m.submodules.words = self.words = Queue(self.word, self.RUN)
        self._accept(m)
        self._start(m)
        self._fetch(m)
        with m.If(self.ready):
            self._serve(m)
        return m

    @staticmethod
    def _countdown(m, name, most):
        """Cycles that are left, and whether any are; set by `_wait` they go down to 0 by
        themselves. A register of its own says so, because every command waits for it.
        """
        left = Signal(range(most), name=f"left_{name}")
        waits = Signal(name=f"waits_{name}")
        with m.If(waits):
            m.d.sync += [left.eq(left - 1), waits.eq(left != 1)]
        return left, waits

    def _cycles(self, name):
        return self.timing.cycles(name, self.hertz)

    def _wait(self, m, name, cycles):
        """The counter `name` is 0 again for a command `cycles` after the one of this cycle."""
        left, waits = self.waits[name]
        m.d.sync += [left.eq(max(0, cycles - 1)), waits.eq(cycles > 1)]

    def _over(self, *names):
        """Whether nothing of that is waited for any more."""
        return ~Cat(self.waits[name][1] for name in names).any()

    def _accept(self, m):
        """Requests and writes come in; a request only when all writes before it are on their way.

        A free counter and a waiting request hold back new writes until the queue has run dry. A
        busy counter does not: its reader may need to write before it takes more words.
        """
        requests, writes = self.read.requests, self.write.writes
        bursts = self.counter.bursts
        dry = Signal()
        # By what came in, not by what has reached the queue's other end.
        m.d.comb += dry.eq(self.writes.level == 0)
        m.d.comb += bursts.payload.eq(requests.payload)
        m.d.comb += bursts.valid.eq(requests.valid & dry)
        m.d.comb += requests.ready.eq(bursts.ready & dry)
        # A cycle later, because whether the counter is free is known late, and who writes is far.
        held = Signal()
        m.d.sync += held.eq(requests.valid & bursts.ready)
        m.d.comb += self.writes.i.payload.eq(writes.payload)
        m.d.comb += self.writes.i.valid.eq(writes.valid & ~held)
        m.d.comb += writes.ready.eq(self.writes.i.ready & ~held)
        wiring.connect(m, self.words.o, wiring.flipped(self.read.words))

    def _tell(self, m, command, *, bank=0, address=0):
        m.d.sync += [
            self.pins.command.eq(command), self.pins.bank.eq(bank), self.pins.address.eq(address)
        ]

    def _start(self, m):
        """Power-up: a pause, all rows closed, eight refreshes, the mode."""
        m.d.sync += self.pins.mask.eq(~self.ready)
        self._tell(m, Command.NOP)
        refreshes = Signal(range(8))
        with m.FSM(name="start"):
            with m.State("POWER"):
                self._wait(m, "command", self._cycles("power_up") + 1)
                m.next = "CLOSE"
            with m.State("CLOSE"), m.If(self._over("command")):
                self._tell(m, Command.PRECHARGE, address=1 << 10)
                self._wait(m, "command", self._cycles("precharge"))
                m.next = "REFRESH"
            with m.State("REFRESH"), m.If(self._over("command")):
                self._tell(m, Command.REFRESH)
                self._wait(m, "command", self._cycles("refresh"))
                m.d.sync += refreshes.eq(refreshes + 1)
                with m.If(refreshes == 7):
                    m.next = "MODE"
            with m.State("MODE"), m.If(self._over("command")):
                # Sequential bursts of a word, for reads and for writes.
                self._tell(m, Command.MODE, address=self.timing.cas << 4 | exact_log2(self.beats))
                self._wait(m, "command", self.timing.mode_cycles)
                self._wait(m, "refresh", self._cycles("refresh_every"))
                m.next = "READY"
            with m.State("READY"):
                m.d.sync += self.ready.eq(1)

    def _fetch(self, m):
        """Data come `cas` cycles behind their command on the pins; words of them are queued."""
        self.reads_now = Signal()
        beats = self.beats
        # Bit n: the first beat of a word is n cycles away.
        coming = Signal(self.timing.cas + 1)
        m.d.sync += coming.eq(Cat(coming[1:], self.reads_now))
        beat = Signal(range(beats + 1))
        shift = Signal(DATA_BITS * beats)
        here = coming[0] | (beat != 0)
        done = Signal()
        m.d.sync += done.eq(0)
        with m.If(here):
            m.d.sync += shift.eq(Cat(shift[DATA_BITS:], self.pins.dq_i))
            m.d.sync += beat.eq(beat + 1)
            with m.If(beat == beats - 1):
                m.d.sync += [beat.eq(0), done.eq(1)]
        m.d.comb += self.words.i.valid.eq(done)
        m.d.comb += Value.cast(self.words.i.payload).eq(shift)
        # Words that are asked for or queued: room is kept before the command.
        self.reserved = Signal(range(self.RUN + 1))
        taken = self.words.o.valid & self.words.o.ready
        m.d.sync += self.reserved.eq(self.reserved + self.reads_now - taken)

    def _serve(self, m):
        """One command a cycle at most: refresh, or what the next word needs."""
        writing = self._turn(m)
        target = Signal(self.address_bits)
        m.d.comb += target.eq(
            Mux(writing, self.writes.o.payload.address, self.counter.addresses.payload)
        )
        place = target[self.words_of_row :]  # bank and row
        bank, row = place[: self.timing.bank_bits], place[self.timing.bank_bits :]
        wanted = Signal()
        m.d.comb += wanted.eq(Mux(writing, self.writes.o.valid, self._may_read()))
        opened = Signal()
        where = Signal.like(place)
        due = Signal()
        m.d.comb += due.eq(self._over("refresh"))
        may_close = self._over("close", "recover", "column")
        with m.If(~self._over("command")):
            pass
        with m.Elif(opened & (due | (wanted & (where != place)))), m.If(may_close):
            self._tell(m, Command.PRECHARGE, address=1 << 10)
            self._wait(m, "command", self._cycles("precharge"))
            m.d.sync += opened.eq(0)
        with m.Elif(due), m.If(self._over("activate")):
            self._tell(m, Command.REFRESH)
            self._wait(m, "command", self._cycles("refresh"))
            self._wait(m, "refresh", self._cycles("refresh_every") - 32)
        with m.Elif(wanted & ~opened), m.If(self._over("activate")):
            self._tell(m, Command.ACTIVATE, bank=bank, address=row)
            m.d.sync += [opened.eq(1), where.eq(place)]
            self._wait(m, "command", self._cycles("activate"))
            self._wait(m, "close", self._cycles("open_least"))
            self._wait(m, "activate", self._cycles("cycle"))
        with m.Elif(wanted):
            self._column(m, writing, bank, target)
        self._put(m)

    def _may_read(self):
        return self.counter.addresses.valid & (self.reserved != self.RUN)

    def _turn(self, m):
        """Whether writes have their turn."""
        writing = Signal()
        run = Signal(range(self.RUN + 1))
        wants = Mux(writing, self.writes.o.valid, self._may_read())
        other = Mux(writing, self._may_read(), self.writes.o.valid)
        moved = Mux(writing, self.writes.o.ready, self.reads_now)
        with m.If(other & (~wants | (run == self.RUN))):
            m.d.sync += [writing.eq(~writing), run.eq(0)]
        with m.Elif(moved & (run != self.RUN)):
            m.d.sync += run.eq(run + 1)
        return writing

    def _column(self, m, writing, bank, target):
        """The burst of a word, when the data pins are free for it."""
        beats = self.beats
        column = Cat(C(0, exact_log2(beats)), target[: self.words_of_row])
        with m.If(writing & self._over("column", "write")):
            self._tell(m, Command.WRITE, bank=bank, address=column)
            m.d.comb += self.writes.o.ready.eq(1)
            self._wait(m, "column", beats)
            self._wait(m, "recover", beats + self._cycles("recover"))
        with m.If(~writing & self._over("column")):
            self._tell(m, Command.READ, bank=bank, address=column)
            m.d.comb += [self.counter.addresses.ready.eq(1), self.reads_now.eq(1)]
            self._wait(m, "column", beats)
            # The last datum has left the pins, and they rest for a cycle.
            self._wait(m, "write", self.timing.cas + beats + 1)

    def _put(self, m):
        """The data of a write: the first with its command, the others behind it."""
        pins = self.pins
        rest = Signal(DATA_BITS * self.beats)
        left = Signal(range(self.beats + 1))
        m.d.sync += pins.dq_oe.eq(0)
        with m.If(self.writes.o.ready):
            word = Value.cast(self.writes.o.payload.word)
            m.d.sync += [pins.dq_o.eq(word), pins.dq_oe.eq(1)]
            m.d.sync += [rest.eq(word >> DATA_BITS), left.eq(self.beats - 1)]
        with m.Elif(left != 0):
            m.d.sync += [pins.dq_o.eq(rest), pins.dq_oe.eq(1)]
            m.d.sync += [rest.eq(rest >> DATA_BITS), left.eq(left - 1)]
