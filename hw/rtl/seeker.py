"""The seeker: one bound's position in the main array; two of them make a prober."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import check_geometry, order_of, row_count, token, word_layout
from hw.rtl.memory import ReadPort
from hw.rtl.partitioner import target_layout
from hw.rtl.plumbing import Buffer, ShortQueue
from hw.spec import JoinParams

__all__ = ["Seeker"]


def comes_before(key, bound):
    """Whether a stored key comes before a bound: one comparison of unsigned numbers."""
    beyond = bound[-1] ^ bound[-2]  # the bound after the largest key, which has a bit more
    return beyond | (order_of(key) < order_of(bound[:-1]))


class Seeker(wiring.Component):
    """The position of each bound: how many stored keys come before it.

    Words and bounds meet in `_match`: a word goes when all of it comes before the bound, a bound
    goes with the word that it falls into. That decision is one comparison, of the word's last
    key; it is made a cycle ahead for both that may follow. Behind it, stages count the keys of
    the word that come before the bound. A search sends its bound around that way again for each
    halving; all searches are equally long, so none overtakes another.
    """

    #: Places of each queue.
    QUEUE = 16
    #: Searches under way, and positions that wait to be taken, at most: a queue holds as many.
    SEARCHES = 14
    POSITIONS = 14

    def __init__(self, params: JoinParams, address_bits):
        check_geometry(params)
        self.params = params
        self.address_bits = address_bits
        lanes = params.lanes
        self.words_in_partition = params.partition_rows // lanes
        self.word_bits = word_bits = (self.words_in_partition - 1).bit_length()
        target = target_layout(params).members
        self.word = data.StructLayout(
            {
                "keys": data.ArrayLayout(word_layout(params).elem_shape.members["key"], lanes),
                "stored": lanes,  # lanes that hold a tuple
                "index": word_bits,
                "parity": 1,
                "last": 1,
            }
        )
        #: A bound under way: where its search stands, and in which burst its words come.
        self.state = data.StructLayout(
            {
                **target, "index": word_bits, "step": word_bits, "count": range(lanes + 1),
                "final": 1, "parity": 1, "drain": 1, "fetch": 1, "end": 1,
            }
        )
        self.burst = data.StructLayout(
            {"partition": target["partition"], "index": word_bits, "parity": 1}
        )
        super().__init__(
            {
                "base": In(address_bits),
                "rows": In(row_count(params)),
                "dense": In(1),
                "targets": In(stream.Signature(token(target_layout(params)))),
                "positions": Out(stream.Signature(token(row_count(params)))),
                "words": Out(ReadPort(word_layout(params), address_bits)),
            }
        )
        # Whatever holds a bound, for proofs.
        self.waiting = Buffer(token(target_layout(params)))
        self.bounds = ShortQueue(self.state, self.QUEUE)
        self.bursts = ShortQueue(self.burst, self.QUEUE)
        self.again = ShortQueue(self.state, self.QUEUE)
        self.out = ShortQueue(token(row_count(params)), self.QUEUE)
        self.asking = Buffer(self.words.requests.payload.shape())
        self.tagged = Buffer(self.word)
        self.room = Signal(range(self.POSITIONS + 1), init=self.POSITIONS)
        self.searches = Signal(range(self.SEARCHES + 1))
        self.head_valid = Signal()
        self.bound = Signal(self.state)
        self.bound_valid = Signal()
        self.word_valid = Signal()
        self.counting = Signal(4)
        self.under_way = [Signal(self.state, name=f"counting_{n}") for n in range(4)]
        self.leaves = Signal()  # of the last of these: its position is found
        self.returns = Signal()  # or its search goes on

    def elaborate(self, platform):
        m = Module()
        for name in ("waiting", "bounds", "bursts", "again", "out", "asking", "tagged"):
            m.submodules[name] = getattr(self, name)
        wiring.connect(m, wiring.flipped(self.targets), self.waiting.i)
        wiring.connect(m, self.asking.o, wiring.flipped(self.words.requests))
        wiring.connect(m, self.out.o, wiring.flipped(self.positions))
        self._feed(m)
        self._ask(m)
        self._tag(m)
        word, state, emitted = self._match(m)
        self._count(m, word, state, emitted)
        return m

    def _feed(self, m):
        """Let bounds enter, one after the other, behind the searches that go on."""
        waiting, again = self.waiting, self.again
        # The bound in front is compared with the one that went before it.
        head = Signal(waiting.o.payload.shape(), init={"end": 1})
        fresh = Signal(init=1)
        go = Signal()
        m.d.comb += waiting.o.ready.eq(go | ~self.head_valid)
        new = waiting.o.payload
        with m.If(waiting.o.ready):
            m.d.sync += self.head_valid.eq(waiting.o.valid)
            with m.If(waiting.o.valid):
                m.d.sync += head.eq(new)
                m.d.sync += fresh.eq(
                    head.end | (new.data.partition != head.data.partition)
                    | (new.data.bound < head.data.bound)
                )

        # A search that goes on cannot wait: the head enters the queue when none comes around.
        fetched = Signal()  # this frame has asked for words
        parity = Signal()
        fetches = Signal()
        m.d.comb += fetches.eq(~head.end & (fresh | ~self.dense))
        # Registers: one bound can enter before they are seen.
        quiet = Signal(init=1)
        may_enter = Signal(init=1)
        entered = go & ~self.dense
        m.d.sync += quiet.eq((self.searches == 0) & ~entered)
        m.d.sync += may_enter.eq(self.dense | (self.searches <= self.SEARCHES - 2))
        allowed = Signal()
        m.d.comb += allowed.eq(self.head_valid & Mux(head.end, quiet, may_enter))
        m.d.comb += go.eq(allowed & again.i.ready & ~self.returns)
        with m.If(go):
            m.d.sync += fetched.eq(self.dense & ~head.end)
            m.d.sync += parity.eq(parity ^ (fetches & self.dense))
        entering = again.i.payload
        m.d.comb += again.i.valid.eq(self.returns | allowed)
        with m.If(self.returns):
            m.d.comb += entering.eq(self.under_way[3])
            m.d.comb += entering.fetch.eq(1)
        with m.Else():
            m.d.comb += entering.bound.eq(head.data.bound)
            m.d.comb += entering.partition.eq(head.data.partition)
            m.d.comb += entering.final.eq(self.dense | (self.word_bits == 0))
            m.d.comb += entering.end.eq(head.end)
            m.d.comb += entering.drain.eq(fetched)
            m.d.comb += entering.parity.eq(parity ^ (fetches & self.dense))
            m.d.comb += entering.fetch.eq(fetches)

        # An end is among the searches: `again` has room for all that go around.
        left = self.out.i.valid & ~self.dense
        m.d.sync += self.searches.eq(self.searches + entered - left)

    def _ask(self, m):
        """Ask memory for the words of each bound, and let the bound follow them."""
        again, bounds, bursts, asking = self.again, self.bounds, self.bursts, self.asking
        chosen = again.o.payload
        room = Signal()
        index = Signal(self.word_bits)
        m.d.comb += room.eq(bounds.i.ready & bursts.i.ready & asking.i.ready)
        m.d.comb += again.o.ready.eq(room)
        m.d.comb += index.eq(chosen.index | chosen.step)
        m.d.comb += bounds.i.valid.eq(again.o.valid & room)
        m.d.comb += bounds.i.payload.eq(chosen)
        fetch = again.o.valid & room & chosen.fetch
        m.d.comb += bursts.i.valid.eq(fetch)
        m.d.comb += bursts.i.payload.partition.eq(chosen.partition)
        m.d.comb += bursts.i.payload.index.eq(index)
        m.d.comb += bursts.i.payload.parity.eq(chosen.parity)
        m.d.comb += asking.i.valid.eq(fetch)
        m.d.comb += asking.i.payload.address.eq(self.base + Cat(index, chosen.partition))
        m.d.comb += asking.i.payload.count.eq(Mux(self.dense, self.words_in_partition, 1))

    def _tag(self, m):
        """A word of memory with its place, and which of its lanes are stored tuples."""
        word = self.tagged.i.payload
        burst = self.bursts.o.payload
        lanes = self.params.lanes
        lane_bits = (lanes - 1).bit_length()
        offset = Signal(self.word_bits)
        index = Signal(self.word_bits)
        m.d.comb += index.eq(Mux(self.dense, offset, burst.index))
        m.d.comb += word.index.eq(index)
        m.d.comb += word.parity.eq(burst.parity)
        m.d.comb += word.last.eq(~self.dense | (offset == self.words_in_partition - 1))
        number = Cat(index, burst.partition)
        whole = self.rows >> lane_bits
        for lane in range(lanes):
            m.d.comb += word.keys[lane].eq(self.words.words.payload[lane].key)
            m.d.comb += word.stored[lane].eq(
                (number < whole) | ((number == whole) & (lane < self.rows[:lane_bits]))
            )
        took = self.words.words.valid & self.words.words.ready
        # A burst is pushed with its request, so it is here before its words.
        m.d.comb += self.tagged.i.valid.eq(self.words.words.valid)
        m.d.comb += self.words.words.ready.eq(self.tagged.i.ready)
        m.d.comb += self.bursts.o.ready.eq(took & word.last)
        with m.If(took & self.dense):
            m.d.sync += offset.eq(Mux(word.last, 0, offset + 1))

    def _match(self, m):
        """PanJoin III-E: the next word or the next bound, whichever comes first."""
        word = Signal(self.word)
        state = self.bound
        word_valid, bound_valid = self.word_valid, self.bound_valid
        next_word, next_state = self.tagged.o, self.bounds.o
        # What this cycle does, decided in the cycle before.
        passes = Signal()  # the word goes: before the bound, or of no use to the frame's end
        answers = Signal()  # the bound goes
        spends = Signal()  # and takes the word with it, which no other search needs
        room = Signal()  # a register: one position can be spent before it is seen
        drained = Signal()
        at_end = bound_valid & state.end
        last_drained = passes & at_end & word.last
        finish = Signal()
        shift_word = Signal()
        shift_bound = Signal()
        m.d.sync += room.eq(self.room >= 2)
        m.d.comb += finish.eq(at_end & (~state.drain | drained))
        m.d.comb += shift_word.eq(passes | spends | ~word_valid)
        m.d.comb += shift_bound.eq(answers | finish | ~bound_valid)
        # A bound is taken only when its position has room. A scan takes it only when its word is
        # there, so that one of the two comparisons below knows both.
        takes_bound = Signal()
        needs_room = next_state.payload.final | next_state.payload.end
        m.d.comb += takes_bound.eq(
            next_state.valid & (~self.dense | ~shift_word | next_state.payload.end)
            & (room | ~needs_room)
        )
        m.d.comb += next_word.ready.eq(shift_word)
        m.d.comb += next_state.ready.eq(shift_bound & takes_bound)
        m.d.sync += drained.eq(~finish & (drained | last_drained))
        with m.If(shift_word):
            m.d.sync += word.eq(next_word.payload)
            m.d.sync += word_valid.eq(next_word.valid)
        with m.If(shift_bound):
            m.d.sync += state.eq(next_state.payload)
            m.d.sync += bound_valid.eq(takes_bound)

        def decide(both, w, s, drains):
            below = self._passes(w, s)
            m.d.sync += passes.eq(both & Mux(s.end, drains, below))
            m.d.sync += answers.eq(both & ~s.end & ~below)
            m.d.sync += spends.eq(both & ~s.end & ~below & ~self.dense)

        with m.If(shift_word & shift_bound):
            # The next word of a search always answers its next bound.
            both = next_word.valid & takes_bound
            ends = next_state.payload.end
            m.d.sync += passes.eq(both & ends & next_state.payload.drain)
            m.d.sync += answers.eq(both & ~ends)
            m.d.sync += spends.eq(both & ~ends & ~self.dense)
        with m.Elif(shift_word):
            drains = state.drain & ~drained & ~last_drained
            decide(next_word.valid & bound_valid, next_word.payload, state, drains)
        with m.Elif(shift_bound):
            decide(word_valid & takes_bound, word, next_state.payload, next_state.payload.drain)

        spent = Signal()
        returned = Signal()
        m.d.comb += spent.eq(next_state.valid & next_state.ready & needs_room)
        m.d.comb += returned.eq(self.out.o.valid & self.out.o.ready)
        m.d.sync += self.room.eq(self.room - spent + returned)
        return word, state, answers | finish

    def _passes(self, word, state):
        """Whether all of the word comes before the bound, and another word of it follows."""
        below = word.stored[-1] & comes_before(word.keys[-1], state.bound)
        return (word.parity != state.parity) | (below & ~word.last)

    def _count(self, m, word, state, emitted):
        """Four stages: keep, compare every lane, count, and go on, to the end or around again."""
        lanes = self.params.lanes
        kept = Signal(self.word)
        before = Signal(lanes)
        count = Signal(range(lanes + 1))
        under_way = self.under_way
        m.d.sync += self.counting.eq(Cat(emitted, self.counting[:3]))
        m.d.sync += kept.eq(word)
        m.d.sync += under_way[0].eq(state)
        with m.If(self.dense):
            m.d.sync += under_way[0].index.eq(word.index)
        m.d.sync += under_way[1].eq(under_way[0])
        m.d.sync += under_way[2].eq(under_way[1])
        for lane in range(lanes):
            below = comes_before(kept.keys[lane], under_way[0].bound)
            m.d.sync += before[lane].eq(kept.stored[lane] & below)
        m.d.sync += count.eq(sum(before[lane] for lane in range(lanes)))

        # A word that begins before the bound is as far as the search has come; the first word
        # counts in any case.
        now = under_way[2]
        then = under_way[3]
        hit = (count != 0) | (now.step == 0)
        index = Signal(self.word_bits)
        best = Signal(range(lanes + 1))
        m.d.comb += index.eq(Mux(hit, now.index | now.step, now.index))
        m.d.comb += best.eq(Mux(hit, count, now.count))
        m.d.sync += then.eq(now)
        m.d.sync += then.index.eq(index)
        m.d.sync += then.count.eq(best)
        halved = Mux(now.step == 0, self.words_in_partition >> 1, now.step >> 1)
        m.d.sync += then.step.eq(halved)
        m.d.sync += then.final.eq(self.dense | (halved <= 1))
        m.d.sync += self.leaves.eq(self.counting[2] & (now.end | now.final))
        m.d.sync += self.returns.eq(self.counting[2] & ~(now.end | now.final))

        out = self.out
        lane_bits = (lanes - 1).bit_length()
        m.d.comb += out.i.valid.eq(self.leaves)
        m.d.comb += out.i.payload.end.eq(then.end)
        m.d.comb += out.i.payload.data.eq(
            Cat(C(0, lane_bits), then.index, then.partition) + then.count
        )
