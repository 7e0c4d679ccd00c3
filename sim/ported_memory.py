"""A memory for simulation that delivers whatever its ports can take."""

from amaranth.hdl import Module, Shape, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from hw.rtl.memory import BurstCounter, ReadPort, WritePort
from hw.rtl.plumbing import Buffer

__all__ = ["PortedMemory"]


class PortedMemory(wiring.Component):
    """``depth`` words behind any number of ports ``reads`` and ``writes``.

    Each port moves one word a cycle, whatever the others do; a burst's first word comes 3 cycles
    after its request. No chip has so many ports: this shows what an engine does when memory is
    not the limit.
    """

    def __init__(self, word, depth, reads, writes=1):
        self.word = word
        self.depth = depth
        self.address_bits = bits = max(1, (depth - 1).bit_length())
        super().__init__(
            {
                "reads": In(ReadPort(word, bits)).array(reads),
                "writes": In(WritePort(word, bits)).array(writes),
            }
        )

    def elaborate(self, platform):
        m = Module()
        width = Shape.cast(self.word).width
        m.submodules.cells = cells = Memory(shape=unsigned(width), depth=self.depth, init=[])
        for port in self.writes:
            write = cells.write_port()
            m.d.comb += port.writes.ready.eq(1)
            m.d.comb += write.en.eq(port.writes.valid)
            m.d.comb += write.addr.eq(port.writes.payload.address)
            m.d.comb += write.data.eq(Value.cast(port.writes.payload.word))
        for n, port in enumerate(self.reads):
            m.submodules[f"counter_{n}"] = counter = BurstCounter(self.address_bits)
            m.submodules[f"out_{n}"] = out = Buffer(self.word)
            wiring.connect(m, wiring.flipped(port.requests), counter.bursts)
            wiring.connect(m, out.o, wiring.flipped(port.words))
            read = cells.read_port()
            fetched = Signal(name=f"fetched_{n}")
            advance = Signal(name=f"advance_{n}")
            m.d.comb += advance.eq(~fetched | out.i.ready)
            m.d.comb += read.en.eq(advance)
            m.d.comb += read.addr.eq(counter.addresses.payload)
            m.d.comb += counter.addresses.ready.eq(advance)
            m.d.comb += out.i.valid.eq(fetched)
            m.d.comb += Value.cast(out.i.payload).eq(read.data)
            with m.If(advance):
                m.d.sync += fetched.eq(counter.addresses.valid)
        return m
