"""A nested-loop core compares all keys with all tuples, and forgets and invents none: a proof."""

from dataclasses import replace

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl import nested_loop_core
from hw.rtl.join_core import command_layout
from hw.rtl.layouts import token
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.spec.commands import Opcode, Status
from tests.formal.proofs import Inside, prove
from tests.formal.test_engine_rules import is_sound
from tests.formal.test_probing_rules import moves
from tests.formal.test_stream_rules import Harness, streams_of
from tests.formal.test_tree_rules import SMALL

pytestmark = pytest.mark.formal

BANDS = 2
PARAMS = replace(SMALL, bands=BANDS)
#: Short keys and rids: what is done with them is the same, the proof is smaller.
KEY, RID, BOUND = signed(3), unsigned(1), signed(4)
TUPLE = data.StructLayout({"key": KEY, "rid": RID})
BOUNDS = data.StructLayout({"lo": BOUND, "hi": BOUND})


class AnyBounds(wiring.Component):
    """In the place of a boundary generator: for each key as many bounds, but any, at any time."""

    def __init__(self, params):
        super().__init__(
            {
                "bands": In(command_layout(params)["bands"].shape),
                "band_count": In(range(params.bands + 1)),
                "explicit": In(1),
                "probes": In(stream.Signature(token(KEY))),
                "bounds": Out(stream.Signature(token(BOUNDS))),
            }
        )
        self.due = Signal(range(params.bands + 1))
        self.second = Signal()  # the second key of an explicit interval comes next

    def elaborate(self, platform):
        m = Module()
        out = self.bounds
        m.d.comb += self.probes.ready.eq((self.due == 0) & AnySeq(1))
        with m.If(moves(self.probes)):
            m.d.sync += self.second.eq(self.explicit & ~self.second)
            with m.If(~self.explicit | self.second):
                m.d.sync += self.due.eq(Mux(self.explicit, 1, self.band_count))
        with m.If(moves(out)):
            m.d.sync += self.due.eq(self.due - 1)
        with m.If(~out.valid | out.ready):
            m.d.sync += out.valid.eq(AnySeq(1) & (self.due > moves(out)))
            m.d.sync += Value.cast(out.payload).eq(AnySeq(len(Value.cast(out.payload))))
        return m


class Subwindow:
    """What the commands have made of one stream's subwindow."""

    def __init__(self, side):
        rows = range(PARAMS.subwindow + 1)
        self.used = Signal(name=f"stored_{side}")
        self.number = Signal(32, name=f"stored_number_{side}")
        self.rows = Signal(rows, name=f"stored_rows_{side}")
        self.capacity = Signal(rows, name=f"stored_capacity_{side}")

    def obey(self, m, command, refused):
        found = self.used & (self.number == command.subwindow)
        fits = ~self.used & (command.count <= PARAMS.subwindow)
        m.d.sync += refused.eq(1)
        with m.If((command.opcode == Opcode.CREATE) & fits):
            m.d.sync += [self.used.eq(1), self.number.eq(command.subwindow), self.rows.eq(0)]
            m.d.sync += [self.capacity.eq(command.count), refused.eq(0)]
        with m.If((command.opcode == Opcode.INSERT) & found):
            m.d.sync += refused.eq(self.rows + command.count > self.capacity)
        with m.If((command.opcode == Opcode.PROBE) & found):
            m.d.sync += refused.eq(0)
        with m.If((command.opcode == Opcode.EXPIRE) & found):
            m.d.sync += [self.used.eq(0), refused.eq(0)]


