"""The collection tree: brings results home, punctuated by stars (SplitJoin, section 5)."""

from itertools import islice

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.distribution_tree import branches, tree_depth
from hw.rtl.plumbing import ShortQueue

__all__ = ["CollectNode", "CollectionTree", "punctuated", "MOST_STARS"]

#: Stars that one token can stand for.
MOST_STARS = 15


def punctuated(shape):
    """So many stars, and then a result or none.

    stars    punctuations before the result; a run of stars is one token, so that probes without
             a match cost next to nothing in any order
    present  there is `data`; a token has stars or data
    ordered  between its stars a result waits for those of the cores before its own
    """
    return data.StructLayout(
        {"data": shape, "present": 1, "ordered": 1, "stars": range(MOST_STARS + 1)}
    )


class CollectNode(wiring.Component):
    """Merges punctuated streams ``i`` into ``o``: a star for a star of each input.

    An input whose star came waits until all others have sent theirs. Between two stars, results
    come as they are there, every input in its turn; those that are `ordered` come after all of
    the inputs before (SplitJoin, Algorithm 5). One token a cycle, one cycle of latency. Stars are
    taken from any number of inputs in one cycle, and leave with the next result.
    """

    def __init__(self, shape, count):
        if count < 1:
            raise ValueError(f"count must be from 1 on, not {count}")
        self.count = count
        self.shape = punctuated(shape)
        super().__init__(
            {
                "i": In(stream.Signature(self.shape)).array(count),
                "o": Out(stream.Signature(self.shape)),
            }
        )
        # Attributes, so that a proof can look inside.
        #: Stars by which an input is ahead of the slowest one.
        self.ahead = [Signal(range(MOST_STARS + 1), name=f"ahead_{n}") for n in range(count)]
        #: The stars of the token that an input offers are in `ahead` already; its result waits.
        self.counted = Signal(count)
        #: The input served last, so the last to be served again.
        self.last = Signal(range(count))

    def elaborate(self, platform):
        m = Module()
        room = Signal()
        m.d.comb += room.eq(~self.o.valid | self.o.ready)
        heard = Signal(self.count)  # inputs whose token is known with all its stars
        counts = Signal(self.count)  # and whose stars are not in `ahead` yet
        totals = [self._total(m, n, heard, counts) for n in range(self.count)]
        reached = [
            Mux(counts[n], total[: len(ahead)], ahead)
            for n, (total, ahead) in enumerate(zip(totals, self.ahead, strict=True))
        ]
        closed = _least(m, reached)
        # Inputs that are at the star that all have now reached: no other one is before it. To
        # compare them with `closed` would wait for it.
        level = Signal(self.count)
        m.d.comb += level.eq(Cat(
            Cat(C(1), *(
                self._reached_no_more(n, other, totals, counts)
                for other in range(self.count) if other != n
            )).all()
            for n in range(self.count)
        ))
        offers = Signal(self.count)
        for n, i in enumerate(self.i):
            turn = ~i.payload.ordered | ~level[:n].any()
            m.d.comb += offers[n].eq(heard[n] & i.payload.present & level[n] & turn)
        taken = self._choice(m, offers)
        for n, i in enumerate(self.i):
            m.d.comb += i.ready.eq(room & heard[n] & (taken[n] | ~i.payload.present))
        with m.If(room):
            m.d.sync += self.o.valid.eq(taken.any() | (closed != 0))
            m.d.sync += self.o.payload.stars.eq(closed)
            m.d.sync += self.o.payload.present.eq(taken.any())
            for n, i in enumerate(self.i):
                m.d.sync += self.ahead[n].eq(reached[n] - closed)
                m.d.sync += self.counted[n].eq(heard[n] & ~i.ready)
                with m.If(taken[n]):
                    m.d.sync += Value.cast(self.o.payload.data).eq(Value.cast(i.payload.data))
                    m.d.sync += self.o.payload.ordered.eq(i.payload.ordered)
                    m.d.sync += self.last.eq(n)
        return m

    def _total(self, m, n, heard, counts):
        """The stars by which an input is ahead with those that it offers, if they are to count."""
        i = self.i[n]
        total = Signal(range(2 * MOST_STARS + 1), name=f"total_{n}")
        m.d.comb += total.eq(self.ahead[n] + i.payload.stars)
        # More stars than can be counted wait at the input until the others have come closer.
        m.d.comb += heard[n].eq(i.valid & (self.counted[n] | (total <= MOST_STARS)))
        m.d.comb += counts[n].eq(heard[n] & ~self.counted[n])
        return total

    def _reached_no_more(self, n, other, totals, counts):
        """Whether an input has reached no more stars than another one: compared in all the ways
        there are, beside the choice of which of them it is.
        """
        def than(stars):
            return Mux(counts[other], stars <= totals[other], stars <= self.ahead[other])

        return Mux(counts[n], than(totals[n]), than(self.ahead[n]))

    def _choice(self, m, offers):
        """One of the offers: the first behind the input that was served last."""
        later = Signal(self.count)  # inputs behind the last one
        with m.Switch(self.last):
            for n in range(self.count):
                with m.Case(n):
                    m.d.comb += later.eq(-1 << (n + 1))
        pool = Signal(self.count)
        taken = Signal(self.count)
        m.d.comb += pool.eq(Mux((offers & later).any(), offers & later, offers))
        m.d.comb += taken.eq(pool & -pool)
        return taken


