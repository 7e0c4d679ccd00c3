"""A punctuator and the combiner of an engine of one core: a design for benches."""

from amaranth.hdl import Module
from amaranth.lib import wiring

from hw.rtl.combiner import Combiner
from hw.rtl.punctuator import Punctuator
from hw.spec import JoinParams

__all__ = ["PunctuationTop"]


class PunctuationTop(wiring.Component):
    """The streams of a Punctuator numbered 1, its results through a Combiner to ``answers``."""

    def __init__(self, params: JoinParams):
        self.punctuator = Punctuator(params, 1)
        self.combiner = Combiner(params)
        inner = self.punctuator.signature.members
        outer = self.combiner.signature.members
        super().__init__(
            {name: inner[name] for name in ("contexts", "records", "replies")}
            | {name: outer[name] for name in ("sides", "answers")}
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.punctuator = self.punctuator
        m.submodules.combiner = self.combiner
        for name in ("contexts", "records", "replies"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.punctuator, name))
        wiring.connect(m, wiring.flipped(self.sides), self.combiner.sides)
        wiring.connect(m, self.punctuator.results, self.combiner.results)
        wiring.connect(m, self.combiner.answers, wiring.flipped(self.answers))
        return m
