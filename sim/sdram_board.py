"""A join core over SDRAM with its chip beside it, for simulation."""

from amaranth.hdl import Module, Mux
from amaranth.lib import wiring
from amaranth.lib.wiring import Out

from hw.rtl.sdram_core import SdramCore
from sim.sdram_chip import Fault, SdramChip

__all__ = ["CoreWithChip"]


class CoreWithChip(wiring.Component):
    """The streams of an SdramCore whose pins end in a chip that checks every timing.

    fault  what the controller did wrong first
    """

    def __init__(self, params, timing, hertz, **options):
        self.core = SdramCore(params, timing, hertz, **options)
        row_words = self.core.memory.words_of_row + timing.bank_bits
        rows = max(1, 1 << self.core.core.address_bits >> row_words)
        self.chip = SdramChip(timing, hertz, rows)
        streams = {
            name: member for name, member in self.core.signature.members.items() if name != "pins"
        }
        super().__init__({**streams, "fault": Out(Fault)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.core = core = self.core
        m.submodules.chip = self.chip
        for name, member in core.pins.signature.members.items():
            inner, outer = getattr(core.pins, name), getattr(self.chip.pins, name)
            if member.flow is Out:
                m.d.comb += outer.eq(inner)
            else:
                # A chip that was treated badly keeps nothing: whoever looks only at results sees
                # it, too.
                m.d.comb += inner.eq(Mux(self.chip.fault == Fault.NONE, outer, 0))
        for name in ("commands", "tuples", "probes", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(core, name))
        m.d.comb += [self.statistics.eq(core.statistics), self.fault.eq(self.chip.fault)]
        return m
