"""Partitioners (PanJoin IV): bounds -> target partitions, by the index array.

The index array has the first key of every partition. A bound's target partition is the last one
whose first key comes before the bound (partition 0 if none does): the bound's position lies in
it, or at its end. Both partitioners have the same ports and give the same answers.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import bound_shape, bounds_layout
from hw.rtl.layouts import check_geometry, index_entries, key_shape, row_count, token
from hw.rtl.memory import NO_COLLISIONS
from hw.rtl.plumbing import Buffer, Fork, Join
from hw.spec import JoinParams

__all__ = [
    "PipelinedPartitioner",
    "ReboundingPartitioner",
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

    `array` and `rows` may change only between frames, and entries only while none is searched.
    """

    def __init__(self, params: JoinParams, arrays=1):
        check_geometry(params)
        self.params = params
        self.arrays = arrays
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

    def _partitions_in_use(self, m):
        """Take entries; return how many of them count: the partitions that hold a tuple."""
        rows = self.params.partition_rows
        in_use = Signal(range(index_entries(self.params) + 1))
        m.d.comb += self.entries.ready.eq(1)
        m.d.sync += in_use.eq((self.rows + (rows - 1)) // rows)
        return in_use


class PipelinedPartitioner(Partitioner):
    """Binary search with one level of the index array after the other: for batches of any kind.

    Each level has a memory of its own, so every cycle begins another search, in any order of
    bounds. The first `QUICK` levels are small enough to be read and compared in one cycle, the
    others take two. Latency 2 + 2 log2(partitions) - `QUICK` cycles, one interval a cycle.

    No step compares a partition's number with those in use: a search knows whether it is still on
    the way to the last of them (`last_yet`), and only then can lead beyond it.
    """

    #: Levels whose memory is made of LUTs: 16 entries for each index array at most.
    QUICK = 5

    def __init__(self, params: JoinParams, arrays=1):
        super().__init__(params, arrays)
        self.levels = (index_entries(params) - 1).bit_length()
        self.quick = min(self.QUICK, self.levels)
        # What holds a token, for proofs.
        self.valid = Signal(1 + 2 * self.levels - self.quick)
        self.out = Buffer(token(targets_layout(params)))

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.targets))
        advance = out.i.ready
        last = self._last_partition(m)
        m.d.comb += self.bounds.ready.eq(advance)

        now = Signal(token(targets_layout(self.params)), name="search_in")
        last_yet = Signal(2, name="last_yet_in", init=3)  # of the lower and the upper bound
        with m.If(advance):
            m.d.sync += self.valid.eq(Cat(self.bounds.valid, self.valid))
            m.d.sync += now.end.eq(self.bounds.payload.end)
            for side in ("lo", "hi"):
                m.d.sync += now.data[side].bound.eq(self.bounds.payload.data[side])
                m.d.sync += now.data[side].partition.eq(0)
        stages = iter(range(len(self.valid)))
        for level in range(self.levels):
            now, last_yet = self._level(m, level, advance, last, now, last_yet, stages)
        m.d.comb += out.i.valid.eq(self.valid[-1])
        m.d.comb += out.i.payload.eq(now)
        return m

    def _last_partition(self, m):
        """Take entries; return the last partition that holds a tuple, 0 where none does."""
        last = Signal(self.bits)
        m.d.comb += self.entries.ready.eq(1)
        rows = self.params.partition_rows
        m.d.sync += last.eq(Mux(self.rows == 0, 0, (self.rows - 1) // rows))
        return last

    def _level(self, m, level, advance, last, now, last_yet, stages):
        """Read the middle of what is left, then go left or right of it."""
        step = index_entries(self.params) >> (level + 1)
        quick = level < self.quick
        depth = self.arrays << level
        attrs = {} if quick else {**NO_COLLISIONS, "ram_style": "block"}
        cells = Memory(shape=key_shape(self.params), depth=depth, init=[], attrs=attrs)
        m.submodules[f"level_{level}"] = cells
        write = cells.write_port()
        entry = self.entries.payload
        slot = entry.partition.bit_select(self.bits - level, level) if level else C(0, 0)
        # This level's entries are the odd multiples of its step.
        mine = entry.partition[: self.bits - level] == step
        m.d.comb += write.en.eq(self.entries.valid & mine)
        entered = self._address(level, slot, entry.array)
        m.d.comb += write.data.eq(entry.key)

        # A stage that holds no search rests: less to switch, and less to simulate.
        fetch = Signal(name=f"fetch_{level}")
        m.d.comb += fetch.eq(advance & self.valid[next(stages)])
        reads = {}
        for side in ("lo", "hi"):
            reads[side] = read = cells.read_port(domain="comb" if quick else "sync")
            place = now.data[side].partition.bit_select(self.bits - level, level)
            m.d.comb += read.addr.eq(self._address(level, place, self.array))
            if not quick:
                m.d.comb += read.en.eq(fetch)
        if quick:
            m.d.comb += write.addr.eq(entered)
            return self._decide(m, level, fetch, last, now, last_yet, reads, step)
        # Entries come while nothing is searched, so one port of the blocks can do both.
        m.d.comb += write.addr.eq(reads["lo"].addr)
        with m.If(write.en):
            m.d.comb += reads["lo"].addr.eq(entered)
        fetched = Signal.like(now, name=f"search_{level}_fetched")
        decide = Signal(name=f"decide_{level}")
        m.d.comb += decide.eq(advance & self.valid[next(stages)])
        last_yet_fetched = Signal(2, name=f"last_yet_{level}_fetched")
        with m.If(fetch):
            m.d.sync += fetched.eq(now)
            m.d.sync += last_yet_fetched.eq(last_yet)
        return self._decide(m, level, decide, last, fetched, last_yet_fetched, reads, step)

    def _decide(self, m, level, decide, last, now, last_yet, reads, step):
        """The search after this level: its middle, if the entry there is before the bound."""
        decided = Signal.like(now, name=f"search_{level}")
        still_last = Signal(2, name=f"last_yet_{level}")
        with m.If(decide):
            m.d.sync += decided.eq(now)
        digit = last[step.bit_length() - 1]
        for n, (side, read) in enumerate(reads.items()):
            right = Signal(name=f"right_{level}_{side}")
            in_use = ~last_yet[n] | digit
            m.d.comb += right.eq(in_use & (read.data < now.data[side].bound))
            with m.If(decide):
                m.d.sync += still_last[n].eq(last_yet[n] & (right == digit))
                with m.If(right):
                    m.d.sync += decided.data[side].partition.eq(now.data[side].partition | step)
        return decided, still_last

    def _address(self, level, slot, array):
        return Cat(slot, array) if self.arrays > 1 else slot


class ReboundingPartitioner(Partitioner):
    """Rebounding binary search (PanJoin III-E, figure 6): for batches that ascend.

    Each search begins at the partition of the bound before it. A bound in that same partition
    takes 1 cycle, one d partitions ahead about 4 log2(d + 1) + 3; one that descends starts anew at
    partition 0. Latency 3 cycles and more.
    """

    def elaborate(self, platform):
        m = Module()
        params = self.params
        in_use = self._partitions_in_use(m)
        m.submodules.fork = fork = Fork(token(bounds_layout(params)), 2)
        m.submodules.out = out = Buffer(token(targets_layout(params)))
        target = token(target_layout(params))
        m.submodules.join = join = Join(lo=target, hi=target)
        wiring.connect(m, wiring.flipped(self.bounds), fork.i)
        wiring.connect(m, out.o, wiring.flipped(self.targets))
        depth = self.arrays << self.bits
        m.submodules.cells = cells = Memory(shape=key_shape(params), depth=depth, init=[])
        write = cells.write_port()
        m.d.comb += write.en.eq(self.entries.valid)
        m.d.comb += write.addr.eq(Cat(self.entries.payload.partition, self.entries.payload.array))
        m.d.comb += write.data.eq(self.entries.payload.key)

        for n, side in enumerate(("lo", "hi")):
            m.submodules[side] = search = ReboundingSearch(params)
            read = cells.read_port()
            m.d.comb += search.in_use.eq(in_use)
            m.d.comb += read.addr.eq(Cat(search.wanted, self.array))
            m.d.comb += search.key.eq(read.data)
            m.d.comb += search.bounds.valid.eq(fork.o[n].valid)
            m.d.comb += search.bounds.payload.end.eq(fork.o[n].payload.end)
            m.d.comb += search.bounds.payload.data.eq(fork.o[n].payload.data[side])
            m.d.comb += fork.o[n].ready.eq(search.bounds.ready)
            wiring.connect(m, search.targets, getattr(join, f"i_{side}"))
            m.d.comb += out.i.payload.data[side].eq(join.o.payload[side].data)
        m.d.comb += out.i.payload.end.eq(join.o.payload.lo.end)
        m.d.comb += out.i.valid.eq(join.o.valid)
        m.d.comb += join.o.ready.eq(out.i.ready)
        return m


class ReboundingSearch(wiring.Component):
    """The rebounding search of one bound of each interval.

    `wanted` is an entry of the index array, whose `key` follows a cycle later.
    """

    def __init__(self, params: JoinParams):
        self.params = params
        self.bits = partition_bits(params)
        super().__init__(
            {
                "in_use": In(range(index_entries(params) + 1)),
                "wanted": Out(self.bits),
                "key": In(key_shape(params)),
                "bounds": In(stream.Signature(token(bound_shape(params)))),
                "targets": Out(stream.Signature(token(target_layout(params)))),
            }
        )
        self.waiting = Buffer(token(bound_shape(params)))
        self.out = Buffer(token(target_layout(params)))

    def elaborate(self, platform):
        m = Module()
        m.submodules.waiting = waiting = self.waiting
        m.submodules.out = out = self.out
        wiring.connect(m, wiring.flipped(self.bounds), waiting.i)
        wiring.connect(m, out.o, wiring.flipped(self.targets))
        bound = waiting.o.payload.data
        end = waiting.o.payload.end

        # The partition of the bound before, that bound, and the first key after that partition.
        partition = Signal(self.bits)
        before = Signal(bound_shape(self.params))
        fence = Signal(key_shape(self.params))
        fenced = Signal()
        known = Signal()
        step = Signal(self.bits + 2)
        middle = Signal(self.bits + 2)
        forward = Signal()
        ascends = Signal()
        m.d.comb += ascends.eq(known & (bound >= before))
        m.d.comb += middle.eq(partition + step)
        m.d.comb += self.wanted.eq(middle)
        m.d.comb += out.i.payload.data.bound.eq(bound)
        m.d.comb += out.i.payload.data.partition.eq(partition)
        m.d.comb += out.i.payload.end.eq(end)

        with m.FSM():
            with m.State("ANSWER"):
                with m.If(waiting.o.valid & (end | (ascends & ~(fenced & (fence < bound))))):
                    m.d.comb += out.i.valid.eq(1)
                    m.d.comb += waiting.o.ready.eq(out.i.ready)
                    with m.If(out.i.ready):
                        m.d.sync += before.eq(bound)
                        m.d.sync += known.eq(~end)
                with m.Elif(waiting.o.valid):
                    m.d.sync += partition.eq(Mux(ascends, partition, 0))
                    m.d.sync += step.eq(1)
                    m.d.sync += forward.eq(1)
                    m.next = "READ"
            with m.State("READ"):
                m.next = "COMPARE"
            with m.State("COMPARE"):
                m.next = "READ"
                with m.If((middle < self.in_use) & (self.key < bound)):
                    m.d.sync += partition.eq(middle)
                    m.d.sync += step.eq(Mux(forward, step << 1, step >> 1))
                with m.Else():
                    m.d.sync += fence.eq(self.key)
                    m.d.sync += fenced.eq(middle < self.in_use)
                    m.d.sync += forward.eq(0)
                    m.d.sync += step.eq(step >> 1)
                with m.If(step[0] & ~(forward & (middle < self.in_use) & (self.key < bound))):
                    # The key after the partition is known now: the bound is in front of it.
                    m.d.sync += before.eq(bound)
                    m.d.sync += known.eq(1)
                    m.next = "ANSWER"
        return m
