"""The merger of the insertion engine (PanJoin IV, figure 8)."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import order_of, token
from hw.rtl.plumbing import Buffer

__all__ = ["Merger"]


class Merger(wiring.Component):
    """Two sorted frames, ``main`` and ``batch``, become one sorted frame ``merged``.

    Requires that the tuples of a frame ascend by key. Equal keys keep their order, those of
    `main` before those of `batch`. `shape` is a tuple layout with the field `key`.

    Latency 4 cycles from the later of two first tokens; one tuple a cycle under any stalls, and
    one cycle between frames.
    """

    def __init__(self, shape):
        self.shape = shape
        of_tokens = stream.Signature(token(shape))
        super().__init__({"main": In(of_tokens), "batch": In(of_tokens), "merged": Out(of_tokens)})
        # Attributes, so that a proof can count what is inside.
        self.main_next = Buffer(token(shape))
        self.batch_next = Buffer(token(shape))
        self.out = Buffer(token(shape))
        self.main_head = Signal(token(shape))
        self.main_valid = Signal()
        self.batch_head = Signal(token(shape))
        self.batch_valid = Signal()
        self.take_main = Signal()
        self.take_batch = Signal()

    def elaborate(self, platform):
        m = Module()
        m.submodules.main_next = self.main_next
        m.submodules.batch_next = self.batch_next
        m.submodules.out = self.out
        wiring.connect(m, wiring.flipped(self.main), self.main_next.i)
        wiring.connect(m, wiring.flipped(self.batch), self.batch_next.i)
        wiring.connect(m, self.out.o, wiring.flipped(self.merged))

        # Which head goes: from registers. They are set when a head is loaded, by comparing the
        # tuple that becomes the head with the other head, so that no comparison is in the loop
        # that moves tuples. Both are set when both heads are ends: these leave as one.
        take_main = self.take_main
        take_batch = self.take_batch
        move = Signal()
        m.d.comb += move.eq(self.main_valid & self.batch_valid & self.out.i.ready)
        m.d.comb += self.out.i.valid.eq(self.main_valid & self.batch_valid)
        m.d.comb += self.out.i.payload.eq(Mux(take_main, self.main_head, self.batch_head))

        load_main = self._refill(
            m, self.main_next.o, self.main_head, self.main_valid,
            taken=move & take_main, free=~self.main_valid | (move & take_main),
        )
        # Both heads are empty only between frames. There `main` is loaded first and `batch` after
        # it, so that each comparison is of one new tuple with one head that stays.
        load_batch = self._refill(
            m, self.batch_next.o, self.batch_head, self.batch_valid,
            taken=move & take_batch, free=Mux(self.batch_valid, move & ~take_main, self.main_valid),
        )
        for load, main, batch in (
            (load_main, self.main_next.o.payload, self.batch_head),
            (load_batch, self.main_head, self.batch_next.o.payload),
        ):
            # An end orders after every tuple. PanJoin IV: the smaller one is written.
            main_first = order_of(main.data.key, main.end) <= order_of(batch.data.key, batch.end)
            ends = main.end & batch.end
            with m.If(load):
                m.d.sync += take_main.eq(main_first | ends)
                m.d.sync += take_batch.eq(~main_first | ends)
        return m

    @staticmethod
    def _refill(m, source, head, valid, *, taken, free):
        """Load `head` from `source` when it is `free`; return whether that is in this cycle."""
        load = Signal()
        m.d.comb += source.ready.eq(free)
        m.d.comb += load.eq(source.valid & free)
        with m.If(load):
            m.d.sync += head.eq(source.payload)
            m.d.sync += valid.eq(1)
        with m.Elif(taken):
            m.d.sync += valid.eq(0)
        return load
