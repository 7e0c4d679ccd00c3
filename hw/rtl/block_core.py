"""A join core whose main arrays are in block RAM: what one chip holds without other memory."""

from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.banked_memory import BankedMemory
from hw.rtl.join_core import JoinCore, core_address_bits
from hw.spec import JoinParams

__all__ = ["BlockCore"]

MEMORY_PORTS = ("reads", "searches", "writes")


class BlockCore(wiring.Component):
    """The streams and statistics of a JoinCore, whose memory ports end in a BankedMemory.

    A partition must be a memory word, so that probers search in single words. `hops` are the
    memory's, by default one for a memory of more than `NEAR` tuples; with any, the probers are far
    from all else. Options are the core's.
    """

    #: Tuples of the largest memory whose blocks lie close to each other.
    NEAR = 1 << 14

    def __init__(self, params: JoinParams, *, slots=3, hops=None, **options):
        if params.partition_rows != params.lanes:
            raise ValueError(
                f"block RAM serves partitions of a memory word, {params.lanes} tuples, "
                f"not {params.partition_rows}"
            )
        depth = 1 << core_address_bits(params, slots)
        hops = int(depth * params.lanes > self.NEAR) if hops is None else hops
        self.core = JoinCore(
            params, slots=slots, queue_words=16, searches=True, far=hops > 0, **options
        )
        self.memory = BankedMemory(params, depth, len(self.core.searches), hops=hops)
        members = self.core.signature.members
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
