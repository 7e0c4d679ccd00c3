"""The splitter: cut points at which mergers can work side by side.

PanJoin III-G: "BI-Sort tries to balance the size of each piece of the partially merged main array".
Here the pieces of the output are equal to a memory word, whatever the keys are.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.indexer import index_address_bits
from hw.rtl.layouts import check_geometry, key_shape, row_count, word_layout
from hw.rtl.memory import ReadPort
from hw.rtl.plumbing import Buffer, ShortQueue
from hw.spec import JoinParams

__all__ = ["Splitter", "piece_layout", "split_layout"]


def split_layout(params: JoinParams, address_bits):
    """What is to be merged: `stored` tuples at the word `address`, and `inserted` of the batch."""
    return data.StructLayout(
        {"address": address_bits, "stored": row_count(params), "inserted": row_count(params)}
    )


def piece_layout(params: JoinParams):
    """One merger's part: from `main_first` and `batch_first` on, to go to position `first`."""
    rows = row_count(params)
    names = ("main_first", "main_count", "batch_first", "batch_count", "first")
    return data.StructLayout({name: rows for name in names})


class Splitter(wiring.Component):
    """For each of the ``splits``, as many ``pieces`` as there are mergers, in their order.

    Piece n begins at output position n * ceil(rows / mergers), rounded up to whole words. A cut
    at position d has before it `a` tuples of the main array and d - a of the batch, such that
    the merge of what is before it is the first d tuples of the whole merge.

    Tuple x of the main array is before the cut iff main[x] <= batch[d - 1 - x], which holds for
    the first `a` and for no other. So the search finds the last such x, from its highest bit to
    its lowest: while these count partitions, in the index array through ``index``, then inside
    one partition through ``main``, always beside ``batch``. All cuts advance together, so that
    memory is asked for one of them a cycle.

    Latency about (mergers + 8 + memory latency) cycles for each bit of a position.
    """

    def __init__(self, params: JoinParams, address_bits, batch_bits):
        check_geometry(params)
        self.params = params
        self.address_bits = address_bits
        self.batch_bits = batch_bits
        self.index_bits = index_address_bits(params, address_bits)
        word = word_layout(params)
        super().__init__(
            {
                "splits": In(stream.Signature(split_layout(params, address_bits))),
                "pieces": Out(stream.Signature(piece_layout(params))),
                "index": Out(ReadPort(key_shape(params), self.index_bits)),
                "main": Out(ReadPort(word, address_bits)),
                "batch": Out(ReadPort(word, batch_bits)),
            }
        )
        # Attributes, so that a proof can count what is inside.
        self.number = Signal(range(params.mergers + 1))
        self.out = Buffer(piece_layout(params))

    def elaborate(self, platform):
        m = Module()
        params = self.params
        positions = exact_log2(params.subwindow)
        split = Signal(split_layout(params, self.address_bits))
        total = Signal(row_count(params))
        m.d.comb += total.eq(split.stored + split.inserted)
        # Tuples of a piece: rows / mergers, rounded up to whole words.
        unit = params.mergers * params.lanes
        size = Signal(range(params.subwindow + unit))
        m.d.comb += size.eq(((total + (unit - 1)) >> exact_log2(unit)) << exact_log2(params.lanes))

        # Per cut: its position in the output; whether a tuple of the main array is before it, and
        # the last that is.
        count = params.mergers + 1
        place = Array(Signal(row_count(params), name=f"place_{n}") for n in range(count))
        some = Array(Signal(name=f"some_{n}") for n in range(count))
        last = Array(Signal(positions, name=f"last_{n}") for n in range(count))

        number = self.number
        bit = Signal(range(positions + 1))  # that is tried; at first, tuple 0 is
        candidate = Signal(positions)
        m.d.comb += candidate.eq(last[number] | (1 << bit)[:positions])
        m.submodules.probe = probe = _Probe(params, self.address_bits, self.batch_bits)
        for port in ("index", "main", "batch"):
            wiring.connect(m, getattr(probe, port), wiring.flipped(getattr(self, port)))
        m.d.comb += [
            probe.split.eq(split),
            probe.asks.payload.number.eq(number),
            probe.asks.payload.place.eq(place[number]),
            probe.asks.payload.row.eq(candidate),
        ]
        answer = probe.answers.payload
        m.d.comb += probe.answers.ready.eq(1)
        waiting = Signal(range(count))
        asked = probe.asks.valid & probe.asks.ready
        m.d.sync += waiting.eq(waiting + asked - probe.answers.valid)
        with m.If(probe.answers.valid & answer.before):
            m.d.sync += some[answer.number].eq(1)
            m.d.sync += last[answer.number].eq(answer.row)

        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.pieces))
        with m.FSM():
            with m.State("WAIT"):
                m.d.comb += self.splits.ready.eq(1)
                m.d.sync += split.eq(self.splits.payload)
                m.d.sync += number.eq(0)
                m.d.sync += bit.eq(positions)
                with m.If(self.splits.valid):
                    m.next = "PLACE"
            with m.State("PLACE"):
                # Position 0, then each a piece after the one before, to the end of the output.
                begin = Signal(range(2 * params.subwindow + unit))
                with m.If(number != 0):
                    m.d.comb += begin.eq(place[number - 1] + size)
                m.d.sync += place[number].eq(Mux(begin < total, begin, total))
                m.d.sync += some[number].eq(0)
                m.d.sync += last[number].eq(0)
                m.d.sync += number.eq(number + 1)
                with m.If(number == count - 1):
                    m.d.sync += number.eq(1)
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += probe.asks.valid.eq(1)
                with m.If(probe.asks.ready):
                    m.d.sync += number.eq(number + 1)
                    with m.If(number == count - 1):
                        m.d.sync += number.eq(1)
                        m.next = "HEAR"
            with m.State("HEAR"), m.If(waiting == 0):
                m.d.sync += bit.eq(bit - 1)
                m.next = "ASK"
                with m.If(bit == 0):
                    m.d.sync += number.eq(0)
                    m.next = "EMIT"
            with m.State("EMIT"):
                m.d.comb += out.i.valid.eq(1)
                with m.If(out.i.ready):
                    m.d.sync += number.eq(number + 1)
                    with m.If(number == count - 2):
                        m.next = "WAIT"

        piece = out.i.payload
        from_main = [Signal(row_count(params), name=f"from_main_{n}") for n in range(2)]
        for n in range(2):
            m.d.comb += from_main[n].eq(Mux(some[number + n], last[number + n] + 1, 0))
        m.d.comb += [
            piece.first.eq(place[number]),
            piece.main_first.eq(from_main[0]),
            piece.main_count.eq(from_main[1] - from_main[0]),
            piece.batch_first.eq(place[number] - from_main[0]),
            piece.batch_count.eq(
                (place[number + 1] - from_main[1]) - (place[number] - from_main[0])
            ),
        ]
        return m


