"""Partitioners (PanJoin IV): bounds -> target partitions, by the index array.

The index array has the first key of every partition. A bound's target partition is the last one
whose first key comes before the bound (partition 0 if none does): the bound's position lies in
it, or at its end. Both partitioners (the other is in hw.rtl.rebounding_partitioner) have the same
ports and give the same answers.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import bound_shape, bounds_layout
from hw.rtl.layouts import check_geometry, index_entries, key_shape, row_count, token
from hw.rtl.memory import NO_COLLISIONS
from hw.rtl.plumbing import BlockQueue, ShortQueue
from hw.spec import JoinParams

__all__ = [
    "Partitioner",
    "PipelinedPartitioner",
    "partition_bits",
    "target_layout",
    "targets_layout",
]


def partition_bits(params: JoinParams):
    """Bits of a partition's number."""
    return max(1, (index_entries(params) - 1).bit_length())


def target_layout(params: JoinParams):
    """A `bound` and its target `partition`."""
    return data.StructLayout({"bound": bound_shape(params), "partition": partition_bits(params)})


def targets_layout(params: JoinParams):
    """The targets of an interval's bounds `lo` and `hi` (PanJoin's P_low and P_up)."""
    target = target_layout(params)
    return data.StructLayout({"lo": target, "hi": target})


class Partitioner(wiring.Component):
    """The ports of both partitioners.

    entries  writes the index arrays, one a cycle: `key` at the entry `partition` of `array`
    array    the index array that is searched
    rows     tuples of its main array: entries that begin beyond them do not count
    bounds   frames of intervals as bounds
    targets  the same frames with target partitions

    `array` and `rows` may change only between frames, in a cycle in which no bound is offered,
    and entries only while none is searched. What is `far` has its memories all over a chip.
    """

    def __init__(self, params: JoinParams, arrays=1, *, far=False):
        check_geometry(params)
        self.params = params
        self.arrays = arrays
        self.far = far
        self.array_bits = max(1, (arrays - 1).bit_length())
        self.bits = partition_bits(params)
        entry = data.StructLayout(
            {"array": self.array_bits, "partition": self.bits, "key": key_shape(params)}
        )
        super().__init__(
            {
                "entries": In(stream.Signature(entry)),
                "array": In(self.array_bits),
                "rows": In(row_count(params)),
                "bounds": In(stream.Signature(token(bounds_layout(params)))),
                "targets": Out(stream.Signature(token(targets_layout(params)))),
            }
        )


