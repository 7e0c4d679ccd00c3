"""A memory for simulation that delivers whatever its ports can take."""

from amaranth.hdl import Cat, ClockSignal, Instance, Module, Shape, Signal, Value, unsigned
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In

from hw.rtl.memory import BurstCounter, ReadPort, WritePort
from hw.rtl.plumbing import Buffer

__all__ = ["PortedMemory", "CELLS"]

#: The cells of a large memory: Amaranth would spell out the initial value of each.
CELLS = """
module ported_cells #(parameter WIDTH = 1, DEPTH = 1, BITS = 1, READS = 1) (
  input clk, input write_en, input [BITS-1:0] write_addr, input [WIDTH-1:0] write_data,
  input [READS-1:0] read_en, input [READS*BITS-1:0] read_addr,
  output [READS*WIDTH-1:0] read_data
);
  reg [WIDTH-1:0] cells [DEPTH-1:0];
  always @(posedge clk) if (write_en) cells[write_addr] <= write_data;
  for (genvar n = 0; n < READS; n++) begin : port
    reg [WIDTH-1:0] data;
    always @(posedge clk) if (read_en[n]) data <= cells[read_addr[n*BITS +: BITS]];
    assign read_data[n*WIDTH +: WIDTH] = data;
  end
endmodule
"""


class PortedMemory(wiring.Component):
    """``depth`` words behind any number of ports ``reads`` and ``writes``.

    Each port moves one word a cycle, whatever the others do; a burst's first word comes 3 cycles
    after its request. No chip has so many ports: this shows what an engine does when memory is
    not the limit. With `verilog` its cells are an instance of the module in `CELLS`.
    """

    def __init__(self, word, depth, reads, *, verilog=False):
        self.word = word
        self.depth = depth
        self.verilog = verilog
        self.address_bits = bits = max(1, (depth - 1).bit_length())
        super().__init__(
            {
                "reads": In(ReadPort(word, bits)).array(reads),
                "writes": In(WritePort(word, bits)).array(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        ports = self._instance(m) if self.verilog else self._memory(m)
        (write_en, write_addr, write_data), reads = ports
        (port,) = self.writes
        m.d.comb += port.writes.ready.eq(1)
        m.d.comb += write_en.eq(port.writes.valid)
        m.d.comb += write_addr.eq(port.writes.payload.address)
        m.d.comb += write_data.eq(Value.cast(port.writes.payload.word))
        for n, (port, (read_en, read_addr, read_data)) in enumerate(
            zip(self.reads, reads, strict=True)
        ):
            m.submodules[f"counter_{n}"] = counter = BurstCounter(self.address_bits)
            m.submodules[f"out_{n}"] = out = Buffer(self.word)
            wiring.connect(m, wiring.flipped(port.requests), counter.bursts)
            wiring.connect(m, out.o, wiring.flipped(port.words))
            fetched = Signal(name=f"fetched_{n}")
            advance = Signal(name=f"advance_{n}")
            m.d.comb += advance.eq(~fetched | out.i.ready)
            m.d.comb += read_en.eq(advance)
            m.d.comb += read_addr.eq(counter.addresses.payload)
            m.d.comb += counter.addresses.ready.eq(advance)
            m.d.comb += out.i.valid.eq(fetched)
            m.d.comb += Value.cast(out.i.payload).eq(read_data)
            with m.If(advance):
                m.d.sync += fetched.eq(counter.addresses.valid)
        return m

    def _memory(self, m):
        """The cells as Amaranth's memory: (en, addr, data) of the write port, and of each read."""
        width = Shape.cast(self.word).width
        m.submodules.cells = cells = Memory(shape=unsigned(width), depth=self.depth, init=[])
        write = cells.write_port()
        reads = [cells.read_port() for _ in self.reads]
        return (write.en, write.addr, write.data), [(r.en, r.addr, r.data) for r in reads]

    def _instance(self, m):
        """The same as an instance of the Verilog module."""
        width, bits, count = Shape.cast(self.word).width, self.address_bits, len(self.reads)
        write = Signal(), Signal(bits), Signal(width)
        reads = [(Signal(), Signal(bits), Signal(width)) for _ in range(count)]
        m.submodules.cells = Instance(
            "ported_cells",
            p_WIDTH=width, p_DEPTH=self.depth, p_BITS=bits, p_READS=count,
            i_clk=ClockSignal(), i_write_en=write[0], i_write_addr=write[1], i_write_data=write[2],
            i_read_en=Cat(en for en, _, _ in reads), i_read_addr=Cat(addr for _, addr, _ in reads),
            o_read_data=Cat(data for _, _, data in reads),
        )
        return write, reads