class Obedience:
    """What a core's commands ask of it; they are judged in the cycle behind that of their coming.

    fresh, storing, asking, closing   what it is busy with; none of them: the reply
    """

    def __init__(self, m, dut):
        self.dut, self.command = dut, Signal.like(dut.commands.payload)
        self.scan = Signal.like(dut.scan)
        self.subwindows = [Subwindow(side) for side in "lr"]
        self.refused, self.busy, self.fresh = Signal(), Signal(), Signal()
        self.storing, self.asking, self.closing = Signal(), Signal(), Signal()
        self.left = Signal(range(PARAMS.subwindow + 1))  # tuples that are still to come
        m.d.sync += self.fresh.eq(moves(dut.commands))
        with m.If(moves(dut.commands)):
            m.d.sync += [self.command.eq(dut.commands.payload), self.scan.eq(dut.scan)]
            m.d.sync += self.busy.eq(1)
        with m.If(moves(dut.replies)):
            m.d.sync += self.busy.eq(0)
        with m.If(self.fresh):
            m.d.sync += self.storing.eq(self.command.opcode == Opcode.INSERT)
            m.d.sync += self.asking.eq(self.command.opcode == Opcode.PROBE)
            m.d.sync += self.left.eq(self.command.count)
        with m.If(moves(dut.probes) & dut.probes.payload.end):
            m.d.sync += [self.asking.eq(0), self.closing.eq(1)]
        with m.If(moves(dut.records) & dut.records.payload.end):
            m.d.sync += self.closing.eq(0)
        self._store(m)
        self.replying = self.busy & ~(self.fresh | self.storing | self.asking | self.closing)

    def _store(self, m):
        count, end = self.dut.tuples.payload.count, self.dut.tuples.payload.end
        with m.If(moves(self.dut.tuples)):
            m.d.sync += [self.left.eq(self.left - count), self.storing.eq(~end)]
        for number, one in enumerate(self.subwindows):
            with m.If(self.fresh & (self.command.side == number)):
                one.obey(m, self.command, self.refused)
            with m.If(moves(self.dut.tuples) & ~self.refused & (self.command.side == number)):
                m.d.sync += one.rows.eq(one.rows + count)

    def has(self, name):
        """That of the command's subwindow."""
        left, right = (getattr(one, name) for one in self.subwindows)
        return Mux(self.command.side, right, left)

    def has_bands(self, command):
        needs = (command.opcode == Opcode.PROBE) & ~command.explicit
        return ~needs | ((command.band_count != 0) & (command.band_count <= BANDS))


def frames_are_whole(m, dut, model):
    """What is assumed of them: an INSERT has as many tuples as it says."""
    word = dut.tuples.payload
    m.d.comb += Assume(~dut.commands.valid | model.has_bands(dut.commands.payload))
    for port in (dut.tuples, dut.probes):
        m.d.comb += Assume(~port.valid | is_sound(port.payload))
    with m.If(model.storing & ~model.refused & dut.tuples.valid):
        m.d.comb += Assume(Mux(word.end, model.left == 0, word.count <= model.left))
    with m.If(model.asking & dut.probes.valid & dut.probes.payload.end):
        m.d.comb += Assume(~dut.boundary.second)


def each_command_has_one_reply(m, dut, model):
    """Behind its frames, and it says what became of the command."""
    command, reply = model.command, dut.replies.payload
    m.d.comb += Assert(dut.commands.ready == ~model.busy)
    m.d.comb += Assert(dut.replies.valid == model.replying)
    m.d.comb += Assert(~dut.tuples.ready | model.storing)
    m.d.comb += Assert(~dut.probes.ready | model.asking)
    full = model.has("used") & (model.has("rows") == model.has("capacity"))
    empty = ~model.has("used") | (model.has("rows") == 0)
    status = Mux(full, Status.NEWEST_FULL, 0) | Mux(empty, Status.OLDEST_EMPTY, 0)
    status = status | Mux(model.refused, Status.REFUSED, 0)
    with m.If(dut.replies.valid):
        for name in ("opcode", "side", "subwindow"):
            m.d.comb += Assert(reply[name] == command[name])
        m.d.comb += Assert(reply.status == status)
        m.d.comb += Assert(reply.rows == Mux(model.refused, 0, model.has("rows")))


class Place:
    """Any one place of a stream, and the key that came there since its subwindow began."""

    def __init__(self, inside):
        self.inside = inside
        self.at, self.side = Signal(range(PARAMS.subwindow)), Signal()
        self.key = Signal(KEY)
        self.row = inside.row("memory", Cat(self.at[1:], self.side))
        self.lane = inside.signal("lane")  # of the word whose tuples are stored

    def follow(self, m, rules, dut, model):
        word, value = dut.tuples.payload, Signal(KEY)
        m.d.comb += self.at.eq(rules.constant(len(self.at)))
        m.d.comb += [self.side.eq(rules.constant(1)), self.key.eq(value)]
        self.mine = model.command.side == self.side
        self.rows = Mux(self.side, *(one.rows for one in reversed(model.subwindows)))
        to_it = model.storing & dut.tuples.valid & self.mine & ~model.refused
        for lane in range(PARAMS.lanes):
            here = to_it & (lane < word.count) & (self.rows + lane == self.at)
            with m.If(here & moves(dut.tuples)):
                m.d.sync += value.eq(word.data[lane].key)
            with m.If(here & (lane < self.lane)):
                m.d.comb += self.key.eq(word.data[lane].key)
        # What was stored there stays there.
        stored = self.rows + Mux(to_it, self.lane, 0)
        there = dut.read.data.shape()(self.row)[self.at[0]].key
        m.d.comb += Assert((self.at >= stored) | (there == self.key))
        waiting = model.storing & rules.waiting["i1"] & (self.lane < word.count)
        m.d.comb += Assert((self.lane == 0) | waiting)


