"""Arrays of tuples in memory as frames on streams, and back.

A job names a place in memory; one frame follows for each job, in the order of the jobs.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.layouts import row_count, token, tuple_layout, wide_token, word_layout
from hw.rtl.memory import ReadPort, WritePort, write_layout
from hw.rtl.plumbing import Buffer, ShortQueue
from hw.spec import JoinParams

__all__ = ["WordReader", "TupleReader", "WideReader", "TupleWriter", "WideWriter"]


class WordReader(wiring.Component):
    """Each of the ``jobs``, `count` words from `address`, as bursts on ``read``, into ``words``.

    It asks only for what it has room for, so that its words never wait in the memory's port. One
    word a cycle if the memory answers within `DEPTH` - `BURST` cycles.
    """

    DEPTH = 32
    BURST = 8

    def __init__(self, word, address_bits, *, depth=DEPTH, burst=BURST):
        self.word = word
        self.address_bits = address_bits
        self.depth = depth
        self.burst = burst
        job = data.StructLayout({"address": address_bits, "count": address_bits + 1})
        super().__init__(
            {
                "jobs": In(stream.Signature(job)),
                "read": Out(ReadPort(word, address_bits)),
                "words": Out(stream.Signature(word)),
            }
        )
        # Attributes, here and below, so that a proof can count what is inside.
        self.queue = ShortQueue(word, depth)
        self.left = Signal(address_bits + 1)
        self.owed = Signal(range(depth + 1))  # words asked for and not yet taken from `words`

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        wiring.connect(m, wiring.flipped(self.read.words), queue.i)
        wiring.connect(m, queue.o, wiring.flipped(self.words))

        address = Signal(self.address_bits)
        left, owed = self.left, self.owed
        request = self.read.requests
        m.d.comb += self.jobs.ready.eq(left == 0)
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += address.eq(self.jobs.payload.address)
            m.d.sync += left.eq(self.jobs.payload.count)

        # The offer is registered: it must stay as it is, whatever `owed` does meanwhile.
        size = Signal(range(self.burst + 1))
        m.d.comb += size.eq(Mux(left < self.burst, left, self.burst))
        asked = Signal(range(self.burst + 1))
        # One place of the queue is never used (see ShortQueue); the words in it are `owed`.
        with m.If((left != 0) & (owed < self.depth - self.burst) & (~request.valid)):
            m.d.sync += request.valid.eq(1)
            m.d.sync += request.payload.address.eq(address)
            m.d.sync += request.payload.count.eq(size)
            m.d.sync += address.eq(address + size)
            m.d.sync += left.eq(left - size)
            m.d.comb += asked.eq(size)
        with m.Elif(request.ready):
            m.d.sync += request.valid.eq(0)
        m.d.sync += owed.eq(owed + asked - (self.words.valid & self.words.ready))
        return m


class TupleReader(wiring.Component):
    """Each of the ``jobs``, `count` tuples from the tuple `first` on of the array at the word
    `address`, as a frame of ``tuples`` read through ``read``.

    One tuple a cycle.
    """

    def __init__(self, params: JoinParams, address_bits):
        self.params = params
        self.address_bits = address_bits
        job = data.StructLayout(
            {"address": address_bits, "first": row_count(params), "count": row_count(params)}
        )
        super().__init__(
            {
                "jobs": In(stream.Signature(job)),
                "read": Out(ReadPort(word_layout(params), address_bits)),
                "tuples": Out(stream.Signature(token(tuple_layout(params)))),
            }
        )
        self.reader = WordReader(word_layout(params), address_bits, depth=16, burst=4)
        self.out = Buffer(token(tuple_layout(params)))
        self.busy = Signal()
        self.lane = Signal(exact_log2(params.lanes))
        self.left = Signal(row_count(params))

    def elaborate(self, platform):
        m = Module()
        lane_bits = exact_log2(self.params.lanes)
        m.submodules.reader = reader = self.reader
        m.submodules.out = out = self.out
        wiring.connect(m, reader.read, wiring.flipped(self.read))
        wiring.connect(m, out.o, wiring.flipped(self.tuples))

        job = self.jobs.payload
        busy, lane, left = self.busy, self.lane, self.left
        skip = job.first[:lane_bits]
        words = (skip + job.count + (self.params.lanes - 1)) >> lane_bits
        m.d.comb += reader.jobs.payload.address.eq(job.address + (job.first >> lane_bits))
        m.d.comb += reader.jobs.payload.count.eq(Mux(job.count == 0, 0, words))
        m.d.comb += reader.jobs.valid.eq(self.jobs.valid & ~busy)
        m.d.comb += self.jobs.ready.eq(reader.jobs.ready & ~busy)
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += busy.eq(1)
            m.d.sync += lane.eq(skip)
            m.d.sync += left.eq(job.count)

        m.d.comb += out.i.payload.end.eq(left == 0)
        m.d.comb += Value.cast(out.i.payload.data).eq(Value.cast(reader.words.payload[lane]))
        m.d.comb += out.i.valid.eq(busy & (reader.words.valid | (left == 0)))
        with m.If(out.i.valid & out.i.ready):
            with m.If(left == 0):
                m.d.sync += busy.eq(0)
            with m.Else():
                m.d.sync += left.eq(left - 1)
                m.d.sync += lane.eq(lane + 1)
                m.d.comb += reader.words.ready.eq((lane == self.params.lanes - 1) | (left == 1))
        return m


class WideReader(wiring.Component):
    """Each of the ``jobs``, `count` tuples of the array at the word `address`, as a frame of wide
    tokens ``tuples`` read through ``read``. One word a cycle if the memory answers within 3/4 of
    `depth`, the words that there is room for here.
    """

    def __init__(self, params: JoinParams, address_bits, *, depth=WordReader.DEPTH):
        self.params = params
        self.address_bits = address_bits
        job = data.StructLayout({"address": address_bits, "count": row_count(params)})
        wide = wide_token(tuple_layout(params), params.lanes)
        super().__init__(
            {
                "jobs": In(stream.Signature(job)),
                "read": Out(ReadPort(word_layout(params), address_bits)),
                "tuples": Out(stream.Signature(wide)),
            }
        )
        self.reader = WordReader(word_layout(params), address_bits, depth=depth, burst=depth // 4)
        self.busy = Signal()
        self.left = Signal(row_count(params))
        self.none = Signal()  # none is left: a register, because all else waits for it

    def elaborate(self, platform):
        m = Module()
        lanes = self.params.lanes
        m.submodules.reader = reader = self.reader
        wiring.connect(m, reader.read, wiring.flipped(self.read))
        job = self.jobs.payload
        busy, left, none = self.busy, self.left, self.none
        m.d.comb += reader.jobs.payload.address.eq(job.address)
        m.d.comb += reader.jobs.payload.count.eq((job.count + (lanes - 1)) >> exact_log2(lanes))
        m.d.comb += reader.jobs.valid.eq(self.jobs.valid & ~busy)
        m.d.comb += self.jobs.ready.eq(reader.jobs.ready & ~busy)
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += busy.eq(1)
            m.d.sync += left.eq(job.count)
            m.d.sync += none.eq(job.count == 0)

        o = self.tuples
        m.d.comb += o.payload.end.eq(none)
        m.d.comb += o.payload.count.eq(Mux(left < lanes, left, lanes))
        m.d.comb += Value.cast(o.payload.data).eq(Value.cast(reader.words.payload))
        m.d.comb += o.valid.eq(busy & (reader.words.valid | none))
        with m.If(o.valid & o.ready):
            with m.If(none):
                m.d.sync += busy.eq(0)
            with m.Else():
                m.d.sync += left.eq(left - o.payload.count)
                m.d.sync += none.eq(left <= lanes)
        # Whether a word is there or not: who asks for it is far.
        m.d.comb += reader.words.ready.eq(busy & ~none & o.ready)
        return m


class TupleWriter(wiring.Component):
    """The frame of ``tuples`` after each of the ``jobs``, written through ``write`` from the word
    `address` on. One tuple a cycle; what a last word has beyond the frame is arbitrary.
    """

    def __init__(self, params: JoinParams, address_bits):
        self.params = params
        self.address_bits = address_bits
        super().__init__(
            {
                "jobs": In(stream.Signature(data.StructLayout({"address": address_bits}))),
                "tuples": In(stream.Signature(token(tuple_layout(params)))),
                "write": Out(WritePort(word_layout(params), address_bits)),
            }
        )
        self.out = Buffer(write_layout(word_layout(params), address_bits))
        self.busy = Signal()
        self.address = Signal(address_bits)
        self.lane = Signal(range(params.lanes))
        self.filled = Signal(word_layout(params))

    def elaborate(self, platform):
        m = Module()
        lanes = self.params.lanes
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.write.writes))
        busy, address, lane, filled = self.busy, self.address, self.lane, self.filled
        m.d.comb += self.jobs.ready.eq(~busy)
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += busy.eq(1)
            m.d.sync += address.eq(self.jobs.payload.address)

        i = self.tuples
        full = Signal()  # this token completes a word
        m.d.comb += full.eq(Mux(i.payload.end, lane != 0, lane == lanes - 1))
        m.d.comb += out.i.payload.address.eq(address)
        m.d.comb += out.i.payload.word.eq(filled)
        with m.If(~i.payload.end):
            m.d.comb += Value.cast(out.i.payload.word[lanes - 1]).eq(Value.cast(i.payload.data))
        m.d.comb += out.i.valid.eq(busy & i.valid & full)
        m.d.comb += i.ready.eq(busy & (out.i.ready | ~full))
        with m.If(i.valid & i.ready):
            m.d.sync += Value.cast(filled[lane]).eq(Value.cast(i.payload.data))
            m.d.sync += lane.eq(lane + 1)
            with m.If(full):
                m.d.sync += address.eq(address + 1)
            with m.If(i.payload.end):
                m.d.sync += lane.eq(0)
                m.d.sync += busy.eq(0)
        return m


class WideWriter(wiring.Component):
    """The frame of wide ``tuples`` after each of the ``jobs``, written through ``write`` from the
    word `address` on. One word a cycle.
    """

    def __init__(self, params: JoinParams, address_bits):
        self.params = params
        self.address_bits = address_bits
        wide = wide_token(tuple_layout(params), params.lanes)
        super().__init__(
            {
                "jobs": In(stream.Signature(data.StructLayout({"address": address_bits}))),
                "tuples": In(stream.Signature(wide)),
                "write": Out(WritePort(word_layout(params), address_bits)),
            }
        )
        self.busy = Signal()
        self.address = Signal(address_bits)

    def elaborate(self, platform):
        m = Module()
        busy, address = self.busy, self.address
        m.d.comb += self.jobs.ready.eq(~busy)
        with m.If(self.jobs.valid & self.jobs.ready):
            m.d.sync += busy.eq(1)
            m.d.sync += address.eq(self.jobs.payload.address)
        i, o = self.tuples, self.write.writes
        m.d.comb += o.valid.eq(busy & i.valid & ~i.payload.end)
        m.d.comb += o.payload.address.eq(address)
        m.d.comb += o.payload.word.eq(i.payload.data)
        m.d.comb += i.ready.eq(busy & (o.ready | i.payload.end))
        with m.If(i.valid & i.ready):
            m.d.sync += address.eq(address + 1)
            with m.If(i.payload.end):
                m.d.sync += busy.eq(0)
        return m