def _least(m, numbers):
    """The least of some numbers, by halves."""
    if len(numbers) == 1:
        return numbers[0]
    half = len(numbers) // 2
    first, second = _least(m, numbers[:half]), _least(m, numbers[half:])
    least = Signal.like(numbers[0], name="least")
    m.d.comb += least.eq(Mux(first < second, first, second))
    return least


class CollectionTree(wiring.Component):
    """Collects the punctuated streams ``i`` of the join cores into ``o``.

    leaves  number of inputs
    fan_in  inputs of a node

    Latency `depth` + 2 cycles at most, one token a cycle. Each leaf has a queue of
    `queue_tokens`, so that a core works on while its neighbours are behind with their star.
    """

    def __init__(self, shape, leaves, fan_in=2, queue_tokens=16):
        if leaves < 1:
            raise ValueError(f"leaves must be from 1 on, not {leaves}")
        if fan_in < 2:
            raise ValueError(f"fan_in must be from 2 on, not {fan_in}")
        self.data_shape, self.leaves, self.fan_in = shape, leaves, fan_in
        self.depth = tree_depth(leaves, fan_in)
        self.queue_tokens = queue_tokens
        token = stream.Signature(punctuated(shape))
        super().__init__({"i": In(token).array(leaves), "o": Out(token)})

    def elaborate(self, platform):
        m = Module()
        sources = []
        for n, leaf in enumerate(self.i):
            queue = ShortQueue(punctuated(self.data_shape), self.queue_tokens)
            m.submodules[f"queue_{n}"] = queue
            wiring.connect(m, wiring.flipped(leaf), queue.i)
            sources.append(queue.o)
        root = self._node(m, sources, self.depth, "root")
        wiring.connect(m, root, wiring.flipped(self.o))
        return m

    def _node(self, m, sources, levels, name):
        """The output of a subtree of so many levels above `sources`."""
        inputs = sources
        if levels > 1:
            rest, inputs = iter(sources), []
            for n, share in enumerate(branches(len(sources), self.fan_in)):
                inputs.append(self._node(m, [*islice(rest, share)], levels - 1, f"{name}_{n}"))
        m.submodules[name] = node = CollectNode(self.data_shape, len(inputs))
        for source, port in zip(inputs, node.i, strict=True):
            wiring.connect(m, source, port)
        return node.o
