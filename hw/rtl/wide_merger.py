"""A merger of several tuples a cycle: the selector and sorting network of FLiMS, made stable.

FLiMS (Papaphilippou, Luk, Brooks): tuple j of each side waits in bank j mod w. Lane i compares the
head of bank i of one side with the head of bank w-1-i of the other, and the smaller goes; the w
winners are the w smallest tuples left, as a rotated bitonic sequence, which log2(w) stages of
compare and swap put in order. No lane waits for another lane's comparison.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.layouts import order_of, wide_token
from hw.rtl.plumbing import ShortQueue

__all__ = ["WideMerger"]


class Bank(wiring.Component):
    """The tuples of one side in one lane: ``head``, ``following`` it, and a queue behind them.

    ``i`` is pushed when it has room; ``level`` counts the queue. ``pop`` drops the head. ``deep``
    promises that head and following tuple are valid now and still are after one pop. With
    `primed`, the first head is not a tuple: popping it is how the first comparison is made.
    """

    def __init__(self, shape, depth, *, primed):
        super().__init__(
            {
                "i": In(stream.Signature(shape)),
                "pop": In(1),
                "head": Out(shape),
                "following": Out(shape),
                "deep": Out(1),
                "level": Out(range(depth + 1)),
            }
        )
        # Whatever holds a tuple, for proofs.
        self.queue = ShortQueue(shape, depth)
        self.head_valid = Signal(init=primed)
        self.first = Signal(Shape.cast(shape).width, reset_less=True)

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = self.queue
        head_valid = self.head_valid
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        move = Signal()
        m.d.comb += move.eq(self.pop | ~head_valid)
        m.d.comb += queue.o.ready.eq(move)
        m.d.comb += Value.cast(self.head).eq(self.first)
        m.d.comb += self.following.eq(queue.o.payload)
        m.d.comb += self.level.eq(queue.level)
        m.d.comb += self.deep.eq(head_valid & queue.o.valid & queue.more)
        with m.If(move):
            m.d.sync += self.first.eq(Value.cast(queue.o.payload))
            m.d.sync += head_valid.eq(queue.o.valid)
        return m


class Side:
    """One of both inputs inside a merger: its banks, and what is between its words and them."""

    def __init__(self, name, tokens, shape, depth, lanes, *, primed):
        padded = data.StructLayout({"data": shape, "pad": 1})
        self.name = name
        self.tokens = tokens
        self.banks = [Bank(padded, depth, primed=primed) for _ in range(lanes)]
        self.present = Signal(lanes, name=f"{name}_present")
        self.ended = Signal(name=f"{name}_ended")
        self.room = Signal(name=f"{name}_room")


class WideMerger(wiring.Component):
    """Two sorted frames of wide tokens, ``main`` and ``batch``, become one, ``merged``.

    Requires that the tuples of a frame ascend by key, and that every data token but a frame's
    last is full. Equal keys keep their order, those of `main` before those of `batch`. `shape` is
    a tuple layout with the field `key`; `lanes` is 2, 4 or 8; `out_depth` words wait at the
    output: 32 where it stalls now and then, 16 where it seldom does.

    Latency 9 + 2 log2(lanes) cycles, `lanes` tuples a cycle; about 12 cycles between frames.
    """

    #: Tuples that wait in a bank; more would not be faster.
    BANK_DEPTH = 16

    def __init__(self, shape, lanes, *, out_depth=32):
        if lanes not in (2, 4, 8):
            raise ValueError(f"lanes must be 2, 4 or 8, not {lanes}")
        self.shape = shape
        self.lanes = lanes
        self.out_depth = out_depth
        of_tokens = stream.Signature(wide_token(shape, lanes))
        super().__init__({"main": In(of_tokens), "batch": In(of_tokens), "merged": Out(of_tokens)})
        # Whatever holds a tuple, or says that one is held, for proofs.
        banks = shape, self.BANK_DEPTH, lanes
        self.sides = (
            Side("main", self.main, *banks, primed=True),
            Side("batch", self.batch, *banks, primed=False),
        )
        self.go = Signal()  # all lanes move; decided one cycle ahead
        self.over = Signal()  # one cycle after the last word of a frame: everything begins anew
        self.stalled = Signal()
        self.primed = Signal()
        self.takes = Signal(lanes, init=-1)
        tagged = data.StructLayout({"tag": exact_log2(lanes) + 1, "data": shape, "pad": 1})
        self.winners = [
            Signal(tagged, name=f"winner_{lane}", reset_less=True) for lane in range(lanes)
        ]
        self.chosen = Signal()  # there are winners
        self.selected = Signal()  # and the frame goes on
        # Stages that compare and stages that swap: whether each has a word, and its lanes.
        self.sorting = [
            (Signal(name=f"sorting_{n}_valid"),
             [Signal(tagged, name=f"sorting_{n}_{lane}", reset_less=True)
              for lane in range(lanes)])
            for n in range(2 * exact_log2(lanes))
        ]
        self.out = ShortQueue(wide_token(shape, lanes), out_depth)

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.merged))
        for side in self.sides:
            self._deal(m, side)
        ended = Signal()
        deep = Cat(bank.deep for side in self.sides for bank in side.banks).all()
        m.d.sync += self.go.eq(deep & ~self.stalled & ~ended & ~self.over)
        m.d.sync += self.primed.eq((self.primed | self.go) & ~self.over)
        self._select(m)

        # The first word without a tuple ends the frame; what follows it is dropped.
        m.d.sync += self.chosen.eq(self.go & self.primed)
        m.d.comb += self.selected.eq(self.chosen & ~self.over)
        pads = Cat(winner.pad for winner in self.winners)
        m.d.comb += ended.eq(self.selected & pads.all())
        m.d.sync += self.over.eq(ended)
        ordered, in_order = self._sort(m)

        word = out.i.payload
        for lane, winner in enumerate(ordered):
            m.d.comb += Value.cast(word.data[lane]).eq(Value.cast(winner.data))
        # Pads are last: a thermometer of them counts the tuples.
        m.d.comb += word.count.eq(sum(~winner.pad for winner in ordered))
        m.d.comb += word.end.eq(ordered[0].pad)
        m.d.comb += out.i.valid.eq(in_order)
        # Words that are on their way when the stall is decided must still find room.
        on_the_way = 2 * exact_log2(self.lanes) + 6
        m.d.sync += self.stalled.eq(out.level > self.out_depth - 2 - on_the_way)
        return m

    def _deal(self, m, side):
        """Deal the words of one side to its banks; after its end, deal pads without end."""
        tokens, word, ended = side.tokens, side.tokens.payload, side.ended
        take = Signal(name=f"{side.name}_take")
        m.d.comb += tokens.ready.eq(side.room & ~ended)
        m.d.comb += take.eq(tokens.valid & tokens.ready)
        m.d.sync += ended.eq((ended | (take & word.end)) & ~self.over)
        for lane, bank in enumerate(side.banks):
            m.submodules[f"{side.name}_{lane}"] = ResetInserter(self.over)(bank)
            tuple_ = Signal(self.shape, name=f"{side.name}_tuple_{lane}", reset_less=True)
            m.d.sync += side.present[lane].eq(take & (lane < word.count))
            m.d.sync += Value.cast(tuple_).eq(Value.cast(word.data[lane]))
            m.d.comb += bank.i.valid.eq(ended | side.present[lane])
            m.d.comb += bank.i.payload.data.eq(tuple_)
            m.d.comb += bank.i.payload.pad.eq(ended)
        # Four tuples can come to a bank after a level that this register has not seen yet.
        m.d.sync += side.room.eq(
            Cat(bank.level <= self.BANK_DEPTH - 5 for bank in side.banks).all()
        )

    def _select(self, m):
        """One winner a lane, registered, with the tag that keeps equal keys in order."""
        lanes, go, over = self.lanes, self.go, self.over
        main, batch = (side.banks for side in self.sides)
        rotation = Signal(exact_log2(lanes))  # tuples of main taken so far, modulo lanes
        for lane, winner in enumerate(self.winners):
            ours, theirs = main[lane], batch[lanes - 1 - lane]
            take = self.takes[lane]
            m.d.comb += ours.pop.eq(go & take)
            m.d.comb += theirs.pop.eq(go & ~take)
            # The next choice, for either outcome of this one: no comparison in the loop.
            after_ours = Signal(name=f"after_ours_{lane}")
            after_theirs = Signal(name=f"after_theirs_{lane}")
            m.d.comb += after_ours.eq(_order(ours.following) <= _order(theirs.head))
            m.d.comb += after_theirs.eq(_order(ours.head) <= _order(theirs.following))
            with m.If(over):
                m.d.sync += take.eq(1)
            with m.Elif(go):
                m.d.sync += take.eq(Mux(take, after_ours, after_theirs))

            # Place of the head among the `lanes` heads of its side; both sides' sum is lanes - 1.
            place = Signal(exact_log2(lanes), name=f"place_{lane}")
            m.d.comb += place.eq(lane - rotation)
            m.d.sync += winner.tag.eq(Mux(take, Cat(place, C(0, 1)), Cat(~place, C(1, 1))))
            m.d.sync += winner.pad.eq(Mux(take, ours.head.pad, theirs.head.pad))
            m.d.sync += Value.cast(winner.data).eq(
                Mux(take, Value.cast(ours.head.data), Value.cast(theirs.head.data))
            )
        with m.If(over):
            m.d.sync += rotation.eq(0)
        with m.Elif(go & self.primed):
            m.d.sync += rotation.eq(rotation + sum(self.takes))

    def _sort(self, m):
        """Bitonic merge: log2(lanes) times compare, then swap, each a cycle."""
        lanes, valid = self.winners, self.selected
        for n in range(exact_log2(self.lanes)):
            distance = self.lanes >> (n + 1)
            (valid_compared, compared), (valid_swapped, swapped) = self.sorting[2 * n : 2 * n + 2]
            m.d.sync += valid_compared.eq(valid)
            m.d.sync += valid_swapped.eq(valid_compared)
            for low in range(self.lanes):
                m.d.sync += compared[low].eq(lanes[low])
                if low & distance:
                    continue
                high = low | distance
                keep = Signal(name=f"by_{distance}_keep_{low}")
                m.d.sync += keep.eq(_rank(lanes[low]) <= _rank(lanes[high]))
                m.d.sync += swapped[low].eq(Mux(keep, compared[low], compared[high]))
                m.d.sync += swapped[high].eq(Mux(keep, compared[high], compared[low]))
            lanes, valid = swapped, valid_swapped
        return lanes, valid


def _order(padded):
    """The order in which tuples are selected: by key, pads last."""
    return order_of(padded.data.key, padded.pad)


def _rank(winner):
    """The order of winners in a word: by key, then by side and place in it, pads last."""
    return Cat(winner.tag, order_of(winner.data.key, winner.pad))
