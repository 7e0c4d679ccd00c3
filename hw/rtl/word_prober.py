"""The prober of an index array that has an entry for every memory word: nothing to scan."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.layouts import check_geometry, row_count, run_layout, token, word_layout
from hw.rtl.memory import ReadPort
from hw.rtl.partitioner import target_layout, targets_layout
from hw.rtl.plumbing import Buffer, ShortQueue
from hw.rtl.seeker import comes_before
from hw.spec import JoinParams

__all__ = ["WordProber"]


class WordProber(wiring.Component):
    """One run for each interval: the positions of the main array with keys inside.

    Requires that a partition is a memory word: the target partition of a bound is the one word
    in which its position lies, so that each bound costs one read, whether a batch is dense or
    sparse.

    base     address of the main array's first word
    rows     tuples in it
    targets  frames of intervals with their target partitions, in any order
    runs     the same frames as runs of positions; an interval that is empty gives start == end
    words    a read port of memory, for both bounds in turn: bursts of one word. It is asked only
             for what has room here, and a word that comes 3 cycles after its request or later is
             taken at once, so that the port can be shared

    All but the streams may change only between frames. One interval in two cycles, latency 8
    cycles and memory's.
    """

    #: Intervals under way and runs that wait to be taken, at most: the queues hold as many.
    ROOM = 14

    def __init__(self, params: JoinParams, address_bits):
        check_geometry(params)
        if params.partition_rows != params.lanes:
            raise ValueError(
                f"a WordProber needs partitions of a memory word, {params.lanes} tuples, "
                f"not {params.partition_rows}"
            )
        self.params = params
        super().__init__(
            {
                "base": In(address_bits),
                "rows": In(row_count(params)),
                "targets": In(stream.Signature(token(targets_layout(params)))),
                "runs": Out(stream.Signature(token(run_layout(params)))),
                "words": Out(ReadPort(word_layout(params), address_bits)).array(1),
            }
        )
        #: A bound that waits for its word, or the end of a frame.
        self.note = data.StructLayout({**target_layout(params).members, "hi": 1, "end": 1})
        # Whatever holds a bound, for proofs.
        self.asking = Buffer(self.words[0].requests.payload.shape())
        self.notes = ShortQueue(self.note, 2 * (self.ROOM + 2))
        self.out = ShortQueue(token(run_layout(params)), self.ROOM + 2)
        self.room = Signal(range(self.ROOM + 1), init=self.ROOM)
        self.second = Signal()  # the upper bound's turn
        self.met = Signal()
        self.compared = Signal()
        self.counted = Signal()
        self.under_way = [Signal(self.note, name=f"note_{n}") for n in range(3)]

    def elaborate(self, platform):
        m = Module()
        for name in ("asking", "notes", "out"):
            m.submodules[name] = getattr(self, name)
        wiring.connect(m, self.asking.o, wiring.flipped(self.words[0].requests))
        wiring.connect(m, self.out.o, wiring.flipped(self.runs))
        self._ask(m)
        self._count(m)
        return m

    def _ask(self, m):
        """The lower bound, then the upper one: ask for its word and note what it is for."""
        target = self.targets.payload
        asking, notes = self.asking, self.notes
        bound = Signal(target_layout(self.params))
        upper = Signal(target_layout(self.params))  # of the interval whose lower bound went
        m.d.comb += bound.eq(Mux(self.second, upper, target.data.lo))
        may_begin = Signal(init=1)  # a register: one interval can begin before it is seen
        m.d.sync += may_begin.eq(self.room >= 2)
        free = asking.i.ready & notes.i.ready
        go = Signal()
        m.d.comb += go.eq(free & (self.second | (self.targets.valid & may_begin)))
        m.d.comb += self.targets.ready.eq(free & may_begin & ~self.second)
        # An end asks as well, for any word: so there is one word for each note, in their order,
        # and no word ever waits behind an end.
        m.d.comb += asking.i.valid.eq(go)
        m.d.comb += asking.i.payload.address.eq(self.base + bound.partition)
        m.d.comb += asking.i.payload.count.eq(1)
        m.d.comb += notes.i.valid.eq(go)
        m.d.comb += notes.i.payload.bound.eq(bound.bound)
        m.d.comb += notes.i.payload.partition.eq(bound.partition)
        m.d.comb += notes.i.payload.hi.eq(self.second)
        m.d.comb += notes.i.payload.end.eq(target.end & ~self.second)
        with m.If(go):
            m.d.sync += self.second.eq(~self.second & ~target.end)
            with m.If(~self.second):
                m.d.sync += upper.eq(target.data.hi)
        begins = Signal()
        leaves = Signal()
        m.d.comb += begins.eq(go & ~self.second)
        m.d.comb += leaves.eq(self.out.o.valid & self.out.o.ready)
        m.d.sync += self.room.eq(self.room - begins + leaves)

    def _count(self, m):
        """Three stages: meet the word, compare every lane, count. Nothing here waits."""
        lanes = self.params.lanes
        lane_bits = exact_log2(lanes)
        words, notes = self.words[0].words, self.notes
        met, compared, counted = self.under_way
        keys = Signal(data.ArrayLayout(words.payload[0].key.shape(), lanes))
        whole = Signal(range(self.params.subwindow // lanes + 1))
        rest = Signal(lane_bits)
        m.d.sync += whole.eq(self.rows >> lane_bits)
        m.d.sync += rest.eq(self.rows[:lane_bits])
        m.d.comb += notes.o.ready.eq(words.valid)
        m.d.comb += words.ready.eq(notes.o.valid)
        m.d.sync += self.met.eq(notes.o.valid & words.valid)
        with m.If(words.valid):
            m.d.sync += met.eq(notes.o.payload)
            for lane in range(lanes):
                m.d.sync += keys[lane].eq(words.payload[lane].key)

        before = Signal(lanes)
        m.d.sync += self.compared.eq(self.met)
        m.d.sync += compared.eq(met)
        for lane in range(lanes):
            stored = (met.partition < whole) | ((met.partition == whole) & (lane < rest))
            m.d.sync += before[lane].eq(stored & comes_before(keys[lane], met.bound))

        position = Signal(row_count(self.params))
        m.d.sync += self.counted.eq(self.compared)
        m.d.sync += counted.eq(compared)
        # Keys ascend, so those before the bound are the first ones.
        count = sum(before[lane] for lane in range(lanes))
        m.d.sync += position.eq(Cat(C(0, lane_bits), compared.partition) + count)

        start = Signal(row_count(self.params))
        with m.If(self.counted & ~counted.hi):
            m.d.sync += start.eq(position)
        run = self.out.i.payload
        m.d.comb += self.out.i.valid.eq(self.counted & (counted.hi | counted.end))
        m.d.comb += run.data.start.eq(start)
        m.d.comb += run.data.end.eq(Mux(position < start, start, position))
        m.d.comb += run.end.eq(counted.end)
