"""The prober of an index array that has an entry for every memory word: nothing to scan."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.layouts import check_geometry, row_count, token
from hw.rtl.partitioner import partition_bits, target_layout
from hw.rtl.plumbing import Buffer, ShortQueue
from hw.rtl.searcher import SearchPort
from hw.spec import JoinParams

__all__ = ["WordProber"]


class WordProber(wiring.Component):
    """One position for each bound: of the first tuple of the main array that is not before it.

    Requires that a partition is a memory word: the target partition of a bound is the one word
    in which its position lies, so that each bound costs one search in one word, whether a batch
    is dense or sparse.

    base       address of the main array's first word
    rows       tuples in it
    targets    frames of bounds with their target partitions, in any order
    positions  the same frames as positions
    search     who looks into words of memory. It is asked only for what has room here

    All but the streams may change only between frames. One bound a cycle if the search takes no
    more than 8 cycles, latency 6 cycles and the search's.
    """

    #: Bounds under way and positions that wait to be taken, at most: the queues hold as many.
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
                "targets": In(stream.Signature(token(target_layout(params)))),
                "positions": Out(stream.Signature(token(row_count(params)))),
                "search": Out(SearchPort(params, address_bits)),
            }
        )
        #: What waits for an answer: where its bound lies, or the end of a frame.
        self.note = data.StructLayout({"partition": partition_bits(params), "end": 1})
        # Whatever holds a bound, for proofs.
        self.asking = Buffer(self.search.requests.payload.shape())
        self.notes = ShortQueue(self.note, self.ROOM + 2)
        self.out = ShortQueue(token(row_count(params)), self.ROOM + 2)
        self.room = Signal(range(self.ROOM + 1), init=self.ROOM)
        self.may_begin = Signal()  # not in the first cycle, in which queues have no room
        self.counted = Signal()
        self.left = Signal()  # a position was taken, and its room is not counted yet

    def elaborate(self, platform):
        m = Module()
        for name in ("asking", "notes", "out"):
            m.submodules[name] = getattr(self, name)
        wiring.connect(m, self.asking.o, wiring.flipped(self.search.requests))
        wiring.connect(m, self.out.o, wiring.flipped(self.positions))
        self._ask(m)
        self._count(m)
        return m

    def _ask(self, m):
        """Ask for the bound's place in its word, and note which word that is."""
        target = self.targets.payload
        asking, notes = self.asking, self.notes
        begins = Signal()
        # What may begin has room in `notes`, too.
        m.d.comb += self.targets.ready.eq(asking.i.ready & self.may_begin)
        m.d.comb += begins.eq(self.targets.valid & self.targets.ready)
        # An end asks as well, for any word: so there is one answer for each note, in their order,
        # and no answer ever waits behind an end.
        m.d.comb += asking.i.valid.eq(begins)
        m.d.comb += asking.i.payload.address.eq(self.base + target.data.partition)
        m.d.comb += asking.i.payload.bound.eq(target.data.bound)
        m.d.comb += notes.i.valid.eq(begins)
        m.d.comb += notes.i.payload.partition.eq(target.data.partition)
        m.d.comb += notes.i.payload.end.eq(target.end)
        room = Signal.like(self.room)
        # A cycle later, because whether a position is taken is known late.
        m.d.sync += self.left.eq(self.out.o.valid & self.out.o.ready)
        m.d.comb += room.eq(self.room - begins + self.left)
        m.d.sync += self.room.eq(room)
        m.d.sync += self.may_begin.eq(room != 0)

    def _count(self, m):
        """Two stages: add what was found to the word's place, keep to the rows. Nothing waits."""
        found, notes = self.search.found, self.notes
        word = Cat(C(0, exact_log2(self.params.lanes)), notes.o.payload.partition)
        position = Signal(row_count(self.params))
        end = Signal()
        m.d.comb += notes.o.ready.eq(found.valid)
        m.d.sync += self.counted.eq(found.valid)
        m.d.sync += position.eq(word + found.count)
        m.d.sync += end.eq(notes.o.payload.end)
        # A copy that is this prober's own: whoever sets the rows is far from some probers.
        rows = Signal.like(self.rows)
        with m.If(~self.counted):
            m.d.sync += rows.eq(self.rows)
        out = self.out.i
        m.d.comb += out.valid.eq(self.counted)
        m.d.comb += out.payload.end.eq(end)
        # Memory beyond the rows has any keys.
        m.d.comb += out.payload.data.eq(Mux(position < rows, position, rows))
