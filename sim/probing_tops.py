"""Probing components with memory around them, as benches simulate them."""

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In

from hw.rtl.layouts import main_words, word_layout
from hw.rtl.memory import WritePort
from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.prober import Prober
from hw.rtl.probing_engine import ProbingEngine
from hw.rtl.searcher import Searcher
from hw.spec import JoinParams
from sim.ported_memory import PortedMemory

__all__ = ["ProberTop", "ProbingTop"]


MEMORY_PORTS = ("words", "searches")


class _Top(wiring.Component):
    """A component whose ports ``words`` or ``searches`` end in a memory that ``write`` fills."""

    def __init__(self, params: JoinParams, component, address_bits):
        self.component = component
        self.searchers = [
            Searcher(params, address_bits) for _ in getattr(component, "searches", ())
        ]
        ports = len(self.searchers) or len(component.words)
        self.memory = PortedMemory(word_layout(params), 1 << address_bits, ports)
        members = {
            name: member for name, member in component.signature.members.items()
            if name not in MEMORY_PORTS
        }
        super().__init__({**members, "write": In(WritePort(word_layout(params), address_bits))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.component = self.component
        m.submodules.memory = self.memory
        wiring.connect(m, wiring.flipped(self.write), self.memory.writes[0])
        for port, memory in zip(self._read_ports(m), self.memory.reads, strict=True):
            wiring.connect(m, port, memory)
        for name, member in self.component.signature.members.items():
            if name in MEMORY_PORTS:
                continue
            inner, outer = getattr(self.component, name), getattr(self, name)
            if member.is_signature:
                wiring.connect(m, wiring.flipped(outer), inner)
            else:
                m.d.comb += inner.eq(outer)
        return m

    def _read_ports(self, m):
        for n, searcher in enumerate(self.searchers):
            m.submodules[f"searcher_{n}"] = searcher
            wiring.connect(m, self.component.searches[n], searcher.search)
        return [searcher.read for searcher in self.searchers] or self.component.words


def _address_bits(params):
    """Room for two main arrays, so that a bench can let one begin in the middle."""
    return (2 * main_words(params) - 1).bit_length()


class ProberTop(_Top):
    """A prober and its memory, which holds two main arrays."""

    def __init__(self, params: JoinParams):
        bits = _address_bits(params)
        super().__init__(params, Prober(params, bits), bits)


class ProbingTop(_Top):
    """A probing engine and its memory, which holds two main arrays."""

    def __init__(self, params: JoinParams, partitioner=PipelinedPartitioner, *, far=False):
        bits = _address_bits(params)
        engine = ProbingEngine(params, bits, arrays=2, partitioner=partitioner, far=far)
        super().__init__(params, engine, bits)
