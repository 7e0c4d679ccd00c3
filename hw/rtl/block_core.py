"""A join core whose main arrays are in block RAM: what one chip holds without other memory."""

from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.banked_memory import BankedMemory
from hw.rtl.join_core import JoinCore
from hw.spec import JoinParams

__all__ = ["BlockCore"]

MEMORY_PORTS = ("reads", "searches", "writes")


class BlockCore(wiring.Component):
    """The streams and statistics of a JoinCore, whose memory ports end in a BankedMemory.

    A partition must be a memory word, so that probers search in single words. Options are the
    core's.
    """

    def __init__(self, params: JoinParams, **options):
        if params.partition_rows != params.lanes:
            raise ValueError(
                f"block RAM serves partitions of a memory word, {params.lanes} tuples, "
                f"not {params.partition_rows}"
            )
        self.core = JoinCore(params, queue_words=16, searches=True, **options)
        members = self.core.signature.members
        self.memory = BankedMemory(
            params, 1 << self.core.address_bits, len(self.core.searches)
        )
        super().__init__(
            {name: member for name, member in members.items() if name not in MEMORY_PORTS}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        m.submodules.memory = self.memory
        for port, memory in zip(self.core.searches, self.memory.searches, strict=True):
            wiring.connect(m, port, memory)
        wiring.connect(m, self.core.reads[0], self.memory.read)
        wiring.connect(m, self.core.writes[0], self.memory.write)
        for name in ("commands", "tuples", "probes", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.core, name))
        m.d.comb += self.statistics.eq(self.core.statistics)
        return m
