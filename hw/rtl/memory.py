"""Memory behind one type of port: bursts of words out, addressed words in.

Whoever owns a main array sees a ReadPort and a WritePort and cannot tell block RAM from SDRAM.
"""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from hw.rtl.plumbing import Arbiter, Buffer, Queue, ShortQueue

__all__ = [
    "NO_COLLISIONS",
    "burst_layout",
    "write_layout",
    "ReadPort",
    "WritePort",
    "ReadShare",
    "WriteShare",
    "BlockMemory",
    "SlowMemory",
]

#: Attributes of a memory no word of which is read while it is written: synthesis then needs no
#: logic around block RAM for what it reads in such a cycle.
NO_COLLISIONS = {"no_rw_check": 1}


def burst_layout(address_bits):
    """A read request: `count` >= 1 words from `address` on."""
    return data.StructLayout({"address": address_bits, "count": address_bits + 1})


def write_layout(word, address_bits):
    """A word and where it goes."""
    return data.StructLayout({"address": address_bits, "word": word})


class ReadPort(wiring.Signature):
    """The reader's side: ``requests`` of `count` >= 1 words from `address`; ``words`` come back.

    Words come in the order of the requests, without marks between bursts. Any number of requests
    may wait. A word written by a token that was taken before the request was is seen; one that is
    written while it is read reads as anything.
    """

    def __init__(self, word, address_bits):
        self.word = word
        self.address_bits = address_bits
        burst = burst_layout(address_bits)
        super().__init__(
            {"requests": Out(stream.Signature(burst)), "words": In(stream.Signature(word))}
        )


class WritePort(wiring.Signature):
    """The writer's side: ``writes``, each a `word` and its `address`."""

    def __init__(self, word, address_bits):
        self.word = word
        self.address_bits = address_bits
        super().__init__({"writes": Out(stream.Signature(write_layout(word, address_bits)))})


class BurstCounter(wiring.Component):
    """Bursts to single addresses, one a cycle, one cycle of latency, no gap between bursts."""

    def __init__(self, address_bits):
        burst = burst_layout(address_bits)
        super().__init__(
            {
                "bursts": In(stream.Signature(burst)),
                "addresses": Out(stream.Signature(address_bits)),
            }
        )
        # Attributes, here and below, so that a proof can count what is inside.
        self.left = Signal(address_bits + 1)

    def elaborate(self, platform):
        m = Module()
        left = self.left
        last = Signal()
        m.d.comb += self.addresses.valid.eq(left != 0)
        m.d.comb += last.eq((left == 0) | ((left == 1) & self.addresses.ready))
        m.d.comb += self.bursts.ready.eq(last)
        with m.If(self.bursts.valid & self.bursts.ready):
            m.d.sync += left.eq(self.bursts.payload.count)
            m.d.sync += self.addresses.payload.eq(self.bursts.payload.address)
        with m.Elif(self.addresses.valid & self.addresses.ready):
            m.d.sync += left.eq(left - 1)
            m.d.sync += self.addresses.payload.eq(self.addresses.payload + 1)
        return m


