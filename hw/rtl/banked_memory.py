"""Main arrays in block RAM, searched by all probers at once: banks of two-ported blocks."""

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
              answer comes 7 cycles after its request is taken, or later by the cycles that it
              waits for its bank
    read      bursts of whole words, before searches, a word a cycle; a word comes 6 cycles after
              its request is taken
    write     a word a cycle, before all else; it is there two cycles later

    Requires that whoever reads has room and takes each word when it comes: words are not held; and
    that no word is read or searched before it is there.
    """

    BANKS = 4

    def __init__(self, params: JoinParams, depth, ports):
        self.params = params
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
        #: Who waits for a bank stands near the banks, wherever the probers are.
        self.asking = [Buffer(port.requests.payload.shape()) for port in self.searches]
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
            wiring.connect(m, wiring.flipped(port.requests), asking.i)
        whole = self._whole(m)
        half = -(-len(self.searches) // 2)
        # What each port of the blocks serves, the first first: (valid, address, bound or none).
        asks = [
            (asking.o.valid, asking.o.payload.address, asking.o.payload.bound)
            for asking in self.asking
        ]
        sides = ([(whole.valid, whole.address, None), *asks[:half]], asks[half:])
        written = self._written(m)
        grants, found, words = ([], []), ([], []), []
        for bank in range(self.BANKS):
            rows = []
            for side, readers in enumerate(sides):
                name = f"{bank}_{side}"
                # The second port of the blocks is also the one that writes.
                held = written.banks[bank] if side else C(0)
                granted, row, bound = self._arbitrate(m, name, bank, readers, held)
                keys = self._search(m, name, bank, row, held, written)
                grants[side].append(granted[-half:])
                found[side].append(self._compare(m, name, bound, keys))
                rows.append((row, keys))
            (read_row, read_keys), (write_row, _) = rows
            words.append((read_keys, self._rids(m, bank, read_row, write_row, written)))
        for number, (port, asking) in enumerate(zip(self.searches, self.asking, strict=True)):
            side = int(number >= half)
            taken = Cat(granted[number - side * half] for granted in grants[side]).any()
            m.d.comb += asking.o.ready.eq(taken)
            self._answer(m, number, port, asking.o, found[side])
        self._deliver(m, whole, words)
        return m

    def _whole(self, m):
        """The address of a whole word that is asked for now; it came a cycle before."""
        m.submodules.counter = counter = self.counter
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        whole = Signal(data.StructLayout({"valid": 1, "address": self.address_bits}))
        m.d.comb += counter.addresses.ready.eq(1)
        m.d.sync += whole.valid.eq(counter.addresses.valid)
        m.d.sync += whole.address.eq(counter.addresses.payload)
        return whole

    def _written(self, m):
        """What is written now, and to which of the banks; it came a cycle before, so that who
        writes is far from who waits.
        """
        writes = self.write.writes
        written = Signal(
            data.StructLayout({"banks": self.BANKS, "write": writes.payload.shape()})
        )
        m.d.comb += writes.ready.eq(1)
        for bank in range(self.BANKS):
            here = writes.payload.address[: self.bank_bits] == bank
            m.d.sync += written.banks[bank].eq(writes.valid & here)
        m.d.sync += written.write.eq(writes.payload)
        return written

    def _arbitrate(self, m, name, bank, readers, held):
        """Who has this port of this bank now; a cycle later the row and the bound of that one."""
        row = Signal(self.address_bits - self.bank_bits, name=f"row_{name}")
        bound = Signal(bound_shape(self.params), name=f"bound_{name}")
        grants = []
        taken = held
        for n, (valid, address, wanted) in enumerate(readers):
            wants = Signal(name=f"wants_{name}_{n}")
            grant = Signal(name=f"grant_{name}_{n}")
            m.d.comb += wants.eq(valid & (address[: self.bank_bits] == bank))
            m.d.comb += grant.eq(wants & ~taken)
            taken = taken | wants
            grants.append(grant)
            # Registers, because blocks of one bank lie all over a chip.
            with m.If(grant):
                m.d.sync += row.eq(address[self.bank_bits :])
                if wanted is not None:
                    m.d.sync += bound.eq(wanted)
        return grants, row, bound

    def _search(self, m, name, bank, row, held, written):
        """The keys of that row, two cycles later; or the row is written, where one is `held`."""
        cells = self.keys[bank]
        read = cells.read_port()
        m.d.comb += read.addr.eq(row)
        if isinstance(held, Const):
            m.submodules[f"keys_{bank}"] = cells
        else:
            port = cells.write_port()
            m.d.sync += port.en.eq(held)
            m.d.comb += port.addr.eq(row)
            with m.If(held):
                m.d.sync += row.eq(written.write.address[self.bank_bits :])
                m.d.sync += port.data.eq(Cat(lane.key for lane in written.write.word))
            m.d.comb += read.en.eq(~port.en)
        return self._taken(m, f"keys_{name}", read)

    def _rids(self, m, bank, read_row, write_row, written):
        """The rids of the row that is read, two cycles later; the other row may be written."""
        m.submodules[f"rids_{bank}"] = cells = self.rids[bank]
        port = cells.write_port()
        m.d.sync += port.en.eq(written.banks[bank])
        m.d.comb += port.addr.eq(write_row)
        with m.If(written.banks[bank]):
            m.d.sync += port.data.eq(Cat(lane.rid for lane in written.write.word))
        read = cells.read_port()
        m.d.comb += read.addr.eq(read_row)
        return self._taken(m, f"rids_{bank}_0", read)

    def _taken(self, m, name, read):
        """Block RAM is slow to answer: a register takes the word before it travels."""
        taken = Signal.like(read.data, name=name)
        m.d.sync += taken.eq(read.data)
        return taken

    def _compare(self, m, name, bound, keys):
        """What a search finds here, four cycles after its row; whose it is, it knows."""
        m.submodules[f"comparator_{name}"] = comparator = Comparator(self.params)
        waiting = [Signal.like(bound, name=f"bound_{name}_{n}") for n in range(2)]
        m.d.sync += [waiting[0].eq(bound), waiting[1].eq(waiting[0])]
        m.d.comb += comparator.bound.eq(waiting[1])
        m.d.comb += Value.cast(comparator.keys).eq(keys)
        return comparator.found.count

    def _answer(self, m, number, port, asked, found):
        """The count of the bank that the search went to, in its time."""
        taken = asked.valid & asked.ready
        here, bank = self._later(m, f"search_{number}", taken, asked.payload.address, 5)
        m.d.sync += port.found.valid.eq(here)
        m.d.sync += port.found.count.eq(Array(found)[bank])

    def _deliver(self, m, whole, words):
        """Whole words, each from its bank; nobody else reads rids."""
        lanes, read = self.params.lanes, self.read.words
        here, bank = self._later(m, "whole", whole.valid, whole.address, 3)
        m.d.sync += read.valid.eq(here)
        keys = Array(keys for keys, _ in words)[bank]
        rids = Array(rids for _, rids in words)[bank]
        for lane in range(lanes):
            for name, part in (("key", keys), ("rid", rids)):
                field = Value.cast(read.payload[lane][name])
                m.d.sync += field.eq(part.word_select(lane, len(field)))

    def _later(self, m, name, taken, address, cycles):
        """After so many cycles: whether a word was asked for, and its bank."""
        here, bank = taken, address[: self.bank_bits]
        for n in range(cycles):
            now, its_bank = here, bank
            here = Signal(name=f"{name}_here_{n}")
            bank = Signal(self.bank_bits, name=f"{name}_bank_{n}")
            m.d.sync += [here.eq(now), bank.eq(its_bank)]
        return here, bank
