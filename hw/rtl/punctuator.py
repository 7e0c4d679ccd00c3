"""A join core's end of the collection tree: results without the empty ones, and their stars."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.collection_tree import MOST_STARS, punctuated
from hw.rtl.engine_words import STAR_BITS, context_layout, result_layout
from hw.rtl.join_core import reply_layout
from hw.rtl.layouts import record_layout, wide_token
from hw.rtl.slot_table import WIRE_BITS
from hw.spec import JoinParams

__all__ = ["Punctuator"]

#: Bits of a way to the next star that are looked at in each cycle: far more than two words have.
NEAR_BITS = 6


class Punctuator(wiring.Component):
    """Makes punctuated ``results`` of a core's ``records`` and ``replies``, command by command.

    For each of ``contexts``: of a probe the records that are not empty, each with its number,
    and a star after every `star_every` records; then the core's reply, and a last star (SplitJoin
    sends stars only where there was something to compare, and blocks when a core is empty).

    A word of records a cycle where all are empty, otherwise one result a cycle.
    """

    def __init__(self, params: JoinParams, number):
        if params.lanes >= MOST_STARS:
            raise ValueError(f"lanes must be below {MOST_STARS} here, not {params.lanes}")
        self.params, self.number = params, number
        super().__init__(
            {
                "contexts": In(stream.Signature(context_layout())),
                "records": In(stream.Signature(wide_token(record_layout(), params.lanes))),
                "replies": In(stream.Signature(reply_layout())),
                "results": Out(stream.Signature(punctuated(result_layout(params)))),
            }
        )
        self.context = Signal(context_layout())
        #: The word of records in work, which of them are results, and which a star follows.
        self.word = Signal(data.ArrayLayout(record_layout(), params.lanes))
        self.kept = Signal(params.lanes)
        self.starred = Signal(params.lanes)
        self.first = Signal(WIRE_BITS)  # number of the word's first record
        self.coming = Signal(WIRE_BITS)  # number of the next word's first record
        self.pending = Signal(range(MOST_STARS + 1))  # stars that wait for a result to ride on
        # Where a word can have several stars their distance fits a few bits; where it cannot, only
        # the last bits of a long way can be a star in this word, and only when it is `close`.
        self.starry = Signal()  # there are stars between records
        self.several = Signal()  # a word can have more than one
        self.phase = Signal(range(params.lanes + 1))  # then the records up to the next star
        self.left = Signal(STAR_BITS)  # and otherwise
        self.close = Signal()  # `left` has no more than NEAR_BITS; on before it is within two words
        self.short = Signal()  # nor has what it begins with
        self.ends = Signal(params.lanes)  # at which record of the next word `left` ends
        # Numbers of records that are the whole way, of those that two words can have.
        self.whole = Signal(2 * params.lanes)
        # Of the next word: behind which records a star is due, and the way behind it.
        self.due = Signal(params.lanes)
        self.next = Signal(data.StructLayout(
            {"phase": range(params.lanes + 1), "left": STAR_BITS, "close": 1, "ends": params.lanes}
        ))

    def elaborate(self, platform):
        m = Module()
        room = Signal()
        m.d.comb += room.eq(~self.results.valid | self.results.ready)
        self._look_ahead(m, self.records.payload.count)
        with m.If(room):
            m.d.sync += self.results.valid.eq(0)
        with m.FSM():
            with m.State("CONTEXT"):
                m.d.comb += self.contexts.ready.eq(1)
                m.d.sync += self.context.eq(self.contexts.payload)
                m.d.sync += self.coming.eq(0)
                self._count_anew(m, self.contexts.payload.star_every)
                with m.If(self.contexts.valid):
                    m.next = "REPLY"
                    with m.If(self.contexts.payload.probe):
                        m.next = "RECORDS"
            with m.State("RECORDS"):
                self._send_records(m, room)
                with m.If(self.records.valid & self.records.ready & self.records.payload.end):
                    m.next = "REPLY"
            with m.State("REPLY"):
                m.d.comb += self.replies.ready.eq(room)
                with m.If(room & self.replies.valid):
                    self._emit_reply(m)
                    m.d.sync += self.pending.eq(1)
                    m.next = "STAR"
            with m.State("STAR"), m.If(room):
                self._emit(m, self.pending)
                m.d.sync += self.pending.eq(0)
                m.next = "CONTEXT"
        return m

    def _send_records(self, m, room):
        """Work on one word; take the next in the cycle in which this one is done."""
        crowded = Signal()  # the stars of one more word might not be countable
        m.d.comb += crowded.eq(self.pending > MOST_STARS - self.params.lanes)
        chosen = Signal(self.params.lanes)
        before = Signal(self.params.lanes)  # lanes before the chosen one
        m.d.comb += chosen.eq(self.kept & -self.kept)
        m.d.comb += before.eq(chosen - 1)  # all of them where none is chosen
        with m.If(crowded), m.If(room):
            self._emit(m, self.pending)
            m.d.sync += self.pending.eq(0)
        with m.Elif(self.kept.any()), m.If(room):
            self._emit_record(m, chosen, self.pending + _ones(self.starred & before))
            m.d.sync += self.pending.eq(0)
            m.d.sync += self.kept.eq(self.kept & ~chosen)
            m.d.sync += self.starred.eq(self.starred & ~before)
            with m.If(self.kept == chosen):
                m.d.sync += self.pending.eq(_ones(self.starred & ~before))
                self._take_word(m)
        with m.Else():
            idle = room & (self.pending != 0)
            with m.If(idle):
                self._emit(m, self.pending)
            m.d.sync += self.pending.eq(Mux(idle, 0, self.pending) + _ones(self.starred))
            self._take_word(m)

    def _take_word(self, m):
        word = self.records.payload
        m.d.comb += self.records.ready.eq(1)
        m.d.sync += [self.kept.eq(0), self.starred.eq(0)]
        with m.If(self.records.valid):
            m.d.sync += self.word.eq(word.data)
            m.d.sync += self.first.eq(self.coming)
            m.d.sync += self.coming.eq(self.coming + word.count)
            for lane in range(self.params.lanes):
                record = word.data[lane]
                # A record with the label `not` and nothing in it names everything.
                there = lane < word.count
                m.d.sync += self.kept[lane].eq(there & (record.start != record.end))
            m.d.sync += [
                self.starred.eq(self.due), self.phase.eq(self.next.phase),
                self.left.eq(self.next.left), self.close.eq(self.next.close),
                self.ends.eq(self.next.ends),
            ]

    def _count_anew(self, m, star_every):
        short = star_every[NEAR_BITS:] == 0
        m.d.sync += [
            self.starry.eq(star_every != 0), self.several.eq(star_every <= self.params.lanes),
            self.phase.eq(star_every), self.left.eq(star_every),
            self.close.eq(short), self.short.eq(short), self.ends.eq(0),
        ]
        m.d.sync += self.whole.eq(Cat(star_every == n for n in range(2 * self.params.lanes)))

    def _look_ahead(self, m, count):
        """Behind which of the next `count` records a star is due, and how the way goes on behind
        them: in every cycle, so that nothing of it waits for whether they are taken.
        """
        lanes = self.params.lanes
        one, many = Signal(lanes), Signal(lanes)
        phase = self.phase
        for lane in range(lanes):
            there = lane < count
            m.d.comb += one[lane].eq(there & self.ends[lane])
            m.d.comb += many[lane].eq(there & (phase == 1))
            after = Signal.like(self.phase, name=f"after_{lane}")
            m.d.comb += after.eq(Mux(many[lane], self.context.star_every, phase - there))
            phase = after
        m.d.comb += self.next.phase.eq(phase)
        passed = one.any()
        # Of a word with a star the records behind it count; all the ways there can be are known
        # before it is known which of them it is.
        left = self.left - count
        for lane in range(lanes):
            behind = (count - (lane + 1)).as_unsigned()[: len(count)]
            left = Mux(one[lane], self.context.star_every - behind, left)
        m.d.comb += self.next.left.eq(left)
        m.d.comb += self.next.ends.eq(
            Cat(self._ends(m, lane, count, one) for lane in range(lanes))
        )
        # From the half on, so that it is known in time.
        nearer = self.close | (self.left[NEAR_BITS - 1 :] == 0)
        m.d.comb += self.next.close.eq(Mux(passed, self.short, nearer))
        m.d.comb += self.due.eq(Mux(self.several, many, one) & self.starry.replicate(lanes))

    def _ends(self, m, lane, count, one):
        """Whether a long way will end at that record of the next word, `count` records later:
        compared with all that is left now, beside the choice of what it is.
        """
        ends = Signal(name=f"ends_{lane}_next")
        for counted in range(self.params.lanes + 1):
            with m.If(count == counted):
                reached = self.left[:NEAR_BITS] == lane + 1 + counted
                m.d.comb += ends.eq(self.close & reached)
                for last in range(counted):
                    with m.If(one[last]):
                        m.d.comb += ends.eq(self.whole[lane + counted - last])
        return ends

    def _emit(self, m, stars):
        out = self.results.payload
        m.d.sync += self.results.valid.eq(1)
        m.d.sync += [out.present.eq(0), out.stars.eq(stars)]
        m.d.sync += out.ordered.eq(self.context.ordered)
        m.d.sync += [out.data.side.eq(self.context.side), out.data.core.eq(self.number)]

    def _emit_record(self, m, chosen, stars):
        self._emit(m, stars)
        out = self.results.payload
        m.d.sync += [out.present.eq(1), out.data.reply.eq(0)]
        for lane in range(self.params.lanes):
            with m.If(chosen[lane]):
                m.d.sync += out.data.record.eq(self.word[lane])
                m.d.sync += out.data.number.eq(self.first + lane)

    def _emit_reply(self, m):
        self._emit(m, self.pending)
        out, reply = self.results.payload, self.replies.payload
        m.d.sync += [out.present.eq(1), out.data.reply.eq(1)]
        m.d.sync += out.data.number.eq(reply.subwindow)
        m.d.sync += out.data.record.start.eq(reply.rows)
        m.d.sync += out.data.record.end.eq(Cat(reply.status, reply.opcode))


def _ones(bits):
    """How many bits are set."""
    return sum(bits[n] for n in range(len(bits)))
