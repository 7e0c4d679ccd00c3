"""The join core: insertion engine and probing engine over one memory, behind commands."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import register_layout
from hw.rtl.insertion_engine import InsertionEngine
from hw.rtl.layouts import (
    check_geometry,
    index_entries,
    key_shape,
    main_words,
    record_layout,
    tuple_layout,
    wide_token,
    word_layout,
)
from hw.rtl.memory import BlockMemory, ReadPort, WritePort
from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.probing_engine import ProbingEngine
from hw.rtl.searcher import Searcher
from hw.rtl.slot_table import WIRE_BITS, SlotTable
from hw.spec import JoinParams
from hw.spec.commands import Opcode, Status

__all__ = [
    "JoinCore",
    "command_layout",
    "reply_layout",
    "statistics_layout",
    "core_address_bits",
]


def command_layout(params: JoinParams):
    """A command of hw.spec.commands, its payload apart: that follows as a frame.

    dense, chunk_words  how the probing engine works (see there)
    """
    return data.StructLayout(
        {
            "opcode": 8, "side": 1, "subwindow": WIRE_BITS, "count": WIRE_BITS,
            "explicit": 1, "negated": 1, "dense": 1,
            "chunk_words": range(ProbingEngine.CHUNK + 1),
            "band_count": range(params.bands + 1),
            "bands": data.ArrayLayout(register_layout(), params.bands),
        }
    )


def reply_layout():
    """The answer to a command: its first fields, `status`, and the tuples now in the subwindow."""
    return data.StructLayout(
        {"opcode": 8, "side": 1, "subwindow": WIRE_BITS, "status": 8, "rows": WIRE_BITS}
    )


def statistics_layout():
    """What a core has done since its reset.

    cycles   busy with a command
    stalled  of these, in which a memory port owed a word or took none
    tuples   that came to be inserted
    records  that answered probes
    """
    return data.StructLayout({name: 48 for name in ("cycles", "stalled", "tuples", "records")})


def core_address_bits(params: JoinParams, slots):
    """Address bits of a core's memory: each slot's main array and one spare."""
    if slots < 1 or (slots + 1) & slots:
        raise ValueError(f"slots must be one less than a power of two, not {slots}")
    return (main_words(params) * (slots + 1) - 1).bit_length()


class JoinCore(wiring.Component):
    """Keeps up to ``slots`` subwindows of both streams; obeys one of ``commands`` after another.

    CREATE  begins a subwindow of `count` tuples at most
    INSERT  merges the frame ``tuples`` (`count` of them, ascending by key, at most
            `insert_buffer`) into it
    PROBE   answers the frame ``probes`` with the frame ``records``
    EXPIRE  ends it

    Each command ends with one of ``replies``. A refused command (no such subwindow, no slot, no
    room) changes nothing; its payload is taken and dropped, and a refused probe is answered by an
    empty frame. The status bits are about the command's stream, after the command: its newest
    subwindow is full; its oldest is empty, or it has none. Numbers of subwindows ascend.

    reads    read ports of one memory: the probing engine's, then the insertion engine's
    searches with `searches`: ports of who looks into words of it, instead of the probing engine's
    writes   its write port. The memory has `core_address_bits` and keeps what it holds over a
             reset, though the core forgets it

    The main arrays are double-buffered with one spare among all: an insertion writes the spare,
    and what it read becomes the spare. `queue_words` is the insertion engine's. If the core is
    `far`, it lies all over a chip: so does its probing engine, and what its state decides reaches
    commands and probes by a register.
    """

    #: Of a number of words that a port owes: each engine asks only for what it has room for.
    OWED_BITS = 10

    def __init__(self, params: JoinParams, *, slots=3, design="wide",
                 partitioner=PipelinedPartitioner, queue_words=32, searches=False, far=False):
        check_geometry(params)
        self.params = params
        self.slots = slots
        self.far = far
        self.address_bits = bits = core_address_bits(params, slots)
        word, lanes = word_layout(params), params.lanes
        # Readers ask only for what they have room for; but a splitter lets a tuple of the batch
        # wait for the one of the main array that it is compared with.
        self.batch = BlockMemory(
            word, max(2, params.insert_buffer // lanes), held=design == "narrow"
        )
        self.index = BlockMemory(key_shape(params), index_entries(params) * (slots + 1))
        self.insertion = InsertionEngine(
            params, bits, self.batch.address_bits, design, queue_words=queue_words
        )
        self.probing = ProbingEngine(params, bits, arrays=slots, partitioner=partitioner, far=far)
        self.taken = Signal()  # a command was, if it is taken late; an attribute for proofs
        ports = {}
        self.searchers = []
        if searches:
            ports["searches"] = self.probing.signature.members["searches"]
            reads = 1
        elif self.probing.by_word:
            self.searchers = [Searcher(params, bits) for _ in self.probing.searches]
            reads = 1 + len(self.searchers)
        else:
            reads = 1 + len(self.probing.words)
        super().__init__(
            {
                "commands": In(stream.Signature(command_layout(params))),
                "tuples": In(stream.Signature(wide_token(tuple_layout(params), lanes))),
                "probes": In(stream.Signature(wide_token(key_shape(params), lanes))),
                "records": Out(stream.Signature(wide_token(record_layout(), lanes))),
                "replies": Out(stream.Signature(reply_layout())),
                "statistics": Out(statistics_layout()),
                "reads": Out(ReadPort(word, bits)).array(reads),
                "writes": Out(WritePort(word, bits)).array(1),
                **ports,
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("batch", "index", "insertion", "probing"):
            m.submodules[name] = getattr(self, name)
        command = Signal(self.commands.payload.shape(), reset_less=True)
        table = SlotTable(m, self.params, self.slots)
        refused = Signal()
        turn = Signal(range(self.slots + 1))
        self._connect_memory(m, table)
        self._connect_insertion(m, command, table)
        self._connect_probing(m, command, table)
        with m.FSM() as fsm:
            self._find(m, command, table, refused, turn)
            self._obey(m, command, table, refused)
            self._insert(m, command, table)
            answered = self.records.valid & self.records.ready & self.records.payload.end
            with m.State("PROBE"), m.If(answered):
                m.next = "SURVEY"
            self._refuse(m)
            self._reply(m, command, table, refused, turn)
        if self.far:
            self._take_late(m, command, fsm.ongoing("TAKE"))
        self._gate_probes(m, fsm.ongoing("PROBE"))
        self._count(m, ~fsm.ongoing("TAKE"))
        return m

    def _find(self, m, command, table, refused, turn):
        """Take a command and look for its subwindow, one slot a cycle."""
        with m.State("TAKE"):
            m.d.comb += self.commands.ready.eq(1)
            if not self.far:
                m.d.sync += command.eq(self.commands.payload)
            m.d.sync += turn.eq(0)
            table.forget()
            with m.If(self.commands.valid):
                m.next = "FIND"
        with m.State("FIND"):
            table.look(turn, command)
            m.d.sync += turn.eq(turn + 1)
            with m.If(turn == self.slots):
                m.d.sync += turn.eq(0)
                m.next = "MEASURE"

    def _take_late(self, m, command, taking):
        """Take a command a cycle later, before a slot is compared with it: its bits lie all over a
        chip, and whether they are taken comes from a register.
        """
        offered = Signal.like(command)
        m.d.sync += [offered.eq(self.commands.payload), self.taken.eq(taking)]
        with m.If(self.taken):
            m.d.sync += command.eq(offered)

    def _obey(self, m, command, table, refused):
        """Do what takes no time; begin what does."""
        fits, good = Signal(), Signal()  # an insert's tuples; a new subwindow
        room = Signal(len(table.capacity), reset_less=True)
        batch = self.params.insert_buffer
        # Of a batch that is not too long these bits are all.
        count = command.count[: max(len(table.rows), batch.bit_length())]
        with m.State("MEASURE"):
            m.d.sync += room.eq(table.capacity - table.rows)
            m.next = "WEIGH"
        with m.State("WEIGH"):
            m.d.sync += fits.eq((count <= room) & (command.count <= batch))
            m.d.sync += good.eq(
                ~table.found & table.free & (command.count <= self.params.subwindow)
            )
            m.next = "OBEY"
        with m.State("OBEY"):
            m.d.sync += refused.eq(~table.found)
            m.next = "SURVEY"
            with m.Switch(command.opcode):
                with m.Case(Opcode.CREATE):
                    m.d.sync += refused.eq(~good)
                    with m.If(good):
                        table.create(command)
                with m.Case(Opcode.INSERT):
                    m.d.sync += refused.eq(~(table.found & fits))
                    m.next = "DROP TUPLES"
                    with m.If(table.found & fits):
                        m.next = "FILL"
                with m.Case(Opcode.PROBE):
                    m.next = "DROP PROBES"
                    with m.If(table.found):
                        m.next = "PROBE"
                with m.Case(Opcode.EXPIRE), m.If(table.found):
                    table.expire()
                with m.Default():
                    m.d.sync += refused.eq(1)

    def _insert(self, m, command, table):
        """Fill the batch memory, let the insertion engine merge, and swap with the spare."""
        address = Signal(self.batch.address_bits)
        merged = Signal.like(self.insertion.done.payload)
        writes = self.batch.write.writes
        # A cycle later, because the batch memory's blocks lie far apart. Nobody reads it so soon.
        filled = Signal()
        written = Signal.like(writes.payload, reset_less=True)
        m.d.sync += writes.valid.eq(filled)
        m.d.sync += written.address.eq(address)
        m.d.sync += written.word.eq(self.tuples.payload.data)
        m.d.comb += writes.payload.eq(written)
        with m.State("FILL"):
            m.d.comb += self.tuples.ready.eq(1)
            m.d.comb += filled.eq(self.tuples.valid & ~self.tuples.payload.end)
            with m.If(self.tuples.valid):
                m.d.sync += address.eq(address + 1)
                with m.If(self.tuples.payload.end):
                    m.d.sync += address.eq(0)
                    m.next = "MERGE"
        with m.State("MERGE"):
            with m.If(command.count == 0):
                m.next = "SURVEY"
            with m.Else():
                m.d.comb += self.insertion.commands.valid.eq(1)
                with m.If(self.insertion.commands.ready):
                    m.next = "WAIT"
        with m.State("WAIT"):
            m.d.comb += self.insertion.done.ready.eq(1)
            m.d.sync += merged.eq(self.insertion.done.payload)
            with m.If(self.insertion.done.valid):
                m.next = "SWAP"
        with m.State("SWAP"):
            table.inserted(merged)
            m.next = "SURVEY"

    def _refuse(self, m):
        """Drop the payload of a refused command; a probe is answered by an empty frame."""
        with m.State("DROP TUPLES"):
            m.d.comb += self.tuples.ready.eq(1)
            with m.If(self.tuples.valid & self.tuples.payload.end):
                m.next = "SURVEY"
        with m.State("DROP PROBES"):
            if self.far:
                # The probing engine answers what is left, the end, by the end: nothing chooses
                # between its records and others.
                m.d.comb += self.probes.ready.eq(~self.probes.payload.end)
                with m.If(self.probes.valid & self.probes.payload.end):
                    m.next = "PROBE"
                return
            m.d.comb += self.probes.ready.eq(1)
            with m.If(self.probes.valid & self.probes.payload.end):
                m.next = "NO RECORDS"
        with m.State("NO RECORDS"):
            m.d.comb += self.records.valid.eq(1)
            m.d.comb += self.records.payload.end.eq(1)
            with m.If(self.records.ready):
                m.next = "SURVEY"

    def _reply(self, m, command, table, refused, turn):
        """Survey the slots of the command's stream for the status bits, then reply."""
        status = Signal(len(Status))
        reply = self.replies.payload
        for name in ("opcode", "side", "subwindow"):
            m.d.comb += reply[name].eq(command[name])
        m.d.comb += reply.status.eq(status)
        m.d.comb += reply.rows.eq(Mux(table.found & ~refused, table.rows, 0))
        with m.State("SURVEY"):
            table.survey(turn, command.side)
            m.d.sync += turn.eq(turn + 1)
            with m.If(turn == self.slots):
                m.next = "JUDGE"
        with m.State("JUDGE"):
            m.d.sync += status.eq(
                Cat(table.newest_full, ~table.any | table.oldest_empty, refused)
            )
            m.next = "REPLY"
        with m.State("REPLY"):
            m.d.comb += self.replies.valid.eq(1)
            with m.If(self.replies.ready):
                m.next = "TAKE"

    def _connect_memory(self, m, table):
        insertion, probing = self.insertion, self.probing
        for outer, inner in zip(self.reads, [*self._read_ports(m), insertion.main], strict=True):
            wiring.connect(m, inner, wiring.flipped(outer))
        wiring.connect(m, insertion.new_main, wiring.flipped(self.writes[0]))
        wiring.connect(m, insertion.batch, self.batch.read)
        wiring.connect(m, insertion.index, self.index.read)
        # The index array is written twice: for the insertion engine's splitter, and into the
        # partitioners.
        entry, copy = self.index.write.writes, probing.entries
        m.d.comb += [
            entry.valid.eq(insertion.new_index.writes.valid),
            entry.payload.eq(insertion.new_index.writes.payload),
            copy.valid.eq(insertion.new_index.writes.valid),
            copy.payload.key.eq(insertion.new_index.writes.payload.word),
            insertion.new_index.writes.ready.eq(1),
        ]
        address = insertion.new_index.writes.payload.address
        within = (index_entries(self.params) - 1).bit_length()
        m.d.comb += copy.payload.partition.eq(address[:within])
        # Nothing is probed meanwhile, so a slot needs no second index array there.
        m.d.comb += copy.payload.array.eq(table.slot)

    def _read_ports(self, m):
        """The probing engine's read ports; its searches are connected to who answers them."""
        probing = self.probing
        if not probing.by_word:
            return probing.words
        if not self.searchers:
            for outer, inner in zip(self.searches, probing.searches, strict=True):
                wiring.connect(m, inner, wiring.flipped(outer))
            return []
        for n, (searcher, inner) in enumerate(
            zip(self.searchers, probing.searches, strict=True)
        ):
            m.submodules[f"searcher_{n}"] = searcher
            wiring.connect(m, inner, searcher.search)
        return [searcher.read for searcher in self.searchers]

    def _connect_insertion(self, m, command, table):
        merge = self.insertion.commands.payload
        m.d.comb += merge.source.eq(table.address)
        m.d.comb += merge.target.eq(table.spare_address)
        m.d.comb += merge.stored.eq(table.rows)
        m.d.comb += merge.inserted.eq(command.count)

    def _connect_probing(self, m, command, table):
        probing = self.probing
        for name in ("bands", "band_count", "explicit", "negated", "dense", "chunk_words"):
            m.d.comb += getattr(probing, name).eq(command[name])
        m.d.comb += probing.base.eq(table.address)
        m.d.comb += probing.rows.eq(table.rows)
        m.d.comb += probing.array.eq(table.slot)

    def _gate_probes(self, m, probing):
        """Probes and records pass only while a probe is under way."""
        inner = self.probing
        ended = Signal()  # this probe's keys are all in
        m.d.comb += inner.probes.payload.eq(self.probes.payload)
        if self.far:
            self._open_probes(m, probing & ~ended)
            wiring.connect(m, inner.records, wiring.flipped(self.records))
        with m.If(probing):
            if not self.far:
                m.d.comb += inner.probes.valid.eq(self.probes.valid & ~ended)
                m.d.comb += self.probes.ready.eq(inner.probes.ready & ~ended)
                m.d.comb += self.records.valid.eq(inner.records.valid)
                m.d.comb += self.records.payload.eq(inner.records.payload)
                m.d.comb += inner.records.ready.eq(self.records.ready)
            with m.If(self.probes.valid & self.probes.ready & self.probes.payload.end):
                m.d.sync += ended.eq(1)
        with m.Else():
            m.d.sync += ended.eq(0)

    def _open_probes(self, m, wanted):
        """Let probes pass a cycle after they are wanted: the core's state is far from a dealer that
        is far from its ways.
        """
        opened = Signal()
        probes, inner = self.probes, self.probing.probes
        with m.If(opened):
            m.d.comb += inner.valid.eq(probes.valid)
            m.d.comb += probes.ready.eq(inner.ready)
        last = probes.valid & probes.ready & probes.payload.end
        m.d.sync += opened.eq(wanted & ~last)

    def _count(self, m, busy):
        counters = self.statistics
        searches = self.probing.searches if not self.searchers and self.probing.by_word else []
        late = Signal(len(self.reads) + len(searches) + 1)
        for n, port in enumerate(self.reads):
            owed = Signal(self.OWED_BITS, name=f"owed_{n}")
            asked = Signal(self.OWED_BITS, name=f"asked_{n}")
            came, waits, hungers = (
                Signal(name=f"{name}_{n}") for name in ("came", "waits", "hungers")
            )
            taken = port.requests.valid & port.requests.ready
            m.d.sync += asked.eq(Mux(taken, port.requests.payload.count, 0))
            m.d.sync += came.eq(port.words.valid & port.words.ready)
            m.d.sync += waits.eq(port.requests.valid & ~port.requests.ready)
            m.d.sync += hungers.eq(port.words.ready & ~port.words.valid)
            m.d.sync += owed.eq(owed + asked - came)
            m.d.sync += late[n].eq(waits | ((owed != 0) & hungers))
        # A search that was taken is answered in its time: only before that can it wait.
        streams = [port.requests for port in searches] + [self.writes[0].writes]
        for n, stream_ in enumerate(streams, start=len(self.reads)):
            waits = Signal(name=f"waits_{n}")
            m.d.sync += waits.eq(stream_.valid & ~stream_.ready)
            m.d.sync += late[n].eq(waits)
        worked, stalled = Signal(), Signal()
        m.d.sync += worked.eq(busy)
        m.d.sync += counters.cycles.eq(counters.cycles + worked)
        m.d.sync += stalled.eq(worked & late.any())
        m.d.sync += counters.stalled.eq(counters.stalled + stalled)
        for name, stream_ in (("tuples", self.tuples), ("records", self.records)):
            count = Signal.like(stream_.payload.count, name=f"{name}_counted")
            moves = stream_.valid & stream_.ready
            m.d.sync += count.eq(Mux(moves, stream_.payload.count, 0))
            m.d.sync += counters[name].eq(counters[name] + count)