class _Probe(wiring.Component):
    """Whether tuple `row` of the main array is before the cut at `place`; answers in order.

    ``split`` must not change while an answer is due.
    """

    def __init__(self, params: JoinParams, address_bits, batch_bits):
        self.params = params
        self.address_bits = address_bits
        self.batch_bits = batch_bits
        self.index_bits = index_address_bits(params, address_bits)
        row = exact_log2(params.subwindow)
        cut = {"number": range(params.mergers + 1), "row": row}
        self.ask = data.StructLayout({**cut, "place": row_count(params)})
        self.answer = data.StructLayout({**cut, "before": 1})
        word = word_layout(params)
        super().__init__(
            {
                "split": In(split_layout(params, address_bits)),
                "asks": In(stream.Signature(self.ask)),
                "answers": Out(stream.Signature(self.answer)),
                "index": Out(ReadPort(key_shape(params), self.index_bits)),
                "main": Out(ReadPort(word, address_bits)),
                "batch": Out(ReadPort(word, batch_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self.params
        lane_bits = exact_log2(params.lanes)
        within = exact_log2(params.partition_rows)
        rows = row_count(params)
        # What is looked up: tuples of the main array and of the batch, if the ends of the two do
        # not already decide.
        lookup = data.StructLayout(
            {"ask": self.ask, "other": rows, "sure": 1, "before": 1, "coarse": 1}
        )
        m.submodules.lookups = lookups = Buffer(lookup)
        m.submodules.pending = pending = ShortQueue(lookup, 16)
        ask = self.asks.payload
        other = Signal(signed(exact_log2(params.subwindow) + 2))
        m.d.comb += other.eq(ask.place - 1 - ask.row)
        outside = (ask.row >= self.split.stored) | (other < 0)
        m.d.comb += [
            lookups.i.valid.eq(self.asks.valid),
            self.asks.ready.eq(lookups.i.ready),
            lookups.i.payload.ask.eq(ask),
            lookups.i.payload.other.eq(other),
            lookups.i.payload.sure.eq(outside | (other >= self.split.inserted)),
            lookups.i.payload.before.eq(~outside),
            lookups.i.payload.coarse.eq(ask.row[:within] == 0),
        ]

        # One request to each of two memories, and a note of what the words will be for.
        it = lookups.o.payload
        ports = {}
        for name, bits in (
            ("index", self.index_bits), ("main", self.address_bits), ("batch", self.batch_bits)
        ):
            port = getattr(self, name)
            ports[name] = Buffer(data.StructLayout({"address": bits, "count": bits + 1}))
            m.submodules[f"{name}_requests"] = ports[name]
            wiring.connect(m, ports[name].o, wiring.flipped(port.requests))
            m.d.comb += ports[name].i.payload.count.eq(1)
        go = Signal()
        free = Cat(port.i.ready for port in ports.values()).all() & pending.i.ready
        m.d.comb += go.eq(lookups.o.valid & free)
        m.d.comb += [
            lookups.o.ready.eq(free),
            pending.i.valid.eq(go),
            pending.i.payload.eq(it),
            ports["index"].i.valid.eq(go & ~it.sure & it.coarse),
            ports["main"].i.valid.eq(go & ~it.sure & ~it.coarse),
            ports["batch"].i.valid.eq(go & ~it.sure),
            ports["index"].i.payload.address.eq(
                (self.split.address >> (within - lane_bits)) + (it.ask.row >> within)
            ),
            ports["main"].i.payload.address.eq(self.split.address + (it.ask.row >> lane_bits)),
            ports["batch"].i.payload.address.eq(it.other >> lane_bits),
        ]
        self._judge(m, pending.o, lane_bits)
        return m

    def _judge(self, m, note, lane_bits):
        """Pick the two keys, then compare them."""
        key = key_shape(self.params)
        pair = data.StructLayout({"answer": self.answer, "sure": 1, "main": key, "batch": key})
        m.submodules.pairs = pairs = Buffer(pair)
        it = note.payload
        main_valid = Mux(it.coarse, self.index.words.valid, self.main.words.valid)
        there = it.sure | (main_valid & self.batch.words.valid)
        main_key = self.main.words.payload[it.ask.row[:lane_bits]].key
        taken = Signal()
        m.d.comb += taken.eq(pairs.i.valid & pairs.i.ready)
        m.d.comb += [
            pairs.i.valid.eq(note.valid & there),
            note.ready.eq(taken),
            self.index.words.ready.eq(taken & ~it.sure & it.coarse),
            self.main.words.ready.eq(taken & ~it.sure & ~it.coarse),
            self.batch.words.ready.eq(taken & ~it.sure),
            pairs.i.payload.answer.number.eq(it.ask.number),
            pairs.i.payload.answer.row.eq(it.ask.row),
            pairs.i.payload.answer.before.eq(it.before),
            pairs.i.payload.sure.eq(it.sure),
            pairs.i.payload.main.eq(Mux(it.coarse, self.index.words.payload, main_key)),
            pairs.i.payload.batch.eq(self.batch.words.payload[it.other[:lane_bits]].key),
        ]
        ready = pairs.o.payload
        m.d.comb += [
            self.answers.valid.eq(pairs.o.valid),
            pairs.o.ready.eq(self.answers.ready),
            self.answers.payload.eq(ready.answer),
            self.answers.payload.before.eq(
                Mux(ready.sure, ready.answer.before, ready.main <= ready.batch)
            ),
        ]
