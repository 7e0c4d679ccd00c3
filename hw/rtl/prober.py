"""The prober (PanJoin IV, figure 9): bounds and target partitions -> <start, end> records."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import record_layout, row_count, token, word_layout
from hw.rtl.memory import ReadPort
from hw.rtl.partitioner import targets_layout
from hw.rtl.plumbing import Buffer, Fork, Join
from hw.rtl.seeker import Seeker
from hw.spec import NOT, JoinParams

__all__ = ["Prober"]


class Prober(wiring.Component):
    """One record for each interval: the positions of the main array with keys inside.

    base     address of the main array's first word; it fills whole partitions of memory
    rows     tuples in it
    dense    scan each target partition like a merge, once for all bounds in it (PanJoin III-E);
             otherwise search inside it, one word for each halving
    negated  records carry the label NOT
    targets  frames of intervals with their target partitions, in any order
    records  the same frames as records; an interval that is empty gives start == end
    words    read ports of memory, for lower and for upper bounds. A word may wait until a record
             is taken: whoever shares one memory between ports sees to it that they do not wait
             for each other

    All but the streams may change only between frames. Throughput, with w tuples in a word, R in
    a partition and memory that delivers: dense, the larger of one word of a touched partition or
    one bound a cycle on each side, not both; sparse, one interval in 1 + log2(R / w) cycles.
    Latency about 12 cycles and memory's, once for each halving if sparse.
    """

    def __init__(self, params: JoinParams, address_bits):
        self.params = params
        self.lo = Seeker(params, address_bits)
        self.hi = Seeker(params, address_bits)
        self.fork = Fork(token(targets_layout(params)), 2)
        self.out = Buffer(token(record_layout()))
        super().__init__(
            {
                "base": In(address_bits),
                "rows": In(row_count(params)),
                "dense": In(1),
                "negated": In(1),
                "targets": In(stream.Signature(token(targets_layout(params)))),
                "records": Out(stream.Signature(token(record_layout()))),
                "words": Out(ReadPort(word_layout(params), address_bits)).array(2),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.fork = fork = self.fork
        m.submodules.out = out = self.out
        m.submodules.join = join = Join(
            lo=token(row_count(self.params)), hi=token(row_count(self.params))
        )
        wiring.connect(m, wiring.flipped(self.targets), fork.i)
        wiring.connect(m, out.o, wiring.flipped(self.records))
        for n, side in enumerate(("lo", "hi")):
            m.submodules[side] = seeker = getattr(self, side)
            m.d.comb += seeker.base.eq(self.base)
            m.d.comb += seeker.rows.eq(self.rows)
            m.d.comb += seeker.dense.eq(self.dense)
            m.d.comb += seeker.targets.valid.eq(fork.o[n].valid)
            m.d.comb += seeker.targets.payload.data.eq(fork.o[n].payload.data[side])
            m.d.comb += seeker.targets.payload.end.eq(fork.o[n].payload.end)
            m.d.comb += fork.o[n].ready.eq(seeker.targets.ready)
            wiring.connect(m, seeker.words, wiring.flipped(self.words[n]))
            wiring.connect(m, seeker.positions, getattr(join, f"i_{side}"))
        start = join.o.payload.lo.data
        end = join.o.payload.hi.data
        record = out.i.payload.data
        m.d.comb += record.start.eq(start)
        m.d.comb += record.end.eq(Mux(end < start, start, end) | Mux(self.negated, int(NOT), 0))
        m.d.comb += out.i.payload.end.eq(join.o.payload.lo.end)
        m.d.comb += out.i.valid.eq(join.o.valid)
        m.d.comb += join.o.ready.eq(out.i.ready)
        return m
