"""The insertion engine (PanJoin IV): insertion batch + main array -> new main array and index."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.arrays import TupleReader, TupleWriter, WideReader, WideWriter
from hw.rtl.indexer import Indexer, index_address_bits
from hw.rtl.layouts import (
    check_geometry,
    key_shape,
    main_words,
    row_count,
    tuple_layout,
    word_layout,
)
from hw.rtl.memory import ReadPort, ReadShare, WritePort, WriteShare
from hw.rtl.merger import Merger
from hw.rtl.splitter import Splitter
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams

__all__ = ["InsertionEngine", "insertion_layout", "DESIGNS"]

DESIGNS = ("wide", "narrow")


def insertion_layout(params: JoinParams, address_bits):
    """A command: merge the first `inserted` tuples of the batch into the main array of `stored`
    tuples at the word `source`, and write the result at the word `target`.
    """
    rows = row_count(params)
    return data.StructLayout(
        {"source": address_bits, "target": address_bits, "stored": rows, "inserted": rows}
    )


class InsertionEngine(wiring.Component):
    """Merges batches into main arrays in memory, one of the ``commands`` after the other.

    Requires that main array and batch ascend by key, that the two have at most `subwindow` tuples
    together, and that `source` and `target` are different multiples of a whole main array's words:
    the main array is double-buffered, and probes may go on reading the old one and its index
    array. Equal keys keep their order, those of the main array first.

    For each command one token of ``done``, the tuples of the new main array, once every word of
    it and of its index array has been taken by memory.

    design "wide":    one merger of `lanes` tuples a cycle; memory is read and written in order
    design "narrow":  `mergers` mergers of one tuple a cycle, on pieces that a splitter balances

    ports: ``main`` and ``index`` read what is stored, ``batch`` what is inserted; ``new_main`` and
    ``new_index`` write. A memory word has `lanes` tuples. ``words`` counts those written so far.

    `queue_words` is what readers and the wide merger have room for: 32 hide the latency and the
    stalls of slow memory, 16 do for block RAM.

    Latency about 40 cycles ("narrow": 25 for each bit of a position). Tuples a cycle: `lanes`, or
    the smaller of `lanes` and `mergers`, if memory moves a word a cycle each way.
    """

    def __init__(self, params: JoinParams, address_bits, batch_bits, design="wide", *,
                 queue_words=32):
        check_geometry(params)
        if design not in DESIGNS:
            raise ValueError(f"design must be wide or narrow, not {design}")
        self.params = params
        self.address_bits = address_bits
        self.batch_bits = batch_bits
        self.design = design
        self.queue_words = queue_words
        word, key = word_layout(params), key_shape(params)
        index_bits = index_address_bits(params, address_bits)
        super().__init__(
            {
                "commands": In(stream.Signature(insertion_layout(params, address_bits))),
                "done": Out(stream.Signature(row_count(params))),
                "main": Out(ReadPort(word, address_bits)),
                "index": Out(ReadPort(key, index_bits)),
                "batch": Out(ReadPort(word, batch_bits)),
                "new_main": Out(WritePort(word, address_bits)),
                "new_index": Out(WritePort(key, index_bits)),
                "words": Out(range(main_words(params) + 1)),
            }
        )
        self.begin = Signal()  # a command waits for its jobs to begin; an attribute for proofs

    def elaborate(self, platform):
        m = Module()
        command = Signal(insertion_layout(self.params, self.address_bits))
        total = Signal(row_count(self.params))
        m.d.comb += total.eq(command.stored + command.inserted)
        m.submodules.indexer = indexer = Indexer(self.params, self.address_bits)
        wiring.connect(m, indexer.main, wiring.flipped(self.new_main))
        wiring.connect(m, indexer.index, wiring.flipped(self.new_index))
        begin = self.begin
        began = Signal()
        build = self._wide if self.design == "wide" else self._narrow
        build(m, command, begin, began, indexer.merged)

        lanes = self.params.lanes
        expected = Signal.like(self.words)
        merged = indexer.merged.writes
        with m.If(merged.valid & merged.ready):
            m.d.sync += self.words.eq(self.words + 1)
        m.d.comb += self.done.payload.eq(total)
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.commands.ready.eq(1)
                m.d.sync += command.eq(self.commands.payload)
                m.d.sync += self.words.eq(0)
                with m.If(self.commands.valid):
                    m.next = "BEGIN"
            with m.State("BEGIN"):
                m.d.comb += begin.eq(1)
                m.d.sync += expected.eq((total + (lanes - 1)) >> exact_log2(lanes))
                with m.If(began):
                    m.next = "MERGE"
            with m.State("MERGE"), m.If(self.words == expected):
                m.next = "DONE"
            with m.State("DONE"):
                m.d.comb += self.done.valid.eq(1)
                with m.If(self.done.ready):
                    m.next = "WAIT"
        return m

    def _wide(self, m, command, begin, began, written):
        """Two readers, one wide merger, one writer."""
        params, depth = self.params, self.queue_words
        m.submodules.main_reader = main = WideReader(params, self.address_bits, depth=depth)
        m.submodules.batch_reader = batch = WideReader(params, self.batch_bits, depth=depth)
        m.submodules.merger = merger = WideMerger(
            tuple_layout(params), params.lanes, out_depth=depth
        )
        m.submodules.writer = writer = WideWriter(params, self.address_bits)
        wiring.connect(m, main.read, wiring.flipped(self.main))
        wiring.connect(m, batch.read, wiring.flipped(self.batch))
        wiring.connect(m, main.tuples, merger.main)
        wiring.connect(m, batch.tuples, merger.batch)
        wiring.connect(m, merger.merged, writer.tuples)
        wiring.connect(m, writer.write, written)
        jobs = (main.jobs, batch.jobs, writer.jobs)
        m.d.comb += [
            main.jobs.payload.address.eq(command.source),
            main.jobs.payload.count.eq(command.stored),
            batch.jobs.payload.count.eq(command.inserted),
            writer.jobs.payload.address.eq(command.target),
        ]
        # Together: a reader whose frame was short may be free before the writer is. Nobody else
        # has jobs for them, so who is free is so in the next cycle, too.
        m.d.sync += began.eq(begin & ~began & Cat(job.ready for job in jobs).all())
        m.d.comb += [job.valid.eq(began) for job in jobs]

    def _narrow(self, m, command, begin, began, written):
        """A splitter, and for each piece two readers, a merger and a writer that share memory."""
        params = self.params
        word = word_layout(params)
        ways = params.mergers
        m.submodules.main_share = main = ReadShare(word, self.address_bits, ways + 1)
        m.submodules.batch_share = batch = ReadShare(word, self.batch_bits, ways + 1)
        m.submodules.write_share = write = WriteShare(word, self.address_bits, ways)
        wiring.connect(m, main.port, wiring.flipped(self.main))
        wiring.connect(m, batch.port, wiring.flipped(self.batch))
        wiring.connect(m, write.port, written)

        m.submodules.splitter = splitter = Splitter(params, self.address_bits, self.batch_bits)
        wiring.connect(m, splitter.index, wiring.flipped(self.index))
        wiring.connect(m, splitter.main, main.readers[ways])
        wiring.connect(m, splitter.batch, batch.readers[ways])
        m.d.comb += [
            splitter.splits.payload.address.eq(command.source),
            splitter.splits.payload.stored.eq(command.stored),
            splitter.splits.payload.inserted.eq(command.inserted),
        ]

        turn = Signal(range(ways))
        started = Signal()  # the splitter has its command
        m.d.comb += splitter.splits.valid.eq(begin & ~started)
        with m.If(splitter.splits.valid & splitter.splits.ready):
            m.d.sync += started.eq(1)
        with m.If(began):
            m.d.sync += started.eq(0)
        for number in range(ways):
            jobs = self._way(m, number, command, splitter.pieces.payload, main, batch, write)
            with m.If(turn == number):
                ready = Cat(job.ready for job in jobs).all()
                m.d.comb += splitter.pieces.ready.eq(ready)
                m.d.comb += [job.valid.eq(splitter.pieces.valid & ready) for job in jobs]
        with m.If(splitter.pieces.valid & splitter.pieces.ready):
            m.d.sync += turn.eq(turn + 1)
            m.d.comb += began.eq(turn == ways - 1)

    def _way(self, m, number, command, piece, main, batch, write):
        """One merger between its readers and its writer; the streams of their jobs."""
        params = self.params
        lane_bits = exact_log2(params.lanes)
        parts = {
            "main_reader": TupleReader(params, self.address_bits),
            "batch_reader": TupleReader(params, self.batch_bits),
            "merger": Merger(tuple_layout(params)),
            "writer": TupleWriter(params, self.address_bits),
        }
        for name, part in parts.items():
            m.submodules[f"{name}_{number}"] = part
        main_reader, batch_reader, merger, writer = parts.values()
        wiring.connect(m, main_reader.read, main.readers[number])
        wiring.connect(m, batch_reader.read, batch.readers[number])
        wiring.connect(m, main_reader.tuples, merger.main)
        wiring.connect(m, batch_reader.tuples, merger.batch)
        wiring.connect(m, merger.merged, writer.tuples)
        wiring.connect(m, writer.write, write.writers[number])
        m.d.comb += [
            main_reader.jobs.payload.address.eq(command.source),
            main_reader.jobs.payload.first.eq(piece.main_first),
            main_reader.jobs.payload.count.eq(piece.main_count),
            batch_reader.jobs.payload.first.eq(piece.batch_first),
            batch_reader.jobs.payload.count.eq(piece.batch_count),
            writer.jobs.payload.address.eq(command.target + (piece.first >> lane_bits)),
        ]
        return main_reader.jobs, batch_reader.jobs, writer.jobs