class ReadShare(wiring.Component):
    """``readers`` share one ``port``: whole bursts in turn, each reader's words back to it.

    Requires that a reader has room for what it asks for: one that does not take its words holds
    up all. One word a cycle; adds 2 cycles to a request.
    """

    #: Bursts under way.
    TICKETS = 16

    def __init__(self, word, address_bits, count):
        self.word = word
        self.address_bits = address_bits
        self.count = count
        super().__init__(
            {
                "readers": In(ReadPort(word, address_bits)).array(count),
                "port": Out(ReadPort(word, address_bits)),
            }
        )
        #: Who waits for how many words.
        self.ticket = data.StructLayout({"source": range(count), "count": address_bits + 1})
        self.arbiter = Arbiter(burst_layout(address_bits), count)
        self.tickets = ShortQueue(self.ticket, self.TICKETS)
        self.requests = Buffer(burst_layout(address_bits))
        self.done = Signal(address_bits + 1)  # words of the first ticket that went back

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter = arbiter = self.arbiter
        for i, reader in zip(arbiter.i, self.readers, strict=True):
            wiring.connect(m, wiring.flipped(reader.requests), i)
        m.submodules.tickets = tickets = self.tickets
        m.submodules.requests = requests = self.requests
        wiring.connect(m, requests.o, wiring.flipped(self.port.requests))
        m.d.comb += [
            arbiter.o.ready.eq(tickets.i.ready & requests.i.ready),
            tickets.i.valid.eq(arbiter.o.valid & requests.i.ready),
            tickets.i.payload.source.eq(arbiter.o.payload.source),
            tickets.i.payload.count.eq(arbiter.o.payload.payload.count),
            requests.i.valid.eq(arbiter.o.valid & tickets.i.ready),
            requests.i.payload.eq(arbiter.o.payload.payload),
        ]

        done = self.done
        words = self.port.words
        for number, reader in enumerate(self.readers):
            mine = tickets.o.valid & (tickets.o.payload.source == number)
            m.d.comb += reader.words.payload.eq(words.payload)
            m.d.comb += reader.words.valid.eq(words.valid & mine)
            with m.If(mine):
                m.d.comb += words.ready.eq(reader.words.ready)
        with m.If(words.valid & words.ready):
            m.d.sync += done.eq(done + 1)
            with m.If(done + 1 == tickets.o.payload.count):
                m.d.sync += done.eq(0)
                m.d.comb += tickets.o.ready.eq(1)
        return m


