"""Main arrays in block RAM, searched by all probers at once: banks of two-ported blocks."""

from functools import reduce
from operator import or_

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from hw.rtl.boundary_generator import bound_shape
from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import NO_COLLISIONS, BurstCounter, ReadPort, WritePort
from hw.rtl.plumbing import Buffer
from hw.rtl.searcher import Comparator, SearchPort
from hw.spec import JoinParams

__all__ = ["BankedMemory"]


class BankedMemory(wiring.Component):
    """``depth`` words of tuples in `BANKS` banks by address, each with keys and rids apart.

    searches  ports of probers. Half of them share one port of each bank's blocks, half the other
              one; the first of those that want the same bank is served, the others wait. A bound
              goes to its bank and is compared there: a word of keys is far wider than a bound. An
              answer comes 8 cycles and 2 `hops` after its request is taken, or later by the
              cycles that it waits for its bank
    read      bursts of whole words, before searches, a word a cycle; a word comes 8 cycles and
              2 `hops` after its request is taken
    write     a word a cycle, before all else; it is there three cycles and `hops` later, and
              whoever asks for it two cycles later has it

    Nothing chooses between banks or between ports: who is not meant sends zeros, and all are ORed.
    Zeros are a register's reset, a choice of four would be three LUTs for each bit.

    With `hops`, so many registers more are on the long ways: from who reads whole words to the
    choice of who has a bank, from there to the banks, and from the banks to who searches. A memory
    whose blocks lie all over a chip needs one.

    Requires that whoever reads has room and takes each word when it comes: words are not held; and
    that no word is read or searched before it is there.
    """

    BANKS = 4

    def __init__(self, params: JoinParams, depth, ports, *, hops=0):
        self.params = params
        self.hops = hops
        self.depth = depth
        self.address_bits = bits = exact_log2(depth)
        self.bank_bits = exact_log2(self.BANKS)
        word = word_layout(params)
        super().__init__(
            {
                "searches": In(SearchPort(params, bits)).array(ports),
                "read": In(ReadPort(word, bits)),
                "write": In(WritePort(word, bits)),
            }
        )
        # Attributes, so that a proof can look inside.
        self.counter = BurstCounter(bits)
        request = self.searches[0].requests.payload.shape()
        #: A request, and its bank as one bit of `BANKS`.
        self.ask = data.StructLayout({**dict(request.members), "banks": self.BANKS})
        #: Who waits for a bank stands near the banks, wherever the probers are.
        self.asking = [Buffer(self.ask) for _ in self.searches]
        rows = depth >> self.bank_bits
        key, rid = key_shape(params), word.elem_shape.members["rid"]
        self.keys = [self._cells(key, rows) for _ in range(self.BANKS)]
        self.rids = [self._cells(rid, rows) for _ in range(self.BANKS)]

    def _cells(self, shape, rows):
        width = Shape.cast(shape).width * self.params.lanes
        return Memory(shape=unsigned(width), depth=rows, init=[], attrs=NO_COLLISIONS)

    def elaborate(self, platform):
        m = Module()
        for n, (asking, port) in enumerate(zip(self.asking, self.searches, strict=True)):
            m.submodules[f"asking_{n}"] = asking
            self._ask(m, port.requests, asking.i)
        whole = self._whole(m)
        half = -(-len(self.searches) // 2)
        asks = [asking.o for asking in self.asking]
        # What goes to a bank, of who asks and of what is written; whether it goes, is chosen first.
        going = [self._hop(m, f"going_{n}", ask.payload) for n, ask in enumerate(asks)]
        readers = list(zip(asks, going, strict=True))
        sides = readers[:half], readers[half:]
        written = self._written(m)
        writes = self._hop(m, "writes", written)
        reads = self._hop(m, "reads", whole.address)
        later = Signal.like(written, reset_less=True)
        m.d.sync += later.eq(writes)
        grants, found, words = ([], []), ([], []), []
        for bank in range(self.BANKS):
            rows = []
            for side, readers in enumerate(sides):
                name = f"{bank}_{side}"
                # The second port of the blocks is also the one that writes.
                first = written.banks[bank] if side else whole.banks[bank]
                address = writes.write.address if side else reads
                granted, row, first_row, bound = self._arbitrate(
                    m, name, bank, readers, first, address
                )
                keys = self._search(m, name, bank, row, later if side else None)
                grants[side].append(granted)
                found[side].append(self._compare(m, name, bound, keys))
                rows.append((first_row, keys))
            (read_row, read_keys), (write_row, _) = rows
            words.append((read_keys, self._rids(m, bank, read_row, write_row, later)))
        for number, (port, asking) in enumerate(zip(self.searches, self.asking, strict=True)):
            side = int(number >= half)
            taken = Cat(granted[number - side * half] for granted in grants[side]).any()
            m.d.comb += asking.o.ready.eq(taken)
            self._answer(m, number, port, asking.o, found[side])
        self._deliver(m, whole, words)
        return m

    def _ask(self, m, requests, asks):
        banks = self._banks(requests.payload.address)
        if self.hops:
            # Of nobody no bank: who chooses need not look at more.
            banks = Mux(requests.valid, banks, 0)
        m.d.comb += [
            asks.valid.eq(requests.valid),
            requests.ready.eq(asks.ready),
            asks.payload.address.eq(requests.payload.address),
            asks.payload.bound.eq(requests.payload.bound),
            asks.payload.banks.eq(banks),
        ]

    def _banks(self, address):
        """The bank of an address, as one bit."""
        return Cat(address[: self.bank_bits] == bank for bank in range(self.BANKS))

    def _whole(self, m):
        """The address of a whole word that is asked for now; it came a cycle before, or more."""
        m.submodules.counter = counter = self.counter
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        whole = Signal(
            data.StructLayout({"valid": 1, "address": self.address_bits, "banks": self.BANKS})
        )
        m.d.comb += counter.addresses.ready.eq(1)
        m.d.sync += whole.valid.eq(counter.addresses.valid)
        m.d.sync += whole.address.eq(counter.addresses.payload)
        banks = self._banks(counter.addresses.payload)
        m.d.sync += whole.banks.eq(Mux(counter.addresses.valid, banks, 0))
        return self._hop(m, "whole", whole, lasts=False)

    def _written(self, m):
        """What is written now, and to which of the banks; it came a cycle before, so that who
        writes is far from who waits.
        """
        writes = self.write.writes
        # No reset takes back what has been taken to be written, and none is needed to begin with.
        written = Signal(
            data.StructLayout({"banks": self.BANKS, "write": writes.payload.shape()}),
            reset_less=True,
        )
        m.d.comb += writes.ready.eq(1)
        banks = self._banks(writes.payload.address)
        m.d.sync += written.banks.eq(Mux(writes.valid, banks, 0))
        m.d.sync += written.write.eq(writes.payload)
        return written

    def _arbitrate(self, m, name, bank, readers, first, address):
        """Who has this port of this bank now: the `first`, or one of the readers; two cycles and
        `hops` later the row of that one, that of the first, which alone has rids, and the bound.
        Address and requests are those of `hops` cycles before.
        """
        row = Signal(self.address_bits - self.bank_bits, name=f"row_{name}", reset_less=True)
        first_row = Signal.like(row, name=f"first_row_{name}", reset_less=True)
        bound = Signal(bound_shape(self.params), name=f"bound_{name}", reset_less=True)
        # Registers before and behind the choice, because blocks of one bank lie all over a chip.
        goes = self._hop(m, f"first_{name}", first)
        rows = [self._if(m, f"row_{name}_first", goes, address[self.bank_bits :])]
        bounds, grants = [], []
        taken = first
        for n, (reader, request) in enumerate(readers):
            wants = Signal(name=f"wants_{name}_{n}")
            grant = Signal(name=f"grant_{name}_{n}")
            there = C(1) if self.hops else reader.valid
            m.d.comb += wants.eq(there & reader.payload.banks[bank])
            m.d.comb += grant.eq(wants & ~taken)
            taken = taken | wants
            grants.append(grant)
            goes = self._hop(m, f"grant_{name}_{n}", grant)
            its_row = request.address[self.bank_bits :]
            rows.append(self._if(m, f"row_{name}_{n}", goes, its_row))
            bounds.append(self._if(m, f"bound_{name}_{n}", goes, request.bound))
        m.d.sync += row.eq(_any_of(rows))
        m.d.sync += first_row.eq(rows[0])
        m.d.sync += bound.eq(_any_of(bounds))
        return grants, row, first_row, bound

    def _if(self, m, name, meant, value):
        """A register of the value, or of zeros."""
        value = Value.cast(value)
        sent = Signal(len(value), name=f"sent_{name}", reset_less=True)
        m.d.sync += sent.eq(Mux(meant, value, 0))
        return sent

    def _search(self, m, name, bank, row, written):
        """The keys of that row, two cycles later; or the row is written, where anything is."""
        cells = self.keys[bank]
        read = cells.read_port()
        m.d.comb += read.addr.eq(row)
        if written is None:
            m.submodules[f"keys_{bank}"] = cells
        else:
            port = cells.write_port()
            self._write(m, f"keys_{bank}", port, row, bank, written, "key")
            m.d.comb += read.en.eq(~port.en)
        return self._taken(m, f"keys_{name}", read)

    def _write(self, m, name, port, row, bank, written, field):
        """Write the keys or the rids of a word, where the bank is meant; its row comes with it."""
        word = Signal.like(port.data, name=f"{name}_written", reset_less=True)
        m.d.sync += port.en.eq(written.banks[bank])
        m.d.sync += word.eq(Cat(lane[field] for lane in written.write.word))
        m.d.comb += port.addr.eq(row)
        m.d.comb += port.data.eq(word)

    def _rids(self, m, bank, read_row, write_row, written):
        """The rids of the row that is read, two cycles later; the other row may be written."""
        m.submodules[f"rids_{bank}"] = cells = self.rids[bank]
        self._write(m, f"rids_{bank}", cells.write_port(), write_row, bank, written, "rid")
        read = cells.read_port()
        m.d.comb += read.addr.eq(read_row)
        return self._taken(m, f"rids_{bank}_0", read)

    def _taken(self, m, name, read):
        """Block RAM is slow to answer: a register takes the word before it travels."""
        taken = Signal.like(read.data, name=name, reset_less=True)
        m.d.sync += taken.eq(read.data)
        return taken

    def _compare(self, m, name, bound, keys):
        """What a search finds here, four cycles and `hops` after its row; whose it is, it knows."""
        m.submodules[f"comparator_{name}"] = comparator = Comparator(self.params)
        waiting = [Signal.like(bound, name=f"waiting_{name}_{n}", reset_less=True)
                   for n in range(2)]
        m.d.sync += [waiting[0].eq(bound), waiting[1].eq(waiting[0])]
        m.d.comb += comparator.bound.eq(waiting[1])
        m.d.comb += Value.cast(comparator.keys).eq(keys)
        return self._hop(m, f"found_{name}", comparator.found.count)

    def _hop(self, m, name, value, *, lasts=True):
        """The same value `hops` cycles later; unless it `lasts`, a reset takes it back."""
        for n in range(self.hops):
            later = Signal.like(value, name=f"{name}_hop_{n}", reset_less=lasts)
            m.d.sync += later.eq(value)
            value = later
        return value

    def _answer(self, m, number, port, asked, found):
        """The count of the bank that the search went to, in its time."""
        taken = asked.valid & asked.ready
        cycles = 6 + 2 * self.hops
        here, bank = self._later(m, f"search_{number}", taken, asked.payload.address, cycles)
        m.d.sync += port.found.valid.eq(here)
        m.d.sync += port.found.count.eq(Array(found)[bank])

    def _deliver(self, m, whole, words):
        """Whole words, each from its bank; nobody else reads rids."""
        here, bank = self._later(m, "whole", whole.valid, whole.address, 3 + self.hops)
        meant = Signal(self.BANKS)
        m.d.sync += meant.eq(Mux(here, Cat(bank == number for number in range(self.BANKS)), 0))
        there, sent = Signal(), Signal()
        m.d.sync += there.eq(here)
        read = self.read.words
        m.d.sync += [sent.eq(there), read.valid.eq(sent)]
        parts = {"key": [], "rid": []}
        for number, word in enumerate(words):
            for (name, part), value in zip(parts.items(), word, strict=True):
                part.append(self._if(m, f"{name}s_{number}", meant[number], value))
        for lane in range(self.params.lanes):
            for name, part in parts.items():
                field = Value.cast(read.payload[lane][name])
                kept = Signal(len(field), name=f"{name}_{lane}", reset_less=True)
                m.d.sync += kept.eq(_any_of(part).word_select(lane, len(field)))
                m.d.comb += field.eq(kept)

    def _later(self, m, name, taken, address, cycles):
        """After so many cycles: whether a word was asked for, and its bank."""
        here, bank = taken, address[: self.bank_bits]
        for n in range(cycles):
            now, its_bank = here, bank
            here = Signal(name=f"{name}_here_{n}")
            bank = Signal(self.bank_bits, name=f"{name}_bank_{n}")
            m.d.sync += [here.eq(now), bank.eq(its_bank)]
        return here, bank


def _any_of(values):
    """The one of the values that is not zero."""
    return reduce(or_, values)
