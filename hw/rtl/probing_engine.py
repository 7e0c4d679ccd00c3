"""The probing engine (PanJoin IV): boundary generators, partitioners and probers side by side."""

from functools import reduce
from operator import or_

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import BoundaryGenerator, register_layout
from hw.rtl.layouts import (
    key_shape,
    record_layout,
    row_count,
    run_layout,
    token,
    wide_token,
    word_layout,
)
from hw.rtl.memory import ReadPort
from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.plumbing import Buffer, Fork, Join, Queue, ShortQueue
from hw.rtl.prober import Prober
from hw.rtl.searcher import SearchPort
from hw.rtl.word_prober import WordProber
from hw.spec import NOT, JoinParams

__all__ = ["ProbingEngine", "Unpacker", "Packer", "Dealer", "Collector", "FarCollector"]


class ProbingEngine(wiring.Component):
    """Frames of probe keys become frames of records, in the order of the batch.

    probes       words of keys; explicit intervals as lo, hi, lo, hi ...
    records      words of records: `band_count` for each key, or one for each explicit interval
    words        read ports of memory, two for each prober (see Prober); or, where a partition is a
                 memory word,
    searches     ports of who looks into words, one for each prober (see WordProber)
    entries      writes the index arrays
    bands, band_count, explicit              see BoundaryGenerator
    array, rows                              see Partitioner
    base, dense, negated                     see Prober
    chunk_words  words of keys that one way takes in its turn, 1 to `CHUNK`; even for explicit
                 intervals. Many let bounds share the scan of a partition, few share a short
                 batch among all ways

    A way is a boundary generator, a partitioner and what it can keep busy: one Prober, which scans
    or searches partitions of several words, or two WordProbers, which need do neither: one for
    lower bounds, one for upper ones. If the engine is `far`, its ways lie all over a chip, and so
    does each: generators, partitioners and the collector are far ones, and a buffer is before each
    prober, so that neither waits for the other's wires.

    All but the streams may change only between frames. With 8 WordProbers and 4 lanes more than
    3.9 probes a cycle of a sorted batch of an eighth of the main array (dense), more than 2.8 of
    batches of a 1024th of it that follow each other (sparse), where memory delivers a word a
    cycle at every port; if the engine is far, 3.8 and 2.1.
    """

    #: Most words of keys in a way's turn.
    CHUNK = 16

    def __init__(self, params: JoinParams, address_bits, *, arrays=1,
                 partitioner=PipelinedPartitioner, far=False):
        self.params = params
        self.far = far
        lanes = params.lanes
        self.by_word = params.partition_rows == lanes
        if self.by_word and params.probers < 2:
            raise ValueError(
                f"partitions of a memory word need 2 probers or more, not {params.probers}"
            )
        prober = WordProber if self.by_word else Prober
        self.probers = [prober(params, address_bits) for _ in range(params.probers)]
        self.ways = params.probers // 2 if self.by_word else params.probers
        options = {"far": True} if far else {}
        self.partitioners = [partitioner(params, arrays, **options) for _ in range(self.ways)]
        index = self.partitioners[0].signature.members
        super().__init__(
            {
                "bands": In(data.ArrayLayout(register_layout(), params.bands)),
                "band_count": In(range(params.bands + 1)),
                "explicit": In(1),
                "negated": In(1),
                "dense": In(1),
                "chunk_words": In(range(self.CHUNK + 1)),
                "base": In(address_bits),
                "rows": In(row_count(params)),
                "array": index["array"],
                "entries": index["entries"],
                "probes": In(stream.Signature(wide_token(key_shape(params), lanes))),
                "records": Out(stream.Signature(wide_token(record_layout(), lanes))),
                **self._memory_ports(address_bits),
            }
        )

    def _memory_ports(self, address_bits):
        if self.by_word:
            searches = Out(SearchPort(self.params, address_bits)).array(len(self.probers))
            return {"searches": searches}
        words = sum(len(prober.words) for prober in self.probers)
        return {"words": Out(ReadPort(word_layout(self.params), address_bits)).array(words)}

    def elaborate(self, platform):
        m = Module()
        keys = self.probes.payload.shape()
        runs = wide_token(run_layout(self.params), self.params.lanes)
        m.submodules.dealer = dealer = Dealer(keys, self.ways, self.CHUNK)
        m.submodules.collector = collector = (FarCollector if self.far else Collector)(
            runs, self.ways, self.CHUNK * self.params.bands
        )
        turn_words = Signal.like(collector.turn_words)
        # The product as a sum: a multiplier of the chip is slower than this.
        product = sum(
            Mux(self.band_count[bit], self.chunk_words << bit, 0)
            for bit in range(len(self.band_count))
        )
        m.d.sync += turn_words.eq(Mux(self.explicit, self.chunk_words >> 1, product))
        m.d.comb += dealer.turn_words.eq(self.chunk_words)
        m.d.comb += collector.turn_words.eq(turn_words)
        m.d.comb += self.entries.ready.eq(1)
        wiring.connect(m, wiring.flipped(self.probes), dealer.i)
        self._label(m, collector.o)
        if self.by_word:
            inner, outer = [prober.search for prober in self.probers], self.searches
        else:
            inner = [port for prober in self.probers for port in prober.words]
            outer = self.words
        for port, member in zip(inner, outer, strict=True):
            wiring.connect(m, port, wiring.flipped(member))
        for n in range(self.ways):
            self._way(m, n, dealer.o[n], collector.i[n])
        return m

    def _label(self, m, runs):
        """Runs become records once for all ways: everything before stays narrow."""
        records = self.records
        m.d.comb += records.valid.eq(runs.valid)
        m.d.comb += runs.ready.eq(records.ready)
        m.d.comb += records.payload.count.eq(runs.payload.count)
        m.d.comb += records.payload.end.eq(runs.payload.end)
        negated = self.negated
        if self.far:
            # Its own, which stays as it is while a record is on offer.
            negated = Signal(name="negated_copy")
            with m.If(~runs.valid):
                m.d.sync += negated.eq(self.negated)
        label = Mux(negated, int(NOT), 0)
        for lane in range(self.params.lanes):
            run, record = runs.payload.data[lane], records.payload.data[lane]
            m.d.comb += record.start.eq(run.start)
            m.d.comb += record.end.eq(run.end | label)

    def _way(self, m, n, keys, runs):
        """Way number `n`, from its words of keys to its words of runs."""
        lanes = self.params.lanes
        m.submodules[f"unpacker_{n}"] = unpacker = Unpacker(key_shape(self.params), lanes)
        m.submodules[f"generator_{n}"] = generator = BoundaryGenerator(
            self.params, far=self.far
        )
        m.submodules[f"partitioner_{n}"] = partitioner = self.partitioners[n]
        m.submodules[f"packer_{n}"] = packer = Packer(run_layout(self.params), lanes)
        wiring.connect(m, unpacker.o, generator.probes)
        wiring.connect(m, generator.bounds, partitioner.bounds)
        # From way to way, because the partitioners' memories lie all over a chip.
        entries = self.partitioners[n - 1].entries if n else self.entries
        m.d.sync += partitioner.entries.payload.eq(entries.payload)
        m.d.sync += partitioner.entries.valid.eq(entries.valid)
        self._copy(m, generator, ~unpacker.i.valid, "bands", "band_count", "explicit")
        self._copy(m, partitioner, ~unpacker.i.valid, "array")
        self._set(m, partitioner, "rows")
        if self.by_word:
            m.submodules[f"keys_{n}"] = waiting = Buffer(keys.payload.shape())
            if self.far:
                wiring.connect(m, packer.o, runs)
            else:
                # A buffer, because the ways would see the collector's turn, and each other's ends,
                # in the same cycle.
                m.submodules[f"runs_{n}"] = answers = Buffer(runs.payload.shape())
                wiring.connect(m, packer.o, answers.i)
                wiring.connect(m, answers.o, runs)
            self._word_probers(m, n, partitioner.targets, packer.i)
        else:
            # Turns are long, so that bounds share scans: others go on meanwhile.
            m.submodules[f"keys_{n}"] = waiting = Queue(keys.payload.shape(), self.CHUNK)
            m.submodules[f"runs_{n}"] = answers = Queue(runs.payload.shape(), self.CHUNK)
            wiring.connect(m, packer.o, answers.i)
            wiring.connect(m, answers.o, runs)
            self._prober(m, n, partitioner.targets, packer.i)
        wiring.connect(m, keys, waiting.i)
        wiring.connect(m, waiting.o, unpacker.i)

    def _word_probers(self, m, n, targets, runs):
        """A prober for the lower bounds, one for the upper ones; their positions are runs."""
        m.submodules[f"fork_{n}"] = fork = Fork(targets.payload.shape(), 2)
        wiring.connect(m, targets, fork.i)
        position = self.probers[0].positions.payload.shape()
        m.submodules[f"join_{n}"] = join = Join(lo=position, hi=position)
        # Bounds of one interval often want the same word: the two lie far apart in `searches`.
        both = self.probers[n], self.probers[self.ways + n]
        for side, prober, o in zip(("lo", "hi"), both, fork.o, strict=True):
            m.submodules[f"prober_{n}_{side}"] = prober
            reached = prober.targets
            if self.far:
                m.submodules[f"targets_{n}_{side}"] = before = Buffer(reached.payload.shape())
                wiring.connect(m, before.o, reached)
                reached = before.i
            m.d.comb += reached.valid.eq(o.valid)
            m.d.comb += o.ready.eq(reached.ready)
            m.d.comb += reached.payload.data.eq(o.payload.data[side])
            m.d.comb += reached.payload.end.eq(o.payload.end)
            wiring.connect(m, prober.positions, getattr(join, f"i_{side}"))
            self._copy(m, prober, ~o.valid, "base")
            self._set(m, prober, "rows")
        # A buffer, because the comparison and the packer are too much for one cycle, and so are
        # the packer's answer and the probers' queues.
        m.submodules[f"joined_{n}"] = joined = Buffer(runs.payload.shape())
        wiring.connect(m, joined.o, runs)
        lo, hi, run = join.o.payload.lo, join.o.payload.hi, joined.i.payload
        m.d.comb += [
            join.o.ready.eq(joined.i.ready),
            joined.i.valid.eq(join.o.valid),
            run.end.eq(lo.end),
            run.data.start.eq(lo.data),
            run.data.end.eq(Mux(hi.data < lo.data, lo.data, hi.data)),
        ]

    def _prober(self, m, n, targets, runs):
        """One prober; the label that it could give comes later."""
        m.submodules[f"prober_{n}"] = prober = self.probers[n]
        wiring.connect(m, targets, prober.targets)
        self._set(m, prober, "base", "rows", "dense")
        record = prober.records.payload
        m.d.comb += runs.valid.eq(prober.records.valid)
        m.d.comb += prober.records.ready.eq(runs.ready)
        m.d.comb += runs.payload.end.eq(record.end)
        m.d.comb += runs.payload.data.start.eq(record.data.start)
        m.d.comb += runs.payload.data.end.eq(record.data.end)

    def _set(self, m, part, *names):
        for name in names:
            m.d.comb += getattr(part, name).eq(getattr(self, name))

    def _copy(self, m, part, rests, *names):
        """The same by registers of the part's own, near it: taken whenever the part `rests`, so
        that synthesis does not make one register of those of all ways.
        """
        for name in names:
            own = Value.cast(getattr(part, name))
            copy = Signal(len(own), name=f"{name}_copy", reset_less=True)
            with m.If(rests):
                m.d.sync += copy.eq(Value.cast(getattr(self, name)))
            m.d.comb += own.eq(copy)