class WriteShare(wiring.Component):
    """``writers`` share one ``port``, word by word in turn: one word a cycle, 1 cycle more."""

    def __init__(self, word, address_bits, count):
        self.word = word
        self.address_bits = address_bits
        self.count = count
        super().__init__(
            {
                "writers": In(WritePort(word, address_bits)).array(count),
                "port": Out(WritePort(word, address_bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        write = write_layout(self.word, self.address_bits)
        m.submodules.arbiter = arbiter = Arbiter(write, self.count)
        for i, writer in zip(arbiter.i, self.writers, strict=True):
            wiring.connect(m, wiring.flipped(writer.writes), i)
        m.d.comb += [
            self.port.writes.valid.eq(arbiter.o.valid),
            self.port.writes.payload.eq(arbiter.o.payload.payload),
            arbiter.o.ready.eq(self.port.writes.ready),
        ]
        return m


class BlockMemory(wiring.Component):
    """``depth`` words of block RAM behind a ReadPort ``read`` and a WritePort ``write``.

    One word a cycle each way at the same time; a burst's first word comes 3 cycles after its
    request. Unless words are `held`, whoever reads has room and takes each when it comes.
    """

    def __init__(self, word, depth, *, held=True):
        self.held = held
        self.word = word
        self.depth = depth
        self.address_bits = bits = max(1, (depth - 1).bit_length())
        super().__init__({"read": In(ReadPort(word, bits)), "write": In(WritePort(word, bits))})
        self.counter = BurstCounter(bits)
        self.fetched = Signal()
        self.out = Buffer(word) if held else None

    def elaborate(self, platform):
        m = Module()
        width = Shape.cast(self.word).width
        m.submodules.cells = cells = Memory(
            shape=unsigned(width), depth=self.depth, init=[], attrs=NO_COLLISIONS
        )
        m.submodules.counter = counter = self.counter
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        write_port = cells.write_port()
        m.d.comb += self.write.writes.ready.eq(1)
        m.d.comb += write_port.en.eq(self.write.writes.valid)
        m.d.comb += write_port.addr.eq(self.write.writes.payload.address)
        m.d.comb += write_port.data.eq(Value.cast(self.write.writes.payload.word))

        read_port = cells.read_port()
        fetched = self.fetched
        m.d.comb += read_port.addr.eq(counter.addresses.payload)
        if not self.held:
            m.d.comb += counter.addresses.ready.eq(1)
            m.d.sync += fetched.eq(counter.addresses.valid)
            m.d.sync += self.read.words.valid.eq(fetched)
            taken = Signal.like(read_port.data, reset_less=True)
            m.d.sync += taken.eq(read_port.data)
            m.d.comb += Value.cast(self.read.words.payload).eq(taken)
            return m
        m.submodules.out = out = self.out
        wiring.connect(m, out.o, wiring.flipped(self.read.words))
        advance = Signal()
        m.d.comb += advance.eq(~fetched | out.i.ready)
        m.d.comb += read_port.en.eq(advance)
        m.d.comb += counter.addresses.ready.eq(advance)
        m.d.comb += out.i.valid.eq(fetched)
        m.d.comb += Value.cast(out.i.payload).eq(read_port.data)
        with m.If(advance):
            m.d.sync += fetched.eq(counter.addresses.valid)
        return m


class SlowMemory(wiring.Component):
    """Block RAM that behaves like SDRAM, for simulation: the same ports as BlockMemory.

    latency_cycles  from a request to its first word, beyond block RAM's own
    refresh_every   after so many cycles nothing moves for `refresh_cycles`
    shared          reads and writes share one word a cycle; writes give way after 16 in a row
    """

    RUN = 16

    def __init__(self, word, depth, *, latency_cycles=12, refresh_every=512, refresh_cycles=16,
                 shared=True):
        self.word = word
        self.latency_cycles = latency_cycles
        self.refresh_every = refresh_every
        self.refresh_cycles = refresh_cycles
        self.shared = shared
        self.cells = BlockMemory(word, depth)
        self.address_bits = bits = self.cells.address_bits
        super().__init__({"read": In(ReadPort(word, bits)), "write": In(WritePort(word, bits))})

    def elaborate(self, platform):
        m = Module()
        m.submodules.cells = cells = self.cells
        bits = self.address_bits
        m.submodules.counter = counter = BurstCounter(bits)
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        refreshing = self._refresh(m)
        may_read, may_write = self._arbitrate(m, counter.addresses.valid)

        # An address waits its latency in a queue, with the time at which it may go on.
        waiting = Queue(data.StructLayout({"address": bits, "due": 16}), self.latency_cycles + 4)
        m.submodules.waiting = waiting
        now = Signal(16)
        m.d.sync += now.eq(now + 1)
        grant = Signal()
        m.d.comb += grant.eq(may_read & ~refreshing)
        m.d.comb += waiting.i.valid.eq(counter.addresses.valid & grant)
        m.d.comb += counter.addresses.ready.eq(waiting.i.ready & grant)
        m.d.comb += waiting.i.payload.address.eq(counter.addresses.payload)
        m.d.comb += waiting.i.payload.due.eq(now + self.latency_cycles)

        due = Signal()
        m.d.comb += due.eq((now - waiting.o.payload.due).as_signed() >= 0)
        m.d.comb += cells.read.requests.payload.address.eq(waiting.o.payload.address)
        m.d.comb += cells.read.requests.payload.count.eq(1)
        # Due once, due for as long as it waits: a time of 16 bits must not wrap meanwhile.
        overdue = Signal()
        m.d.sync += overdue.eq(waiting.o.valid & ~waiting.o.ready & (due | overdue))
        m.d.comb += cells.read.requests.valid.eq(waiting.o.valid & (due | overdue))
        m.d.comb += waiting.o.ready.eq(cells.read.requests.ready & (due | overdue))
        wiring.connect(m, cells.read.words, wiring.flipped(self.read.words))

        pass_write = Signal()
        m.d.comb += pass_write.eq(may_write & ~refreshing)
        m.d.comb += cells.write.writes.payload.eq(self.write.writes.payload)
        m.d.comb += cells.write.writes.valid.eq(self.write.writes.valid & pass_write)
        m.d.comb += self.write.writes.ready.eq(cells.write.writes.ready & pass_write)
        return m

    def _refresh(self, m):
        timer = Signal(range(self.refresh_every + self.refresh_cycles))
        refreshing = Signal()
        m.d.comb += refreshing.eq(timer >= self.refresh_every)
        m.d.sync += timer.eq(timer + 1)
        with m.If(timer == self.refresh_every + self.refresh_cycles - 1):
            m.d.sync += timer.eq(0)
        return refreshing

    def _arbitrate(self, m, wants_read):
        """Runs of up to RUN of one kind, while the other waits."""
        if not self.shared:
            return C(1), C(1)
        wants_write = self.write.writes.valid
        writing = Signal()
        run = Signal(range(self.RUN + 1))
        with m.If(Mux(writing, ~wants_write, ~wants_read) | (run == self.RUN)):
            with m.If(Mux(writing, wants_read, wants_write)):
                m.d.sync += writing.eq(~writing)
            m.d.sync += run.eq(0)
        with m.Else():
            m.d.sync += run.eq(run + 1)
        return ~writing, writing
