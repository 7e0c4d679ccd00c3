"""A join core whose main arrays are in block RAM: what one chip holds without other memory."""

from amaranth.hdl import *
from amaranth.lib import wiring

from hw.rtl.banked_memory import BankedMemory
from hw.rtl.join_core import JoinCore
from hw.spec import JoinParams

__all__ = ["BlockCore"]


class BlockCore(wiring.Component):
    """The streams and statistics of a JoinCore, whose memory ports end in a BankedMemory.

    A partition must be a memory word, so that probers ask for single words. Options are the
    core's.
    """

    def __init__(self, params: JoinParams, **options):
        if params.partition_rows != params.lanes:
            raise ValueError(
                f"block RAM serves partitions of a memory word, {params.lanes} tuples, "
                f"not {params.partition_rows}"
            )
        self.core = JoinCore(params, **options)
        members = self.core.signature.members
        self.memory = BankedMemory(
            params, 1 << self.core.address_bits, len(self.core.probing.words)
        )
        super().__init__(
            {name: member for name, member in members.items() if name not in ("reads", "writes")}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = self.core
        m.submodules.memory = self.memory
        *probing, insertion = self.core.reads
        for port, memory in zip(probing, self.memory.keys, strict=True):
            wiring.connect(m, port, memory)
        wiring.connect(m, insertion, self.memory.read)
        wiring.connect(m, self.core.writes[0], self.memory.write)
        for name in ("commands", "tuples", "probes", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.core, name))
        m.d.comb += self.statistics.eq(self.core.statistics)
        return m