class Unpacker(wiring.Component):
    """Words of ``i`` become single tokens of ``o``: latency 0, one a cycle without gaps."""

    def __init__(self, shape, lanes):
        super().__init__(
            {
                "i": In(stream.Signature(wide_token(shape, lanes))),
                "o": Out(stream.Signature(token(shape))),
            }
        )
        self.lane = Signal(range(lanes))

    def elaborate(self, platform):
        m = Module()
        word = self.i.payload
        last = Signal()
        m.d.comb += last.eq(word.end | (self.lane + 1 == word.count))
        m.d.comb += self.o.valid.eq(self.i.valid)
        m.d.comb += self.o.payload.data.eq(word.data[self.lane])
        m.d.comb += self.o.payload.end.eq(word.end)
        m.d.comb += self.i.ready.eq(self.o.ready & last)
        with m.If(self.i.valid & self.o.ready):
            m.d.sync += self.lane.eq(Mux(last, 0, self.lane + 1))
        return m


class Packer(wiring.Component):
    """Single tokens of ``i`` become words of ``o``: one a cycle, one more for a last short word.

    Latency 0: the token that fills a word goes with it.
    """

    def __init__(self, shape, lanes):
        super().__init__(
            {
                "i": In(stream.Signature(token(shape))),
                "o": Out(stream.Signature(wide_token(shape, lanes))),
            }
        )
        self.lanes = lanes
        self.held = Signal(range(lanes))

    def elaborate(self, platform):
        m = Module()
        out = self.o
        word = Signal(out.payload.data.shape(), reset_less=True)
        full = self.held == self.lanes - 1
        for lane in range(self.lanes):
            with m.If(self.i.valid & ~self.i.payload.end & (self.held == lane)):
                m.d.sync += word[lane].eq(self.i.payload.data)
        m.d.comb += out.payload.data.eq(word)
        with m.If(self.i.payload.end):
            m.d.comb += out.valid.eq(self.i.valid)
            m.d.comb += out.payload.count.eq(self.held)
            m.d.comb += out.payload.end.eq(self.held == 0)
            m.d.comb += self.i.ready.eq(out.ready & (self.held == 0))
            with m.If(self.i.valid & out.ready):
                m.d.sync += self.held.eq(0)
        with m.Else():
            # A word that is full has all its lanes but the last from before.
            m.d.comb += Value.cast(out.payload.data[self.lanes - 1]).eq(
                Value.cast(self.i.payload.data)
            )
            m.d.comb += out.valid.eq(self.i.valid & full)
            m.d.comb += out.payload.count.eq(self.lanes)
            m.d.comb += self.i.ready.eq(out.ready | ~full)
            with m.If(self.i.valid & self.i.ready):
                m.d.sync += self.held.eq(Mux(full, 0, self.held + 1))
        return m


