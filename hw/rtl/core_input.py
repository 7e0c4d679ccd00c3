"""A join core's end of the distribution tree: it knows by its own counter what to store."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.engine_words import context_layout, head_layout, head_words, word_token
from hw.rtl.join_core import command_layout
from hw.rtl.layouts import key_shape, tuple_layout, wide_token
from hw.rtl.slot_table import WIRE_BITS
from hw.spec import JoinParams
from hw.spec.commands import Opcode

__all__ = ["CoreInput"]


class CoreInput(wiring.Component):
    """Turns command ``words`` into the ``commands``, ``tuples`` and ``probes`` of core `number`.

    Of the tuples of an INSERT the core stores every `cores`-th, by a counter of its own for each
    stream that CREATE sets to 0: no coordinator (SplitJoin, section 4.2). Algorithm 2 counts to
    N, which are N + 1 slots of which one stores nowhere; here there are N. The counts of CREATE
    and INSERT become the core's share. ``contexts`` says what the results belong to, ``scan`` is
    the head's, valid while the command is offered.

    One word a cycle, but where the core's share of it is more than one tuple: one tuple a cycle.
    """

    def __init__(self, params: JoinParams, number):
        if not 0 <= number < params.cores:
            raise ValueError(f"number must be below the {params.cores} cores, not {number}")
        self.params, self.number = params, number
        lanes = params.lanes
        super().__init__(
            {
                "words": In(stream.Signature(word_token(params))),
                "contexts": Out(stream.Signature(context_layout())),
                "commands": Out(stream.Signature(command_layout(params))),
                "tuples": Out(stream.Signature(wide_token(tuple_layout(params), lanes))),
                "probes": Out(stream.Signature(wide_token(key_shape(params), lanes))),
                "scan": Out(WIRE_BITS),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        word = self.words.payload
        head = Signal(head_layout(params))
        turn_bits = max(1, (params.cores - 1).bit_length())
        # By stream, the turn of the next tuple; the one whose number it is stores it.
        turns = Array(Signal(turn_bits, name=f"turn_{side}") for side in "lr")
        turn = turns[head.command.side]
        m.d.comb += self.scan.eq(head.scan)
        with m.FSM():
            self._take_head(m, word, head)
            self._announce(m, head)
            with m.State("COMMAND"):
                self._command(m, head, turn)
                m.d.comb += self.commands.valid.eq(1)
                with m.If(self.commands.ready):
                    m.next = "HEAD"
                    with m.Switch(head.command.opcode):
                        with m.Case(Opcode.CREATE):
                            m.d.sync += turn.eq(0)
                        with m.Case(Opcode.INSERT):
                            m.next = "TUPLES"
                        with m.Case(Opcode.PROBE):
                            m.next = "PROBES"
            self._share(m, word, turn)
            with m.State("PROBES"):
                for n in range(params.lanes):
                    m.d.comb += self.probes.payload.data[n].eq(_key(word.data[n]))
                m.d.comb += self.probes.payload.count.eq(word.count)
                m.d.comb += self.probes.payload.end.eq(word.end)
                m.d.comb += self.probes.valid.eq(self.words.valid)
                m.d.comb += self.words.ready.eq(self.probes.ready)
                with m.If(self.words.valid & self.probes.ready & word.end):
                    m.next = "HEAD"
        return m

    def _take_head(self, m, word, head):
        count = head_words(self.params)
        width = Value.cast(word.data).shape().width
        pieces = Signal(count * width)
        at = Signal(range(max(2, count)))
        m.d.comb += head.eq(pieces[: len(Value.cast(head))])
        with m.State("HEAD"):
            m.d.comb += self.words.ready.eq(1)
            with m.If(self.words.valid):
                # The newest piece enters at the top, so that the first ends up at the bottom.
                m.d.sync += pieces.eq(Cat(pieces, word.data)[width:])
                m.d.sync += at.eq(at + 1)
                with m.If(at == count - 1):
                    m.d.sync += at.eq(0)
                    m.next = "CONTEXT"

    def _announce(self, m, head):
        context = self.contexts.payload
        for name in ("star_every", "ordered"):
            m.d.comb += context[name].eq(head[name])
        m.d.comb += context.side.eq(head.command.side)
        m.d.comb += context.probe.eq(head.command.opcode == Opcode.PROBE)
        with m.State("CONTEXT"):
            m.d.comb += self.contexts.valid.eq(1)
            with m.If(self.contexts.ready):
                m.next = "COMMAND"

    def _command(self, m, head, turn):
        """The head's command, where its count is of tuples to store the core's share of it."""
        cores = self.params.cores
        m.d.comb += self.commands.payload.eq(head.command)
        before = Signal(range(cores))  # tuples that others take before it is this core's turn
        with m.Switch(head.command.opcode):
            with m.Case(Opcode.CREATE):
                m.d.comb += before.eq(self.number)
            with m.Default():
                m.d.comb += before.eq(self._before(turn))
        share = (head.command.count + (cores - 1) - before) >> (cores - 1).bit_length()
        with m.If(head.command.opcode != Opcode.PROBE):
            m.d.comb += self.commands.payload.count.eq(share)

    def _before(self, turn):
        """Tuples from the one with this turn up to the core's next one."""
        if self.params.cores == 1:
            return Const(0)
        return (self.number - turn)[: len(turn)]

    def _share(self, m, word, turn):
        """Pick the core's tuples out of the words, and pack them again."""
        params, lanes = self.params, self.params.lanes
        kept = Signal(self.tuples.payload.data.shape())
        fill = Signal(range(lanes + 1))
        passed = Signal(range(lanes + 1))  # tuples of the word that are dealt with
        mine = Signal(range(lanes + params.cores))  # the core's next tuple in the word
        there = Signal()
        m.d.comb += mine.eq(passed + self._before(turn))
        m.d.comb += there.eq(mine < word.count)
        out = self.tuples.payload
        m.d.comb += out.data.eq(kept)
        m.d.comb += out.count.eq(fill)
        with m.State("TUPLES"):
            with m.If(fill == lanes):
                self._send(m, fill)
            with m.Elif(self.words.valid & word.end):
                with m.If(fill != 0):
                    self._send(m, fill)
                with m.Else():
                    m.d.comb += out.end.eq(1)
                    m.d.comb += self.tuples.valid.eq(1)
                    m.d.comb += self.words.ready.eq(self.tuples.ready)
                    with m.If(self.tuples.ready):
                        m.next = "HEAD"
            with m.Elif(self.words.valid):
                step = Signal(range(lanes + params.cores + 1))
                with m.If(there):
                    for lane in range(lanes):
                        with m.If(fill == lane):
                            m.d.sync += kept[lane].eq(word.data[mine[: (lanes - 1).bit_length()]])
                    m.d.sync += fill.eq(fill + 1)
                # Behind the last own tuple the rest of the word goes at once.
                last = ~there | (mine + params.cores >= word.count)
                m.d.comb += step.eq(Mux(last, word.count - passed, mine + 1 - passed))
                m.d.comb += self.words.ready.eq(last)
                m.d.sync += passed.eq(Mux(last, 0, mine + 1))
                if params.cores > 1:
                    m.d.sync += turn.eq(turn + step)

    def _send(self, m, fill):
        m.d.comb += self.tuples.valid.eq(1)
        with m.If(self.tuples.ready):
            m.d.sync += fill.eq(0)


def _key(lane):
    """A key travels in the low bits of a tuple's place."""
    return Value.cast(lane)[: len(Value.cast(lane.key))]
