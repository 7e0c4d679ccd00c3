"""The boundary generator (PanJoin IV): probe tuple and predicate registers -> bounds."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import key_shape, layout_of, token
from hw.rtl.plumbing import Buffer
from hw.spec import JoinParams
from hw.spec.predicates import REGISTER, Bound

__all__ = ["BoundaryGenerator", "bound_shape", "bounds_layout", "register_layout"]


def bound_shape(params: JoinParams):
    """A bound lies between keys: the stored keys less than it come before it.

    One bit wider than a key, because the bound after the largest key is none (the paper's v+
    overflows there).
    """
    return signed(params.key_bits + 1)


def bounds_layout(params: JoinParams):
    """The closed interval [lo, hi] as its two bounds: `lo`, and `hi` + 1."""
    shape = bound_shape(params)
    return data.StructLayout({"lo": shape, "hi": shape})


def register_layout():
    """One band's run-time registers: the fields of hw.spec.predicates.REGISTER that say something.

    A word of REGISTER begins with these bits.
    """
    fields = {name: layout_of(REGISTER[name]) for name in REGISTER.names if name != "unused"}
    return data.StructLayout(fields)


class BoundaryGenerator(wiring.Component):
    """Each key of ``probes`` becomes ``band_count`` tokens of ``bounds``, one for each band.

    bands       registers of every band, as `hw.spec.predicates.registers` gives them
    band_count  how many of them are in use, at least 1
    explicit    keys are no probe keys but intervals: lo and hi in turn

    The registers may change only between frames. Bounds saturate: one beyond every key stays
    just behind the largest, one below every key at the smallest, so bounds of ascending keys
    ascend. Latency 5 cycles, one interval a cycle (explicit: one in two).

    One that is `far` from who has its probes takes two cycles more: a buffer is before it, and the
    choice of a band has a stage of its own.
    """

    def __init__(self, params: JoinParams, *, far=False):
        self.params = params
        self.far = far
        super().__init__(
            {
                "bands": In(data.ArrayLayout(register_layout(), params.bands)),
                "band_count": In(range(params.bands + 1)),
                "explicit": In(1),
                "probes": In(stream.Signature(token(key_shape(params)))),
                "bounds": Out(stream.Signature(token(bounds_layout(params)))),
            }
        )
        # What the stages hold, for proofs: valid and end of each.
        self.stages = Signal(
            data.ArrayLayout(data.StructLayout({"valid": 1, "end": 1}), 5 if far else 4)
        )
        self.waiting = Buffer(self.probes.payload.shape()) if far else None
        self.out = Buffer(token(bounds_layout(params)))
        self.band = Signal(range(params.bands))

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.bounds))
        probes = self.probes
        if self.far:
            m.submodules.waiting = self.waiting
            wiring.connect(m, wiring.flipped(self.probes), self.waiting.i)
            probes = self.waiting.o
        advance = out.i.ready
        stages = self.stages

        key = probes.payload.data
        last_band = Signal()
        m.d.comb += last_band.eq(self.explicit | (self.band == self.band_count - 1))
        first_of_two = Signal()
        m.d.comb += probes.ready.eq(advance & (last_band | probes.payload.end))
        with m.If(advance):
            m.d.sync += stages[0].valid.eq(probes.valid & ~first_of_two)
            m.d.sync += stages[0].end.eq(probes.payload.end)
            for later in range(1, len(stages)):
                m.d.sync += stages[later].eq(stages[later - 1])
            with m.If(probes.valid & ~probes.payload.end):
                m.d.sync += self.band.eq(Mux(last_band, 0, self.band + 1))

        # Of an explicit interval the first key waits here for the second.
        second = Signal()
        lo = Signal(key_shape(self.params))
        m.d.comb += first_of_two.eq(self.explicit & ~second & ~probes.payload.end)
        with m.If(advance & probes.valid & self.explicit & ~probes.payload.end):
            m.d.sync += second.eq(~second)
            m.d.sync += lo.eq(key)

        register = self.bands[self.band]
        for name, base, upper in (("lo", Mux(self.explicit, lo, key), 0), ("hi", key, 1)):
            chosen = (base, register)
            if self.far:
                chosen = self._choose(m, name, advance, base, register)
            bound = self._bound(m, name, advance, *chosen, upper)
            m.d.comb += out.i.payload.data[name].eq(bound)
        m.d.comb += out.i.payload.end.eq(stages[-1].end)
        m.d.comb += out.i.valid.eq(stages[-1].valid)
        return m

    def _choose(self, m, name, advance, base, register):
        """A stage of its own: the key and the register of its band."""
        key = Signal(key_shape(self.params), name=f"{name}_base", reset_less=True)
        chosen = Signal(register_layout(), name=f"{name}_register", reset_less=True)
        with m.If(advance):
            m.d.sync += [chosen.eq(register), key.eq(base)]
        return key, chosen

    def _bound(self, m, name, advance, base, register, upper):
        """Four stages: select the band, move the key, make `hi` exclusive, saturate."""
        bits = self.params.key_bits
        kind = Signal(Bound, name=f"{name}_kind")
        m.d.comb += kind.eq(register[f"{name}_bound"])
        key = Signal(signed(bits), name=f"{name}_key", reset_less=True)
        offset = Signal(bits, name=f"{name}_offset", reset_less=True)
        minus = Signal(name=f"{name}_minus", reset_less=True)
        # An unbounded or impossible side goes to an end of the keys, whatever the key is.
        to_least = Signal(3, name=f"{name}_to_least", reset_less=True)
        to_most = Signal(3, name=f"{name}_to_most", reset_less=True)
        moved = Signal(signed(bits + 2), name=f"{name}_moved", reset_less=True)
        bound = Signal(signed(bits + 2), name=f"{name}_bound", reset_less=True)
        saturated = Signal(bound_shape(self.params), name=f"{name}_saturated", reset_less=True)
        least, most = (Bound.NEVER, Bound.UNBOUNDED) if upper else (Bound.UNBOUNDED, Bound.NEVER)
        with m.If(advance):
            m.d.sync += key.eq(base)
            # What is taken away is inverted, and the sum then has a carry into its first bit.
            takes = ~self.explicit & (kind == Bound.MINUS)
            m.d.sync += offset.eq(
                Mux(self.explicit, 0, register[name][:bits]) ^ takes.replicate(bits)
            )
            m.d.sync += minus.eq(takes)
            m.d.sync += to_least.eq(Cat(~self.explicit & (kind == least), to_least[:2]))
            m.d.sync += to_most.eq(Cat(~self.explicit & (kind == most), to_most[:2]))
            addend = Cat(minus, offset, minus.replicate(2)).as_signed()
            m.d.sync += moved.eq((Cat(minus, key).as_signed() + addend) >> 1)
            m.d.sync += bound.eq(moved + upper)
            # The two bits above a key's sign differ from it where the sum left the keys.
            m.d.sync += saturated.eq(bound)
            with m.If(to_least[2] | (~to_most[2] & bound[-1] & ~bound[-3:-1].all())):
                m.d.sync += saturated.eq(-(1 << (bits - 1)))
            with m.Elif(to_most[2] | (~bound[-1] & bound[-3:-1].any())):
                m.d.sync += saturated.eq(1 << (bits - 1))
        return saturated
