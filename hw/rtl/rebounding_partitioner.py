"""The rebounding partitioner (PanJoin III-E, figure 6): bounds that ascend -> target partitions."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import bound_shape, bounds_layout
from hw.rtl.layouts import index_entries, key_shape, token
from hw.rtl.partitioner import Partitioner, partition_bits, target_layout, targets_layout
from hw.rtl.plumbing import Buffer, Fork, Join
from hw.spec import JoinParams

__all__ = ["ReboundingPartitioner", "ReboundingSearch"]


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

    def _partitions_in_use(self, m):
        """Take entries; return how many of them count: the partitions that hold a tuple."""
        rows = self.params.partition_rows
        in_use = Signal(range(index_entries(self.params) + 1))
        m.d.comb += self.entries.ready.eq(1)
        m.d.sync += in_use.eq((self.rows + (rows - 1)) // rows)
        return in_use


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
