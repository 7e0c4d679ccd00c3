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
        self.depth = depth
        self.primed = primed
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
        self.shape = shape

    def elaborate(self, platform):
        m = Module()
        m.submodules.queue = queue = ShortQueue(self.shape, self.depth)
        wiring.connect(m, wiring.flipped(self.i), queue.i)
        head_valid = Signal(init=self.primed)
        move = Signal()
        m.d.comb += move.eq(self.pop | ~head_valid)
        m.d.comb += queue.o.ready.eq(move)
        m.d.comb += self.following.eq(queue.o.payload)
        m.d.comb += self.level.eq(queue.level)
        m.d.comb += self.deep.eq(head_valid & queue.o.valid & queue.more)
        with m.If(move):
            m.d.sync += Value.cast(self.head).eq(Value.cast(queue.o.payload))
            m.d.sync += head_valid.eq(queue.o.valid)
        return m


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

    def elaborate(self, platform):
        m = Module()
        over = Signal()  # one cycle after the last word of a frame: everything begins anew
        main = self._banks(m, "main", self.main, over, primed=True)
        batch = self._banks(m, "batch", self.batch, over, primed=False)
        m.submodules.out = out = ShortQueue(wide_token(self.shape, self.lanes), self.out_depth)
        wiring.connect(m, out.o, wiring.flipped(self.merged))

        go = Signal()  # all lanes move; decided one cycle ahead
        primed = Signal()
        stalled = Signal()
        ended = Signal()
        closing = Signal()
        deep = Cat(bank.deep for bank in main + batch).all()
        m.d.sync += go.eq(deep & ~stalled & ~ended & ~closing)
        m.d.sync += primed.eq((primed | go) & ~over)
        winners = self._select(m, main, batch, go, primed, over)

        # The first word without a tuple ends the frame; what follows it is dropped.
        valid = Signal()
        m.d.sync += valid.eq(go & primed)
        m.d.comb += ended.eq(valid & Cat(winner.pad for winner in winners).all() & ~closing)
        m.d.sync += over.eq(ended)
        m.d.sync += closing.eq(ended)
        ordered, in_order = self._sort(m, winners, valid & ~closing)

        word = out.i.payload
        for lane, winner in enumerate(ordered):
            m.d.comb += Value.cast(word.data[lane]).eq(Value.cast(winner.data))
        # Pads are last: a thermometer of them counts the tuples.
        m.d.comb += word.count.eq(sum(~winner.pad for winner in ordered))
        m.d.comb += word.end.eq(ordered[0].pad)
        m.d.comb += out.i.valid.eq(in_order)
        # Words that are on their way when the stall is decided must still find room.
        on_the_way = 2 * exact_log2(self.lanes) + 6
        m.d.sync += stalled.eq(out.level > self.out_depth - 2 - on_the_way)
        return m

    def _banks(self, m, name, source, over, *, primed):
        """Deal the words of one side to its banks; after its end, deal pads without end."""
        padded = data.StructLayout({"data": self.shape, "pad": 1})
        word = source.payload
        room = Signal(name=f"{name}_room")
        ended = Signal(name=f"{name}_ended")
        take = Signal(name=f"{name}_take")
        m.d.comb += source.ready.eq(room & ~ended)
        m.d.comb += take.eq(source.valid & source.ready)
        m.d.sync += ended.eq((ended | (take & word.end)) & ~over)
        banks = []
        for lane in range(self.lanes):
            bank = Bank(padded, self.BANK_DEPTH, primed=primed)
            m.submodules[f"{name}_{lane}"] = ResetInserter(over)(bank)
            present = Signal(name=f"{name}_present_{lane}")
            tuple_ = Signal(self.shape, name=f"{name}_tuple_{lane}")
            m.d.sync += present.eq(take & (lane < word.count))
            m.d.sync += Value.cast(tuple_).eq(Value.cast(word.data[lane]))
            m.d.comb += bank.i.valid.eq(ended | present)
            m.d.comb += bank.i.payload.data.eq(tuple_)
            m.d.comb += bank.i.payload.pad.eq(ended)
            banks.append(bank)
        # Four tuples can come to a bank after a level that this register has not seen yet.
        m.d.sync += room.eq(Cat(bank.level <= self.BANK_DEPTH - 5 for bank in banks).all())
        return banks

    def _select(self, m, main, batch, go, primed, over):
        """One winner a lane, registered, with the tag that keeps equal keys in order."""
        lanes = self.lanes
        tagged = data.StructLayout({"tag": exact_log2(lanes) + 1, "data": self.shape, "pad": 1})
        rotation = Signal(exact_log2(lanes))  # tuples of main taken so far, modulo lanes
        takes = []
        winners = []
        for lane in range(lanes):
            ours, theirs = main[lane], batch[lanes - 1 - lane]
            take = Signal(name=f"take_{lane}", init=1)
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

            winner = Signal(tagged, name=f"winner_{lane}")
            # Place of the head among the `lanes` heads of its side; both sides' sum is lanes - 1.
            place = Signal(exact_log2(lanes), name=f"place_{lane}")
            m.d.comb += place.eq(lane - rotation)
            m.d.sync += winner.tag.eq(Mux(take, Cat(place, C(0, 1)), Cat(~place, C(1, 1))))
            m.d.sync += winner.pad.eq(Mux(take, ours.head.pad, theirs.head.pad))
            m.d.sync += Value.cast(winner.data).eq(
                Mux(take, Value.cast(ours.head.data), Value.cast(theirs.head.data))
            )
            takes.append(take)
            winners.append(winner)
        with m.If(over):
            m.d.sync += rotation.eq(0)
        with m.Elif(go & primed):
            m.d.sync += rotation.eq(rotation + sum(takes))
        return winners

    def _sort(self, m, lanes, valid):
        """Bitonic merge: log2(lanes) times compare, then swap, each a cycle."""
        distance = self.lanes // 2
        while distance:
            stage = f"by_{distance}"
            compared, swapped = (
                [Signal.like(lane, name=f"{stage}_{step}_{n}") for n, lane in enumerate(lanes)]
                for step in ("compared", "swapped")
            )
            for n, low in enumerate(lanes):
                m.d.sync += compared[n].eq(low)
                if n & distance:
                    continue
                high = n | distance
                keep = Signal(name=f"{stage}_keep_{n}")
                m.d.sync += keep.eq(_rank(low) <= _rank(lanes[high]))
                m.d.sync += swapped[n].eq(Mux(keep, compared[n], compared[high]))
                m.d.sync += swapped[high].eq(Mux(keep, compared[high], compared[n]))
            valid_compared = Signal(name=f"{stage}_compared_valid")
            valid_swapped = Signal(name=f"{stage}_swapped_valid")
            m.d.sync += valid_compared.eq(valid)
            m.d.sync += valid_swapped.eq(valid_compared)
            lanes, valid = swapped, valid_swapped
            distance //= 2
        return lanes, valid


def _order(padded):
    """The order in which tuples are selected: by key, pads last."""
    return order_of(padded.data.key, padded.pad)


def _rank(winner):
    """The order of winners in a word: by key, then by side and place in it, pads last."""
    return Cat(winner.tag, order_of(winner.data.key, winner.pad))
