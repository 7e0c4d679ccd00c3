"""An SDRAM chip that complains: it stores words and checks everything that its data sheet asks."""

from amaranth.hdl import Array, Cat, Module, Mux, Signal, unsigned
from amaranth.lib import enum, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.sdram import DATA_BITS, Command, SdramPins, SdramTiming

__all__ = ["Fault", "SdramChip"]


class Fault(enum.Enum, shape=4):  # type: ignore[call-arg]
    """The first thing that was done wrong."""

    NONE = 0
    TOO_EARLY = 1  # a command before power-up was over, or before the one before it was
    NOT_SET_UP = 2  # rows not closed, fewer than two refreshes, no mode
    ROW_OPEN = 3  # opened, refreshed or set up with a row open
    ROW_CLOSED = 4  # a column of a row that is not open
    TOO_SOON_OPENED = 5  # tRC
    TOO_SOON_CLOSED = 6  # tRAS
    NOT_RECOVERED = 7  # tWR
    COLUMN_TOO_SOON = 8  # tRCD
    DATA_CLASH = 9  # both ends drive the data pins, or a burst is cut
    NOT_REFRESHED = 10  # more than eight refreshes behind
    NO_DATA = 11  # a write whose data are not on the pins
    OUTSIDE = 12  # a row that this model does not store