class Asking:
    """A probe: each of its keys is asked about in order, and has as many records as are due."""

    def __init__(self, m, rules, dut, model, place, inside):
        self.dut, self.model, self.place, self.inside = dut, model, place, inside
        self.lane = Signal(range(PARAMS.lanes + 1))  # of the word whose keys are asked about
        self.bounds = [Signal(BOUNDS, name=f"bounds_{n}") for n in range(BANDS)]
        self.known = Signal(range(BANDS + 1))  # of them have come
        self.bands = Mux(model.command.explicit, 1, model.command.band_count)
        self.due, self.at = Signal.like(dut.scan), Signal.like(dut.scan)
        self.ask(m)
        self.learn(m)
        self.answer(m)
        self.registers(m, rules)

    def ask(self, m):
        word, asked = self.dut.probes.payload, self.dut.boundary.probes
        whole = ~self.model.command.explicit | self.dut.boundary.second
        with m.If(moves(asked)):
            m.d.comb += Assert(self.model.asking & self.dut.probes.valid & (self.due == 0))
            for lane in range(PARAMS.lanes):
                right = (asked.payload.data == word.data[lane]) & (lane < word.count)
                m.d.comb += Assert((self.lane != lane) | right)
            m.d.sync += self.lane.eq(self.lane + 1)
            m.d.sync += [self.known.eq(0), self.due.eq(Mux(whole, self.model.scan, 0))]
        with m.If(moves(self.dut.probes)):
            m.d.comb += Assert(self.lane + moves(asked) == word.count)
            m.d.comb += Assert(self.due == 0)
            m.d.sync += self.lane.eq(0)

    def learn(self, m):
        with m.If(moves(self.dut.boundary.bounds)):
            m.d.sync += self.known.eq(self.known + 1)
            m.d.sync += Array(self.bounds)[self.known].eq(self.dut.boundary.bounds.payload.data)

    def answer(self, m):
        """Records are numbered by position; each tells whether the tuple there is wanted."""
        records, model, place = self.dut.records, self.model, self.place
        record = records.payload.data[0]
        hit = record.end != self.at
        with m.If(records.valid & ~records.payload.end):
            m.d.comb += Assert((records.payload.count == 1) & (self.due != 0))
            m.d.comb += Assert(self.known == self.bands)
            m.d.comb += Assert(record.start == self.at)
            m.d.comb += Assert(~hit | (record.end == (self.at + 1)[:32]))
            m.d.comb += Assert(~hit | ((self.at < model.has("rows")) & ~model.refused))
            with m.If(place.mine & (self.at == place.at) & (place.at < place.rows)):
                m.d.comb += Assert(hit == (self.wants(place.key) & ~model.refused))
            with m.If(records.ready):
                m.d.sync += [self.due.eq(self.due - 1)]
                m.d.sync += self.at.eq(Mux(self.due == 1, 0, self.at + 1))
        with m.If(records.valid & records.payload.end):
            m.d.comb += Assert(model.closing & (self.due == 0) & (records.payload.count == 0))

    def wants(self, key):
        inside_one = [(bound.lo <= key) & (key < bound.hi) & (n < self.bands)
                      for n, bound in enumerate(self.bounds)]
        return Cat(inside_one).any() ^ self.model.command.negated

    def registers(self, m, rules):
        """What the registers have to do with it."""
        inside, boundary, place = self.inside, self.dut.boundary, self.place
        band, position, read, reading = (
            inside.signal(name) for name in ("band", "position", "read", "reading")
        )
        lane, half = inside.signal("lane", which=1), inside.signal("half")
        asks, scans = inside.state("BOUNDS"), inside.state("SCAN")
        waiting = self.model.asking & rules.waiting["i2"] & (lane < self.dut.probes.payload.count)
        m.d.comb += Assert((lane == 0) | waiting)
        m.d.comb += Assert(self.lane == lane)
        m.d.comb += Assert(half == boundary.second)
        m.d.comb += Assert(~half | (inside.state("NEXT PROBE") & self.model.command.explicit))
        m.d.comb += Assert(boundary.due == Mux(asks, self.bands - band, 0))
        m.d.comb += Assert(~boundary.bounds.valid | (boundary.due != 0))
        m.d.comb += Assert(Mux(asks, (self.known == band) & (band < self.bands), band == 0))
        m.d.comb += Assert(~scans | (self.known == self.bands))
        for n, bound in enumerate(self.bounds):
            there = inside.signal(f"band_{n}") == Value.cast(bound)
            m.d.comb += Assert(~(asks | scans) | (n >= self.known) | there)
        m.d.comb += Assert(self.due == Mux(asks | scans, self.model.scan - self.at, 0)[:32])
        m.d.comb += Assert((self.at == 0) | reading)
        m.d.comb += Assert(Mux(reading, position == (read + 1)[:32], position == 0))
        m.d.comb += Assert(~reading | (scans & (read == self.at) & (self.at < self.model.scan)))
        with m.If(reading & (read == place.at) & place.mine & (place.at < place.rows)):
            m.d.comb += Assert(self.dut.read.data[place.at[0]].key == place.key)