class PipelinedPartitioner(Partitioner):
    """Binary search with one level of the index array after the other: for batches of any kind.

    Each level has a memory of its own, so every cycle begins another search, in any order of
    bounds. The first `QUICK` levels are small enough to be read and compared in one cycle. The
    others, in slow block RAM, take two: take the entry, then compare it and ask the next level.
    Latency 3 + 2 log2(partitions) - `QUICK` cycles, one interval a cycle. No stage ever waits, so
    that none needs an enable: a search begins only when the queue behind them has room for it.

    One that is `far` takes three cycles for a level in block RAM, because what was compared goes a
    long way to the blocks of the next level, and its longer queue is in block RAM, too: together
    log2(partitions) - `QUICK` cycles more.

    No step compares a partition's number with those in use: a search knows whether it is still on
    the way to the last of them (`last_yet`), and only then can lead beyond it.
    """

    #: Levels whose memory is made of LUTs: 16 entries for each index array at most, and of more
    #: than two arrays no more than this for all of them, because many are a long way to the one
    #: that is read.
    QUICK = 5
    QUICK_ENTRIES = 16
    #: Entries of a block of which one port reads and the other one writes. Both sides of a search
    #: have blocks of their own at levels up to here: as many as they would share, and nearer.
    OWN = 512

    def __init__(self, params: JoinParams, arrays=1, *, far=False):
        super().__init__(params, arrays, far=far)
        self.levels = (index_entries(params) - 1).bit_length()
        quick = range(min(self.QUICK, self.levels))
        self.quick = sum(arrays <= 2 or arrays << level <= self.QUICK_ENTRIES for level in quick)
        self.entry = Signal.like(self.entries.payload, reset_less=True)
        # What holds a token, for proofs.
        slow = self.levels - self.quick
        self.valid = Signal(self.quick + (3 * slow if far else 2 * slow + (slow > 0)))
        # As many as begin before the room of the first is known again: 5 cycles more.
        depth = 1 << (len(self.valid) + 6).bit_length()
        self.out = (BlockQueue if far else ShortQueue)(token(targets_layout(params)), depth)
        self.most = depth - 2  # searches under way and targets that wait to be taken
        self.room = Signal(range(depth), init=self.most)
        self.left = Signal()  # a target was taken, and its room is not counted yet

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.targets))
        last = self._last_partition(m)
        begins = self._begin(m)

        now = Signal(token(targets_layout(self.params)), name="search_in")
        m.d.comb += now.end.eq(self.bounds.payload.end)
        for side in ("lo", "hi"):
            m.d.comb += now.data[side].bound.eq(self.bounds.payload.data[side])
            m.d.comb += now.data[side].partition.eq(0)
        held = Cat(begins, self.valid)
        m.d.sync += self.valid.eq(held)
        search = now, C(3, 2)  # both bounds are still on the way to the last partition
        # The array's number goes from level to level beside the searches: no register has as many
        # ends as there are memories.
        array = self.array
        for level in range(self.quick):
            reads = self._read(m, level, _partitions(search), array)
            array = self._pass(m, f"array_{level}", array)
            entries = {side: read.data for side, read in reads.items()}
            in_use = self._in_use(level, last, search)
            search, _ = self._decide(m, level, last, search, entries, in_use)
        for level in range(self.quick, self.levels):
            if self.far or level == self.quick:
                # The quick levels are not so quick that they could ask block RAM in the same
                # cycle, nor is one in block RAM that is far.
                going = _partitions(search)
                name = "asked" if level == self.quick else f"{level}_asked"
                search = self._wait(m, name, search)
            reads = self._read(m, level, going, array, block=True)
            if self.far:
                array = self._pass(m, f"array_{level}_gone", array)
            array = self._pass(m, f"array_{level}", self._pass(m, f"array_{level}_asked", array))
            entries = self._take(m, level, reads)
            in_use = Signal(2, name=f"in_use_{level}", reset_less=True)
            m.d.sync += in_use.eq(self._in_use(level, last, search))
            search = self._wait(m, f"{level}_taken", search)
            search, going = self._decide(m, level, last, search, entries, in_use)
        now, _ = search
        m.d.comb += out.i.valid.eq(held[-1])
        m.d.comb += out.i.payload.eq(now)
        return m

    def _begin(self, m):
        """Whether a search begins now: there is room for its targets."""
        may_begin = Signal()
        begins = Signal()
        m.d.comb += self.bounds.ready.eq(may_begin)
        m.d.comb += begins.eq(self.bounds.valid & may_begin)
        room = Signal.like(self.room)
        # A cycle later, because whether a target is taken is known late.
        m.d.sync += self.left.eq(self.targets.valid & self.targets.ready)
        m.d.comb += room.eq(self.room - begins + self.left)
        m.d.sync += self.room.eq(room)
        m.d.sync += may_begin.eq(room != 0)
        return begins

    def _last_partition(self, m):
        """Take entries; return the last partition that holds a tuple, 0 where none does."""
        # A bound may be offered right after a reset, which does not change the rows.
        last = Signal(self.bits, reset_less=True)
        m.d.comb += self.entries.ready.eq(1)
        m.d.sync += self.entry.eq(self.entries.payload)
        rows = self.params.partition_rows
        # Each partitioner in its own time, so that synthesis does not make one register of all.
        with m.If(~self.bounds.valid):
            m.d.sync += last.eq(Mux(self.rows == 0, 0, (self.rows - 1) // rows))
        return last

    def _read(self, m, level, partitions, array, *, block=False):
        """Ports of a level's entries of that array, at the middle of what is left from those
        partitions on; of block RAM or of LUTs.
        """
        # This level's entries are the odd multiples of its step. They are written a cycle later,
        # because a level is far from who writes it.
        mine = self.entries.payload.partition[: self.bits - level] == self._step(level)
        writes = Signal(name=f"writes_{level}")
        m.d.sync += writes.eq(self.entries.valid & mine)
        entry = self.entry
        slot = entry.partition.bit_select(self.bits - level, level) if level else C(0, 0)
        entered = self._address(level, slot, entry.array)
        places = {
            side: self._address(level, partition.bit_select(self.bits - level, level), array)
            for side, partition in partitions.items()
        }
        own = block and self.arrays << level <= self.OWN
        reads = {}
        for sides in (("lo",), ("hi",)) if own else (("lo", "hi"),):
            cells = self._cells(level, block=block)
            m.submodules[f"level_{level}" + (f"_{sides[0]}" if own else "")] = cells
            write = cells.write_port()
            m.d.comb += write.en.eq(writes)
            m.d.comb += write.data.eq(entry.key)
            for side in sides:
                reads[side] = read = cells.read_port(domain="sync" if block else "comb")
                m.d.comb += read.addr.eq(places[side])
            if own or not block:
                m.d.comb += write.addr.eq(entered)
            else:
                # Entries come while nothing is searched, so one port of the blocks can do both.
                m.d.comb += write.addr.eq(reads["lo"].addr)
                with m.If(writes):
                    m.d.comb += reads["lo"].addr.eq(entered)
        return reads

    def _cells(self, level, *, block):
        """The memory of a level's entries."""
        attrs = {**NO_COLLISIONS, "ram_style": "block"} if block else {}
        depth = self.arrays << level
        return Memory(shape=key_shape(self.params), depth=depth, init=[], attrs=attrs)

    def _take(self, m, level, reads):
        """Registers for what block RAM gave: it is slow to answer."""
        entries = {}
        for side, read in reads.items():
            entries[side] = Signal.like(
                read.data, name=f"entry_{level}_{side}", reset_less=True
            )
            m.d.sync += entries[side].eq(read.data)
        return entries

    @staticmethod
    def _pass(m, name, value):
        """The same value a stage later."""
        later = Signal.like(value, name=name, reset_less=True)
        m.d.sync += later.eq(value)
        return later

    def _wait(self, m, name, search):
        """The same search a stage later."""
        now, last_yet = search
        later = self._pass(m, f"search_{name}", now)
        last_yet_later = Signal(2, name=f"last_yet_{name}", reset_less=True)
        m.d.sync += last_yet_later.eq(last_yet)
        return later, last_yet_later

    def _in_use(self, level, last, search):
        """Of both bounds: whether the middle of what is left is a partition in use."""
        _, last_yet = search
        return ~last_yet | self._digit(level, last).replicate(2)

    def _digit(self, level, last):
        return last[self._step(level).bit_length() - 1]

    def _decide(self, m, level, last, search, entries, in_use):
        """The search after this level, at its middle if the entry there is before the bound; and
        a cycle before, the partitions that it goes to.
        """
        now, last_yet = search
        decided = Signal.like(now, name=f"search_{level}", reset_less=True)
        still_last = Signal(2, name=f"last_yet_{level}", reset_less=True)
        step = self._step(level)
        digit = self._digit(level, last)
        going = {}
        m.d.sync += decided.eq(now)
        for n, (side, entry) in enumerate(entries.items()):
            right = Signal(name=f"right_{level}_{side}")
            m.d.comb += right.eq(in_use[n] & (entry < now.data[side].bound))
            going[side] = Signal(self.bits, name=f"going_{level}_{side}")
            m.d.comb += going[side].eq(now.data[side].partition | Mux(right, step, 0))
            m.d.sync += still_last[n].eq(last_yet[n] & (right == digit))
            m.d.sync += decided.data[side].partition.eq(going[side])
        return (decided, still_last), going

    def _step(self, level):
        return index_entries(self.params) >> (level + 1)

    def _address(self, level, slot, array):
        return Cat(slot, array) if self.arrays > 1 else slot


def _partitions(search):
    """Where a search has come, for the lower and the upper bound."""
    return {side: search[0].data[side].partition for side in ("lo", "hi")}