class SdramChip(wiring.Component):
    """``pins`` of a chip with `timing`, clocked at `hertz`; it stores `rows` rows of each bank.

    fault  stays at the first
    """

    def __init__(self, timing: SdramTiming, hertz: float, rows=4):
        self.timing, self.hertz, self.rows = timing, hertz, rows
        super().__init__({"pins": In(SdramPins(timing)), "fault": Out(Fault)})

    def elaborate(self, platform):
        m = Module()
        timing, pins = self.timing, self.pins
        self.now = Signal(32)
        m.d.sync += self.now.eq(self.now + 1)
        banks = 1 << timing.bank_bits
        self.opened = Array(Signal(name=f"opened_{n}") for n in range(banks))
        self.row = Array(Signal(timing.row_bits, name=f"row_{n}") for n in range(banks))
        self.when = {
            name: Array(Signal(32, name=f"{name}_{n}") for n in range(banks))
            for name in ("activated", "written")
        }
        self.last = {name: Signal(32, name=f"last_{name}") for name in
                     ("precharge", "refresh", "mode")}
        self.begun = {name: Signal(range(16), name=f"begun_{name}") for name in
                      ("precharge", "refresh", "mode")}
        self._store(m)
        self._refreshes(m)
        command = pins.command
        with m.If(command != Command.NOP):
            self._check_order(m)
        with m.Switch(command):
            with m.Case(Command.ACTIVATE):
                self._activate(m)
            with m.Case(Command.PRECHARGE):
                self._precharge(m)
            with m.Case(Command.REFRESH):
                self._refresh(m)
            with m.Case(Command.MODE):
                self._complain(m, self._any_open(), Fault.ROW_OPEN)
                self._note(m, "mode")
        return m

    def _complain(self, m, wrong, fault):
        with m.If(wrong & (self.fault == Fault.NONE)):
            m.d.sync += self.fault.eq(fault)

    def _since(self, moment):
        return self.now - moment

    def _cycles(self, name):
        return self.timing.cycles(name, self.hertz)

    def _note(self, m, name):
        m.d.sync += self.last[name].eq(self.now)
        with m.If(self.begun[name] != 15):
            m.d.sync += self.begun[name].eq(self.begun[name] + 1)

    def _any_open(self):
        return Cat(*self.opened).any()

    def _check_order(self, m):
        """What must have passed before any command."""
        self._complain(m, self.now < self._cycles("power_up"), Fault.TOO_EARLY)
        for name, least in (
            ("refresh", self._cycles("refresh")), ("mode", self.timing.mode_cycles),
        ):
            early = (self.begun[name] != 0) & (self._since(self.last[name]) < least)
            self._complain(m, early, Fault.TOO_EARLY)

    def _closed_long_enough(self, m):
        early = self._since(self.last["precharge"]) < self._cycles("precharge")
        self._complain(m, (self.begun["precharge"] != 0) & early, Fault.TOO_EARLY)

    def _activate(self, m):
        bank = self.pins.bank
        ready = (self.begun["refresh"] >= 2) & (self.begun["mode"] != 0)
        self._complain(m, ~ready, Fault.NOT_SET_UP)
        self._complain(m, self.opened[bank], Fault.ROW_OPEN)
        self._complain(m, self.pins.address >= self.rows, Fault.OUTSIDE)
        self._closed_long_enough(m)
        before = self.when["activated"][bank]
        soon = (before != 0) & (self._since(before) < self._cycles("cycle"))
        self._complain(m, soon, Fault.TOO_SOON_OPENED)
        m.d.sync += [self.opened[bank].eq(1), self.row[bank].eq(self.pins.address)]
        m.d.sync += before.eq(self.now)

    def _precharge(self, m):
        every = self.pins.address[10]
        for n, opened in enumerate(self.opened):
            with m.If(opened & (every | (self.pins.bank == n))):
                m.d.sync += opened.eq(0)
                open_for = self._since(self.when["activated"][n])
                self._complain(m, open_for < self._cycles("open_least"), Fault.TOO_SOON_CLOSED)
                since = self._since(self.when["written"][n])
                wrote = self.when["written"][n] != 0
                late = wrote & (since < self._cycles("recover") + 1)
                self._complain(m, late, Fault.NOT_RECOVERED)
                self._complain(m, self.busy, Fault.DATA_CLASH)
        self._note(m, "precharge")

    def _refresh(self, m):
        self._complain(m, self._any_open(), Fault.ROW_OPEN)
        self._complain(m, self.begun["precharge"] == 0, Fault.NOT_SET_UP)
        self._closed_long_enough(m)
        self._note(m, "refresh")

    def _refreshes(self, m):
        """Once set up, never more than eight refreshes behind."""
        behind = Signal(range(16))
        every = self._cycles("refresh_every")
        tick = Signal(range(every))
        done = self.pins.command == Command.REFRESH
        with m.If(self.begun["mode"] != 0):
            m.d.sync += tick.eq(Mux(tick == every - 1, 0, tick + 1))
            with m.If((tick == every - 1) & ~done & (behind != 15)):
                m.d.sync += behind.eq(behind + 1)
            with m.Elif(done & (tick != every - 1) & (behind != 0)):
                m.d.sync += behind.eq(behind - 1)
        self._complain(m, behind > 8, Fault.NOT_REFRESHED)

    def _store(self, m):
        """Bursts of reads and writes."""
        timing, pins = self.timing, self.pins
        row_bits = (self.rows - 1).bit_length()
        bits = timing.column_bits + timing.bank_bits + row_bits
        m.submodules.cells = cells = Memory(shape=unsigned(DATA_BITS), depth=1 << bits, init=[])
        length = Signal(range(9))  # of a burst
        with m.If(pins.command == Command.MODE):
            m.d.sync += length.eq(1 << pins.address[:3])
            self._complain(m, pins.address[4:7] != timing.cas, Fault.NOT_SET_UP)
        at = Signal(bits)
        left = Signal(range(9))  # beats of the burst that are still to come
        writes = Signal()
        is_read, is_write = (pins.command == c for c in (Command.READ, Command.WRITE))
        begins = is_read | is_write
        place = Cat(pins.address[: timing.column_bits], pins.bank, self.row[pins.bank][:row_bits])
        with m.If(begins):
            self._complain(m, ~self.opened[pins.bank], Fault.ROW_CLOSED)
            early = self._since(self.when["activated"][pins.bank]) < self._cycles("activate")
            self._complain(m, early, Fault.COLUMN_TOO_SOON)
            self._complain(m, left != 0, Fault.DATA_CLASH)
            m.d.sync += [at.eq(place + 1), left.eq(length - 1), writes.eq(is_write)]
        with m.Elif(left != 0):
            m.d.sync += [at.eq(at + 1), left.eq(left - 1)]
        now = Mux(begins, place, at)
        moves = begins | (left != 0)
        writing = Mux(begins, is_write, writes)
        self.busy = Signal()
        m.d.comb += self.busy.eq(left != 0)
        write = cells.write_port()
        m.d.comb += [write.addr.eq(now), write.data.eq(pins.dq_o), write.en.eq(moves & writing)]
        self._complain(m, moves & writing & (~pins.dq_oe | pins.mask), Fault.NO_DATA)
        with m.If(moves & writing):
            m.d.sync += self.when["written"][Mux(begins, pins.bank, at[timing.column_bits :])].eq(
                self.now
            )
        # The memory answers a cycle behind, the rest of the latency is made of registers.
        read = cells.read_port()
        m.d.comb += [read.addr.eq(now), read.en.eq(1)]
        data, drives = read.data, moves & ~writing
        for n in range(timing.cas - 1):
            later = Signal(DATA_BITS, name=f"data_{n}")
            m.d.sync += later.eq(data)
            data = later
        for n in range(timing.cas):
            later = Signal(name=f"drives_{n}")
            m.d.sync += later.eq(drives)
            drives = later
        m.d.comb += pins.dq_i.eq(Mux(drives, data, 0xDEAD))
        self._complain(m, drives & pins.dq_oe, Fault.DATA_CLASH)
