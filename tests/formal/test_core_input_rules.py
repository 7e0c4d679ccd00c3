"""A core's input passes on what is for its core once, and nothing else: a proof."""

from dataclasses import replace

import pytest
from amaranth.hdl import *

from hw.rtl.core_input import CoreInput
from hw.rtl.engine_words import head_layout, head_words
from hw.rtl.layouts import tuple_layout
from hw.spec.commands import Opcode
from tests.formal.proofs import Inside, prove
from tests.formal.test_engine_rules import is_sound
from tests.formal.test_probing_rules import moves
from tests.formal.test_stream_rules import Harness, streams_of
from tests.formal.test_tree_rules import SMALL

pytestmark = pytest.mark.formal

#: Most tuples of a command: more would be more digits of the same sum.
MOST = 63


class Broadcast:
    """What the words of a core input mean: heads, and for INSERT and PROBE a frame behind them."""

    def __init__(self, m, dut):
        self.dut = dut
        layout = head_layout(dut.params)
        width = len(Value.cast(dut.words.payload.data))
        self.pieces = [Signal(width, name=f"piece_{n}") for n in range(head_words(dut.params))]
        self.at = Signal(range(len(self.pieces) + 1))  # words of a head that have come
        self.head = layout(Cat(self.pieces)[: layout.size])
        self.command = self.head.command
        self.in_head, self.complete = Signal(), Signal()
        self.in_tuples, self.in_probes = Signal(), Signal()
        m.d.comb += self.complete.eq(self.at == len(self.pieces))
        m.d.comb += self.in_head.eq(~(self.complete | self.in_tuples | self.in_probes))
        with m.If(moves(dut.words) & self.in_head):
            m.d.sync += self.at.eq(self.at + 1)
            m.d.sync += Array(self.pieces)[self.at].eq(dut.words.payload.data)
        with m.If(moves(dut.words) & dut.words.payload.end):
            m.d.sync += [self.in_tuples.eq(0), self.in_probes.eq(0)]
        with m.If(moves(dut.commands)):
            m.d.sync += self.at.eq(0)
            m.d.sync += self.in_tuples.eq(self.is_a(Opcode.INSERT))
            m.d.sync += self.in_probes.eq(self.is_a(Opcode.PROBE))
        m.d.comb += Assume(~self.complete | (self.command.count <= MOST))
        in_frame = dut.words.valid & ~self.in_head
        m.d.comb += Assume(~in_frame | is_sound(dut.words.payload))

    def is_a(self, opcode):
        return self.command.opcode == opcode

    def is_taken_in(self, m, inside):
        """What the registers have to do with it."""
        for name, phase in (("HEAD", self.in_head), ("TUPLES", self.in_tuples),
                            ("PROBES", self.in_probes)):
            m.d.comb += Assert(inside.state(name) == phase)
        in_frame = self.in_tuples | self.in_probes
        m.d.comb += Assert(~(self.in_tuples & self.in_probes))
        m.d.comb += Assert(~in_frame | (self.at == 0))
        m.d.comb += Assert(~self.in_tuples | self.is_a(Opcode.INSERT))
        m.d.comb += Assert(~self.in_probes | self.is_a(Opcode.PROBE))
        m.d.comb += Assert(inside.signal("at") == Mux(self.complete, 0, self.at))
        arrived = Mux(self.in_head, self.at, len(self.pieces))
        for n, piece in enumerate(self.pieces):
            place = (len(self.pieces) - arrived + n)[: len(arrived)]
            there = inside.signal("pieces").word_select(place, len(piece))
            m.d.comb += Assert((n >= arrived) | (there == piece))


