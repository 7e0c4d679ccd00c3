"""A join core whose main arrays are in SDRAM: windows far larger than a chip's block RAM."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.rtl.join_core import JoinCore, core_address_bits
from hw.rtl.layouts import word_layout
from hw.rtl.memory import ReadShare
from hw.rtl.sdram import DATA_BITS, SdramMemory, SdramPins, SdramTiming
from hw.spec import JoinParams

__all__ = ["SdramCore"]


class SdramCore(wiring.Component):
    """The streams and statistics of a JoinCore over one SDRAM chip at ``pins``.

    A memory word is a burst of the chip: `lanes` tuples of 16, 32, 64 or 128 bits together. All
    read ports of the core share the one of the chip, whole bursts in turn. Index arrays stay in
    block RAM. Options are the core's.
    """

    def __init__(self, params: JoinParams, timing: SdramTiming, hertz, *, slots=3, **options):
        word, bits = word_layout(params), core_address_bits(params, slots)
        cells = 1 << timing.row_bits + timing.bank_bits + timing.column_bits
        words = cells * DATA_BITS // word.size
        if 1 << bits > words:
            raise ValueError(
                f"the chip holds {words} words of {params.lanes} tuples, and the main arrays need "
                f"{1 << bits}: choose fewer slots or smaller subwindows"
            )
        self.core = JoinCore(params, slots=slots, **options)
        self.memory = SdramMemory(word, timing, hertz)
        self.share = ReadShare(word, bits, len(self.core.reads))
        streams = {
            name: member for name, member in self.core.signature.members.items()
            if name not in ("reads", "writes")
        }
        super().__init__({**streams, "pins": Out(SdramPins(timing))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.memory = memory = self.memory
        m.submodules.share = share = self.share
        for port, reader in zip(core.reads, share.readers, strict=True):
            wiring.connect(m, port, reader)
        # The chip has more addresses than the core needs: the upper ones stay 0.
        for inner, outer in (
            (share.port.requests, memory.read.requests),
            (core.writes[0].writes, memory.write.writes),
        ):
            m.d.comb += [outer.valid.eq(inner.valid), inner.ready.eq(outer.ready)]
            for name, _ in inner.payload.shape():
                m.d.comb += Value.cast(outer.payload[name]).eq(Value.cast(inner.payload[name]))
        wiring.connect(m, memory.read.words, share.port.words)
        wiring.connect(m, memory.pins, wiring.flipped(self.pins))
        for name in ("commands", "tuples", "probes", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(core, name))
        m.d.comb += self.statistics.eq(core.statistics)
        return m
