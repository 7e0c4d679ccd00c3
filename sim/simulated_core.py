"""A join core with a memory that delivers what its ports can take."""

from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.rtl.join_core import JoinCore
from hw.rtl.layouts import word_layout
from hw.spec import JoinParams
from sim.ported_memory import PortedMemory

__all__ = ["SimulatedCore"]

MEMORY_PORTS = ("reads", "writes")


class SimulatedCore(wiring.Component):
    """The streams and statistics of a JoinCore, whose memory ports end in a PortedMemory.

    `verilog` as there; other options are the core's.
    """

    def __init__(self, params: JoinParams, *, verilog=False, **options):
        self.core = JoinCore(params, **options)
        members = self.core.signature.members
        self.memory = PortedMemory(
            word_layout(params), 1 << self.core.address_bits, len(self.core.reads), verilog=verilog
        )
        super().__init__(
            {name: member for name, member in members.items() if name not in MEMORY_PORTS}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        m.submodules.memory = self.memory
        for port, memory in zip(self.core.reads, self.memory.reads, strict=True):
            wiring.connect(m, port, memory)
        wiring.connect(m, self.core.writes[0], self.memory.writes[0])
        for name in ("commands", "tuples", "probes", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.core, name))
        m.d.comb += self.statistics.eq(self.core.statistics)
        return m
