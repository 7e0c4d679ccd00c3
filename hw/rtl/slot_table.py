"""The subwindows that a join core keeps, and which of its buffers each of them has."""

from amaranth.hdl import *
from amaranth.lib import data

from hw.rtl.layouts import main_words, row_count

__all__ = ["SlotTable", "WIRE_BITS"]

#: A number of tuples on the wire, and a subwindow's number (hw.spec.commands.HEADER).
WIRE_BITS = 32


class SlotTable:
    """The core's subwindows, looked at one a cycle; a part of the core's module `m`.

    `look` and `survey` go through all slots with a `turn` from 0 to `slots`: they fetch the slot
    of that number and judge the one that was fetched the turn before.
    """

    def __init__(self, m, params, slots):
        self.m = m
        self.slots = slots
        self.words = main_words(params)
        rows = row_count(params)
        buffer = range(slots + 1)
        layout = data.StructLayout(
            {"used": 1, "side": 1, "subwindow": WIRE_BITS, "rows": rows, "capacity": rows,
             "buffer": buffer}
        )
        self.entries = Array(
            Signal(layout, name=f"slot_{n}", init={"buffer": n}) for n in range(slots)
        )
        self.spare = Signal(buffer, init=slots)
        # The slot that the last turn fetched, and its number.
        self.seen = Signal(layout)
        self.place = Signal(range(max(2, slots)))
        # What FIND found.
        self.found = Signal()
        self.slot = Signal(range(max(2, slots)))
        self.free = Signal()
        self.free_slot = Signal(range(max(2, slots)))
        self.rows = Signal(rows)
        self.capacity = Signal(rows)
        self.buffer = Signal(buffer)
        bits = (self.words * (slots + 1) - 1).bit_length()
        self.address = Signal(bits)
        self.spare_address = Signal(bits)
        m.d.comb += self.address.eq(self.buffer * self.words)
        m.d.comb += self.spare_address.eq(self.spare * self.words)
        # What SURVEY saw.
        self.any = Signal()
        self.newest = Signal(WIRE_BITS)
        self.newest_full = Signal()
        self.oldest = Signal(WIRE_BITS)
        self.oldest_empty = Signal()

    def forget(self):
        self.m.d.sync += [
            self.found.eq(0), self.free.eq(0), self.any.eq(0), self.newest_full.eq(0),
            self.oldest_empty.eq(0),
        ]

    def _fetch(self, turn):
        """The slot of the turn before; whether there was one."""
        self.m.d.sync += [self.seen.eq(self.entries[turn]), self.place.eq(turn)]
        return self.seen, turn != 0

    def look(self, turn, command):
        m = self.m
        entry, there = self._fetch(turn)
        mine = (entry.side == command.side) & (entry.subwindow == command.subwindow)
        with m.If(there & entry.used & mine):
            m.d.sync += [
                self.found.eq(1), self.slot.eq(self.place), self.rows.eq(entry.rows),
                self.capacity.eq(entry.capacity), self.buffer.eq(entry.buffer),
            ]
        with m.If(there & ~entry.used):
            m.d.sync += [self.free.eq(1), self.free_slot.eq(self.place)]

    def create(self, command):
        entry = self.entries[self.free_slot]
        self.m.d.sync += [
            entry.used.eq(1), entry.side.eq(command.side), entry.rows.eq(0),
            entry.subwindow.eq(command.subwindow),
            entry.capacity.eq(command.count[: len(entry.capacity)]),
            self.rows.eq(0),
        ]

    def inserted(self, rows):
        """The merged array is the subwindow's now, the one before it is the spare."""
        entry = self.entries[self.slot]
        self.m.d.sync += [
            entry.rows.eq(rows), entry.buffer.eq(self.spare), self.spare.eq(self.buffer),
            self.rows.eq(rows),
        ]

    def expire(self):
        self.m.d.sync += [self.entries[self.slot].used.eq(0), self.rows.eq(0)]

    def survey(self, turn, side):
        m = self.m
        entry, there = self._fetch(turn)
        with m.If(there & entry.used & (entry.side == side)):
            m.d.sync += self.any.eq(1)
            with m.If(~self.any | (entry.subwindow > self.newest)):
                m.d.sync += self.newest.eq(entry.subwindow)
                m.d.sync += self.newest_full.eq(entry.rows == entry.capacity)
            with m.If(~self.any | (entry.subwindow < self.oldest)):
                m.d.sync += self.oldest.eq(entry.subwindow)
                m.d.sync += self.oldest_empty.eq(entry.rows == 0)
