"""The join core as SplitJoin printed it: a nested loop, one comparison a cycle."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import BoundaryGenerator, bounds_layout
from hw.rtl.join_core import command_layout, reply_layout
from hw.rtl.layouts import (
    check_geometry,
    key_shape,
    main_words,
    record_layout,
    row_count,
    tuple_layout,
    wide_token,
    word_layout,
)
from hw.rtl.slot_table import WIRE_BITS
from hw.spec import JoinParams
from hw.spec.commands import Opcode, Status

__all__ = ["NestedLoopCore"]


class NestedLoopCore(wiring.Component):
    """Keeps one subwindow of each stream in order of arrival and compares with all of it.

    Streams and commands are a JoinCore's, but: CREATE empties the stream's subwindow and takes
    its number, INSERT appends, and PROBE answers every comparison with a record: the position
    where it holds, an empty one where not. For each probe there are ``scan`` comparisons, also
    where fewer tuples are stored, so that all cores of an engine send their stars in step.

    One comparison a cycle (SplitJoin, Algorithm 3).
    """

    def __init__(self, params: JoinParams):
        check_geometry(params)
        self.params = params
        lanes = params.lanes
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout(params))),
                "scan": In(WIRE_BITS),
                "tuples": In(stream.Signature(wide_token(tuple_layout(params), lanes))),
                "probes": In(stream.Signature(wide_token(key_shape(params), lanes))),
                "records": Out(stream.Signature(wide_token(record_layout(), lanes))),
                "replies": Out(stream.Signature(reply_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self.command = command = Signal(self.commands.payload.shape())
        self.comparisons = Signal(WIRE_BITS)
        self.rows = Array(Signal(row_count(self.params), name=f"rows_{s}") for s in "lr")
        self.capacity = Array(Signal(row_count(self.params), name=f"capacity_{s}") for s in "lr")
        self.numbers = Array(Signal(WIRE_BITS, name=f"number_{s}") for s in "lr")
        self.used = Signal(2)
        self.refused = Signal()
        self.found = Signal()
        m.d.comb += self.found.eq(
            self.used.bit_select(command.side, 1)
            & (self.numbers[command.side] == command.subwindow)
        )
        self._build_memory(m)
        self._build_bounds(m)
        with m.FSM():
            self._obey(m)
            self._store(m)
            self._probe(m)
            self._reply(m)
        return m

    def _build_memory(self, m):
        """Words of both streams' tuples; the stream is the address's top bit."""
        m.submodules.memory = memory = Memory(
            shape=word_layout(self.params), depth=2 * main_words(self.params), init=[]
        )
        lanes = self.params.lanes
        self.write = memory.write_port(granularity=1)
        self.read = memory.read_port()
        self.lane_bits = (lanes - 1).bit_length()

    def _address(self, position):
        """The word of a position in the command's stream."""
        words = (main_words(self.params) - 1).bit_length()
        return Cat(position[self.lane_bits :][:words], self.command.side)

    def _build_bounds(self, m):
        m.submodules.boundary = self.boundary = boundary = BoundaryGenerator(self.params)
        for name in ("bands", "band_count", "explicit"):
            m.d.comb += getattr(boundary, name).eq(self.command[name])

    def _obey(self, m):
        command = self.command
        side = command.side
        with m.State("TAKE"):
            m.d.comb += self.commands.ready.eq(1)
            m.d.sync += command.eq(self.commands.payload)
            m.d.sync += self.comparisons.eq(self.scan)
            with m.If(self.commands.valid):
                m.next = "OBEY"
        with m.State("OBEY"):
            m.d.sync += self.refused.eq(~self.found)
            m.next = "REPLY"
            with m.Switch(command.opcode):
                with m.Case(Opcode.CREATE):
                    good = ~self.used.bit_select(side, 1) & (command.count <= self.params.subwindow)
                    m.d.sync += self.refused.eq(~good)
                    with m.If(good):
                        m.d.sync += self.used.bit_select(side, 1).eq(1)
                        m.d.sync += self.numbers[side].eq(command.subwindow)
                        m.d.sync += self.rows[side].eq(0)
                        m.d.sync += self.capacity[side].eq(command.count)
                with m.Case(Opcode.INSERT):
                    fits = command.count <= self.capacity[side] - self.rows[side]
                    m.d.sync += self.refused.eq(~(self.found & fits))
                    m.next = "STORE"
                with m.Case(Opcode.PROBE):
                    m.next = "NEXT PROBE"
                with m.Case(Opcode.EXPIRE), m.If(self.found):
                    m.d.sync += self.used.bit_select(side, 1).eq(0)
                with m.Default():
                    m.d.sync += self.refused.eq(1)

    def _store(self, m):
        """Append the tuples one a cycle; those of a refused command are dropped."""
        word = self.tuples.payload
        lane = Signal(range(max(2, self.params.lanes)))
        rows = self.rows[self.command.side]
        for n in range(self.params.lanes):
            m.d.comb += self.write.data[n].eq(word.data[lane])
        m.d.comb += self.write.addr.eq(self._address(rows))
        with m.State("STORE"):
            last = word.end | (lane + 1 == word.count)
            m.d.comb += self.tuples.ready.eq(last)
            with m.If(self.tuples.valid):
                m.d.sync += lane.eq(Mux(last, 0, lane + 1))
                with m.If(word.end):
                    m.next = "REPLY"
                with m.Elif(~self.refused):
                    m.d.comb += self.write.en.eq(1 << rows[: self.lane_bits])
                    m.d.sync += rows.eq(rows + 1)

    def _probe(self, m):
        """For each probe, its intervals and then the scan of the other stream's tuples."""
        bands = self.params.bands
        word, boundary = self.probes.payload, self.boundary
        lane = Signal(range(max(2, self.params.lanes)))
        wanted = Array(Signal(bounds_layout(self.params), name=f"band_{n}") for n in range(bands))
        band = Signal(range(bands))
        half = Signal()  # of an explicit interval, the second key is to come
        with m.State("NEXT PROBE"):
            last = word.end | (lane + 1 == word.count)
            takes = ~word.end & boundary.probes.ready
            m.d.comb += boundary.probes.payload.data.eq(word.data[lane])
            m.d.comb += boundary.probes.valid.eq(self.probes.valid & ~word.end)
            m.d.comb += self.probes.ready.eq(last & (word.end | boundary.probes.ready))
            with m.If(self.probes.valid & word.end):
                m.next = "END"
            with m.Elif(self.probes.valid & takes):
                m.d.sync += lane.eq(Mux(last, 0, lane + 1))
                m.d.sync += half.eq(self.command.explicit & ~half)
                with m.If(~self.command.explicit | half):
                    m.next = "BOUNDS"
        with m.State("BOUNDS"):
            m.d.comb += boundary.bounds.ready.eq(1)
            with m.If(boundary.bounds.valid):
                m.d.sync += wanted[band].eq(boundary.bounds.payload.data)
                m.d.sync += band.eq(band + 1)
                with m.If(self.command.explicit | (band == self.command.band_count - 1)):
                    m.d.sync += band.eq(0)
                    m.next = "SCAN"
        self._scan(m, wanted)

    def _scan(self, m, wanted):
        position = Signal(WIRE_BITS)  # compared next
        read = Signal(WIRE_BITS)  # what the memory gives now
        reading = Signal()
        out = self.records.payload
        stored = self.rows[self.command.side]
        key = Signal(key_shape(self.params))
        m.d.comb += key.eq(self.read.data[read[: self.lane_bits]].key)
        hit = Signal()
        inside = [
            (wanted[n].lo <= key) & (key < wanted[n].hi) & (n < self._band_count())
            for n in range(self.params.bands)
        ]
        m.d.comb += hit.eq(
            (Cat(*inside).any() ^ self.command.negated) & (read < stored) & self.found
        )
        m.d.comb += self.read.addr.eq(self._address(position))
        m.d.comb += [out.count.eq(1), out.data[0].start.eq(read), out.data[0].end.eq(read + hit)]
        with m.State("SCAN"):
            # The read port keeps its word while the record is not taken.
            go = ~reading | self.records.ready
            m.d.comb += self.read.en.eq(go)
            m.d.comb += self.records.valid.eq(reading)
            with m.If(go):
                m.d.sync += read.eq(position)
                m.d.sync += reading.eq(position != self.comparisons)
                m.d.sync += position.eq(position + 1)
                with m.If(position == self.comparisons):
                    m.d.sync += position.eq(0)
                    m.next = "NEXT PROBE"
        with m.State("END"):
            m.d.comb += self.records.valid.eq(1)
            m.d.comb += [out.count.eq(0), out.end.eq(1)]
            with m.If(self.records.ready):
                m.next = "REPLY"

    def _band_count(self):
        return Mux(self.command.explicit, 1, self.command.band_count)

    def _reply(self, m):
        side, reply = self.command.side, self.replies.payload
        used = self.used.bit_select(side, 1)
        for name in ("opcode", "side", "subwindow"):
            m.d.comb += reply[name].eq(self.command[name])
        full = used & (self.rows[side] == self.capacity[side])
        empty = ~used | (self.rows[side] == 0)
        m.d.comb += reply.status.eq(Cat(full, empty, self.refused))
        m.d.comb += reply.rows.eq(Mux(self.refused, 0, self.rows[side]))
        assert [Status.NEWEST_FULL, Status.OLDEST_EMPTY, Status.REFUSED] == [1, 2, 4]
        with m.State("REPLY"):
            m.d.comb += self.replies.valid.eq(1)
            with m.If(self.replies.ready):
                m.next = "TAKE"