class Dealer(wiring.Component):
    """Deals the words of ``i`` to the outputs ``o`` in turn, ``turn_words`` at a time.

    The end of a frame goes to every output, and the next frame begins at the first one.
    Latency 0, one word a cycle.
    """

    def __init__(self, shape, count, most):
        self.count = count
        super().__init__(
            {
                "turn_words": In(range(most + 1)),
                "i": In(stream.Signature(shape)),
                "o": Out(stream.Signature(shape)).array(count),
            }
        )
        self.turn = Signal(range(count))
        self.dealt = Signal(range(most + 1))
        self.served = Signal(count)  # outputs that already have the end

    def elaborate(self, platform):
        m = Module()
        end = self.i.payload.end
        served = Signal(self.count)
        ready = Signal(self.count)
        for n, o in enumerate(self.o):
            m.d.comb += o.payload.eq(self.i.payload)
            m.d.comb += o.valid.eq(self.i.valid & Mux(end, ~self.served[n], self.turn == n))
            m.d.comb += served[n].eq(self.served[n] | (o.valid & o.ready))
            m.d.comb += ready[n].eq(o.ready)
        m.d.comb += self.i.ready.eq(Mux(end, served.all(), ready.bit_select(self.turn, 1)))
        with m.If(self.i.valid & end):
            m.d.sync += self.served.eq(Mux(served.all(), 0, served))
            m.d.sync += self.turn.eq(0)
            m.d.sync += self.dealt.eq(0)
        with m.Elif(self.i.valid & self.i.ready):
            m.d.sync += self.dealt.eq(self.dealt + 1)
            with m.If(self.dealt + 1 == self.turn_words):
                m.d.sync += self.dealt.eq(0)
                m.d.sync += self.turn.eq(Mux(self.turn == self.count - 1, 0, self.turn + 1))
        return m