def states_are_what_is_asked(m, dut, model, inside):
    flags = Cat(model.fresh, model.storing, model.asking, model.closing)
    m.d.comb += Assert((flags & (flags - 1)) == 0)
    m.d.comb += Assert(model.busy | (flags == 0))
    searching = Cat(inside.state(name) for name in ("NEXT PROBE", "BOUNDS", "SCAN")).any()
    for name, phase in (("TAKE", ~model.busy), ("OBEY", model.fresh), ("STORE", model.storing),
                        ("END", model.closing), ("REPLY", model.replying)):
        m.d.comb += Assert(inside.state(name) == phase)
    m.d.comb += Assert(searching == model.asking)
    m.d.comb += Assert(~model.storing | (model.command.opcode == Opcode.INSERT))
    m.d.comb += Assert(~model.asking | (model.command.opcode == Opcode.PROBE))
    with m.If(model.busy):
        m.d.comb += Assert(Value.cast(dut.command) == Value.cast(model.command))
        m.d.comb += Assert((dut.comparisons == model.scan) & model.has_bands(model.command))
        m.d.comb += Assert(model.fresh | (dut.refused == model.refused))


def tables_are_as_told(m, dut, model, store_lane):
    for number, one in enumerate(model.subwindows):
        stores = model.storing & ~model.refused & (model.command.side == number)
        m.d.comb += Assert(dut.used[number] == one.used)
        m.d.comb += Assert(dut.numbers[number] == one.number)
        m.d.comb += Assert(dut.capacity[number] == one.capacity)
        m.d.comb += Assert(dut.rows[number] == one.rows + Mux(stores, store_lane, 0))
        m.d.comb += Assert((one.rows <= one.capacity) & (one.capacity <= PARAMS.subwindow))
        m.d.comb += Assert(~stores | (model.left + one.rows <= one.capacity))
    found = model.has("used") & (model.has("number") == model.command.subwindow)
    m.d.comb += Assert(~model.asking | (found == ~model.refused))


def test_a_nested_loop_core_compares_each_key_once_with_each_stored_tuple(tmp_path, monkeypatch):
    """And gives one reply to each command, and forgets no tuple until it is told to."""
    for name, shape in {
        "key_shape": lambda params: KEY,
        "tuple_layout": lambda params: TUPLE,
        "word_layout": lambda params: data.ArrayLayout(TUPLE, params.lanes),
        "bounds_layout": lambda params: BOUNDS,
        "BoundaryGenerator": AnyBounds,
    }.items():
        monkeypatch.setattr(nested_loop_core, name, shape)
    dut = NestedLoopCore(PARAMS)
    inside = Inside(dut)
    place = Place(inside)

    def claims(m, rules):
        m.d.comb += dut.scan.eq(AnySeq(len(dut.scan)))  # another one for each command
        model = Obedience(m, dut)
        frames_are_whole(m, dut, model)
        each_command_has_one_reply(m, dut, model)
        place.follow(m, rules, dut, model)
        Asking(m, rules, dut, model, place, inside)
        states_are_what_is_asked(m, dut, model, inside)
        tables_are_as_told(m, dut, model, place.lane)

    inputs, outputs = streams_of(dut)
    prove(Harness(dut, inputs, outputs, claims, police=False), tmp_path, steps=2)