def each_head_is_one_context_and_one_command(m, dut, came, inside):
    """And both say what it said, but for the core's share of the tuples."""
    command, context, head = dut.commands.payload, dut.contexts.payload, came.head
    announced = Signal()
    with m.If(moves(dut.contexts)):
        m.d.sync += announced.eq(1)
    with m.If(moves(dut.commands)):
        m.d.sync += announced.eq(0)
    m.d.comb += Assert(dut.contexts.valid == (came.complete & ~announced))
    m.d.comb += Assert(dut.commands.valid == (came.complete & announced))
    m.d.comb += Assert(~announced | came.complete)
    m.d.comb += Assert(inside.state("CONTEXT") == dut.contexts.valid)
    m.d.comb += Assert(inside.state("COMMAND") == dut.commands.valid)
    with m.If(dut.contexts.valid):
        m.d.comb += Assert(context.star_every == head.star_every)
        m.d.comb += Assert(context.ordered == head.ordered)
        m.d.comb += Assert(context.side == head.command.side)
        m.d.comb += Assert(context.probe == came.is_a(Opcode.PROBE))
    with m.If(dut.commands.valid):
        m.d.comb += Assert(dut.scan == head.scan)
        for name in command.shape().members:
            same = Value.cast(command[name]) == Value.cast(head.command[name])
            shared = ~came.is_a(Opcode.PROBE) if name == "count" else C(0)
            m.d.comb += Assert(shared | same)


def probes_pass_as_they_are(m, dut, came):
    word, keys = dut.words.payload, dut.probes.payload
    m.d.comb += Assert(dut.probes.valid == (came.in_probes & dut.words.valid))
    with m.If(came.in_probes):
        m.d.comb += Assert(moves(dut.probes) == moves(dut.words))
    with m.If(dut.probes.valid):
        m.d.comb += Assert((keys.count == word.count) & (keys.end == word.end))
        for lane in range(dut.params.lanes):
            m.d.comb += Assert(keys.data[lane] == word.data[lane].key)


class Turns:
    """By stream, whose turn a word's first tuple is: they count from CREATE on, modulo cores."""

    def __init__(self, m, dut, came):
        self.dut, self.came, self.cores = dut, came, dut.params.cores
        self.bits = max(1, (self.cores - 1).bit_length())
        self.next = [Signal(self.bits, name=f"next_{side}") for side in "lr"]
        self.side = came.command.side
        self.first = Mux(self.side, self.next[1], self.next[0])
        created = moves(dut.commands) & came.is_a(Opcode.CREATE)
        for side, turn in enumerate(self.next):
            with m.If((self.side == side) & came.in_tuples & moves(dut.words)):
                m.d.sync += turn.eq((turn + dut.words.payload.count) % self.cores)
            with m.If((self.side == side) & created):
                m.d.sync += turn.eq(0)

    def before(self, ahead):
        """Tuples of others before the core's next one, behind `ahead` tuples of the word."""
        if self.cores == 1:
            return C(0)
        return (self.dut.number - self.first - ahead)[: self.bits]

    def own(self, lane):
        """Whether the core stores that tuple of the word on offer."""
        word = self.dut.words.payload
        offered = self.came.in_tuples & self.dut.words.valid & (lane < word.count)
        return offered & (self.before(lane) == 0)

    def are_counted(self, m, inside, passed):
        for side, turn in enumerate(self.next):
            ahead = Mux(self.side == side, passed, 0)
            m.d.comb += Assert(inside.signal(f"turn_{'lr'[side]}") == (turn + ahead) % self.cores)


def is_share(own, count, before, cores):
    """Of `count` tuples `own` are a core's, if `before` others come ahead of its first."""
    return (own * cores + before >= count) & ((own == 0) | ((own - 1) * cores + before < count))


def a_command_says_how_many_tuples_come(m, dut, came, turns, fill, passed):
    """INSERT has as many as its head says, and its core's share of them goes on."""
    word, out, cores = dut.words.payload, dut.tuples.payload, dut.params.cores
    left, due = Signal(range(MOST + 1)), Signal(range(MOST + 1))
    with m.If(moves(dut.commands)):
        m.d.sync += [left.eq(came.command.count), due.eq(dut.commands.payload.count)]
    with m.If(came.in_tuples & moves(dut.words)):
        m.d.sync += left.eq(left - word.count)
    with m.If(moves(dut.tuples)):
        m.d.sync += due.eq(due - out.count)
    with m.If(came.in_tuples & dut.words.valid):
        m.d.comb += Assume(Mux(word.end, left == 0, word.count <= left))
    with m.If(dut.commands.valid & came.is_a(Opcode.CREATE)):
        room = dut.commands.payload.count
        m.d.comb += Assert(is_share(room, came.command.count, dut.number, cores))
    with m.If(came.in_tuples):
        own = (due - fill)[: len(due)]
        m.d.comb += Assert(fill <= due)
        m.d.comb += Assert(is_share(own, left - passed, turns.before(passed), cores))
    with m.If(dut.tuples.valid & out.end):
        m.d.comb += Assert(due == 0)