class Collector(wiring.Component):
    """The inverse of a Dealer: ``turn_words`` words of each input ``i`` in turn make ``o``.

    An input that ends in its turn ends the frame; the ends of all inputs leave as one. Latency 1
    cycle, one word a cycle.
    """

    def __init__(self, shape, count, most):
        self.count = count
        super().__init__(
            {
                "turn_words": In(range(most + 1)),
                "i": In(stream.Signature(shape)).array(count),
                "o": Out(stream.Signature(shape)),
            }
        )
        self.turn = Signal(range(count))
        self.taken = Signal(range(most + 1))
        self.out = Buffer(shape)

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.o))
        ended = Signal(self.count)
        valid = Signal()
        word = Signal(Shape.cast(self.o.payload.shape()).width)
        for n, i in enumerate(self.i):
            m.d.comb += ended[n].eq(i.valid & i.payload.end)
            with m.If(self.turn == n):
                m.d.comb += valid.eq(i.valid)
                m.d.comb += word.eq(Value.cast(i.payload))
                m.d.comb += i.ready.eq(out.i.ready & ~i.payload.end)
            with m.If(ended.all()):
                m.d.comb += i.ready.eq(out.i.ready)
        m.d.comb += Value.cast(out.i.payload).eq(word)
        at_end = ended.bit_select(self.turn, 1)
        m.d.comb += out.i.valid.eq(Mux(at_end, ended.all(), valid))
        with m.If(out.i.valid & out.i.ready):
            m.d.sync += self.taken.eq(self.taken + 1)
            with m.If(at_end):
                m.d.sync += self.turn.eq(0)
                m.d.sync += self.taken.eq(0)
            with m.Elif(self.taken + 1 == self.turn_words):
                m.d.sync += self.taken.eq(0)
                m.d.sync += self.turn.eq(Mux(self.turn == self.count - 1, 0, self.turn + 1))
        return m


class FarCollector(wiring.Component):
    """A Collector whose inputs lie all over a chip: no input sees what another one does in the
    same cycle, but that the one before it passes on its turn.

    Each input counts the words of its turn itself. It sends them through a register that is zero
    at other times, so that they need only be ORed, and need not wait: inputs hear from one to the
    next, the last one first, whether the queue behind them has room for all that can be under way.
    On the same way goes the word that all have ended, and each then takes its own end.

    ``turn_words`` may change only between frames, two cycles before a word comes or earlier.
    Latency 4 cycles, one word a cycle; about 10 cycles between frames.
    """

    def __init__(self, shape, count, most):
        self.count = count
        # More than are under way until the last has heard that there is no room, and as many again.
        self.depth = 1 << (count + 11).bit_length()
        width = Shape.cast(shape).width
        super().__init__(
            {
                "turn_words": In(range(most + 1)),
                "i": In(stream.Signature(shape)).array(count),
                "o": Out(stream.Signature(shape)),
            }
        )
        # Attributes, so that a proof can look inside.
        self.turn = Signal(count, init=1)  # a bit for each input
        self.ended = Signal(count)  # inputs that wait with their ends
        self.sends = Signal(count)
        self.sent = [Signal(width, name=f"sent_{n}", reset_less=True) for n in range(count)]
        # What all inputs are told, and what each has heard: the last one first.
        self.room = Signal(count + 1)
        self.over = Signal(count + 1)
        self.come = Signal()
        self.word = Signal(shape, reset_less=True)
        self.out = ShortQueue(shape, self.depth)

    def elaborate(self, platform):
        m = Module()
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.o))
        room, over = self.room, self.over
        # Until the first input has heard of it, one word comes in each cycle; three are on their
        # way, and one place of the queue is never used.
        most = self.depth - 1 - (self.count + 1) - 3
        m.d.sync += room.eq(Cat(room[1:], out.level <= most))
        ends = self.ended.all() & room[-1] & ~over.any()
        m.d.sync += over.eq(Cat(over[1:], ends))
        for n, i in enumerate(self.i):
            self._input(m, n, i)
        m.d.sync += self.come.eq(self.sends.any() | over[-1])
        m.d.sync += Value.cast(self.word).eq(reduce(or_, self.sent))
        with m.If(over[-1]):
            m.d.sync += self.word.end.eq(1)
        m.d.comb += out.i.valid.eq(self.come)
        m.d.comb += out.i.payload.eq(self.word)
        return m

    def _input(self, m, n, i):
        """An input's own part, which lies near it."""
        count, room, over = self.count, self.room[n], self.over[n]
        moves, passes = Signal(name=f"moves_{n}"), Signal(name=f"passes_{n}")
        number = Signal.like(self.turn_words, name=f"number_{n}", init=1)  # of the next word
        goal = Signal.like(self.turn_words, name=f"goal_{n}")
        last = Signal(name=f"last_{n}")
        may = self.turn[n] & room & ~i.payload.end
        m.d.comb += moves.eq(may & i.valid)
        m.d.comb += i.ready.eq(may | over)
        m.d.sync += self.sends[n].eq(moves)
        m.d.sync += self.sent[n].eq(Mux(moves, Value.cast(i.payload), 0))
        m.d.sync += self.ended[n].eq(i.valid & i.payload.end & ~over)
        with m.If(moves):
            m.d.sync += number.eq(Mux(last, 1, number + 1))
            m.d.sync += last.eq(Mux(last, goal == 1, number + 1 == goal))
        with m.Elif(~i.valid):
            m.d.sync += goal.eq(self.turn_words)
            m.d.sync += last.eq(number == goal)
        m.d.comb += passes.eq(moves & last)
        with m.If(passes):
            m.d.sync += self.turn[n].eq(0)
            m.d.sync += self.turn[(n + 1) % count].eq(1)
        with m.If(over):
            m.d.sync += self.turn[n].eq(n == 0)
            m.d.sync += number.eq(1)
            m.d.sync += last.eq(goal == 1)