def own_tuples_pass_in_order(m, rules, dut, came, turns, inside):
    """They are numbered; any one of them is followed from its word to its place."""
    word, out, lanes = dut.words.payload, dut.tuples.payload, range(dut.params.lanes)
    fill, passed = inside.signal("fill"), inside.signal("passed")
    kept = inside.signal("kept", out.data.shape())
    own = [turns.own(lane) for lane in lanes]
    first, went = Signal(4), Signal(4)  # the number of the next that comes, that goes
    with m.If(moves(dut.words)):
        m.d.sync += first.eq(first + sum(own))
    with m.If(moves(dut.tuples)):
        m.d.sync += went.eq(went + out.count)
    followed = rules.constant(4)
    value = Signal(tuple_layout(dut.params).size)
    expected = value
    for lane in lanes:
        bits = Value.cast(word.data[lane])
        here = own[lane] & ((first + sum(own[:lane]))[:4] == followed)
        with m.If(moves(dut.words) & here):
            m.d.sync += value.eq(bits)
        expected = Mux(here & (lane < passed), bits, expected)
    behind = sum(own[lane] & (lane < passed) for lane in lanes)
    m.d.comb += Assert((first + behind - went - fill)[:4] == 0)
    for lane in lanes:
        about = (went + lane)[:4] == followed
        m.d.comb += Assert(~(about & (lane < fill)) | (Value.cast(kept[lane]) == expected))
        offered = about & dut.tuples.valid & (lane < out.count)
        m.d.comb += Assert(~offered | (Value.cast(out.data[lane]) == expected))
    with m.If(dut.tuples.valid & out.end):  # all that came in front of it has gone
        m.d.comb += Assert(first == went)


def a_frame_stays_a_frame(m, rules, dut, came, inside):
    """Of full words, but for the last, and with one end."""
    word, out, lanes = dut.words.payload, dut.tuples.payload, dut.params.lanes
    fill, passed = inside.signal("fill"), inside.signal("passed")
    at_end = came.in_tuples & dut.words.valid & word.end
    m.d.comb += Assert((at_end & dut.words.ready) == (moves(dut.tuples) & out.end))
    with m.If(dut.tuples.valid):
        m.d.comb += Assert(came.in_tuples & is_sound(out))
        m.d.comb += Assert((out.count == lanes) | at_end)
    m.d.comb += Assert((fill == 0) | came.in_tuples)
    m.d.comb += Assert(fill <= lanes)
    waiting = came.in_tuples & dut.words.valid & rules.waiting["i0"]
    m.d.comb += Assert((passed == 0) | (waiting & (passed < word.count)))


@pytest.mark.parametrize("cores, number, lanes", [(1, 0, 2), (2, 1, 4), (4, 2, 2)])
def test_a_core_input_passes_on_what_is_for_its_core_once(cores, number, lanes, tmp_path):
    dut = CoreInput(replace(SMALL, cores=cores, lanes=lanes, partitions=2), number)
    inside = Inside(dut)
    fill, passed = inside.signal("fill"), inside.signal("passed")

    def claims(m, rules):
        came = Broadcast(m, dut)
        turns = Turns(m, dut, came)
        came.is_taken_in(m, inside)
        each_head_is_one_context_and_one_command(m, dut, came, inside)
        probes_pass_as_they_are(m, dut, came)
        turns.are_counted(m, inside, passed)
        a_command_says_how_many_tuples_come(m, dut, came, turns, fill, passed)
        own_tuples_pass_in_order(m, rules, dut, came, turns, inside)
        a_frame_stays_a_frame(m, rules, dut, came, inside)

    inputs, outputs = streams_of(dut)
    prove(Harness(dut, inputs, outputs, claims, police=False), tmp_path, steps=2)
