"""Main arrays in block RAM, searched by all probers at once: banks of two-ported blocks."""

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from hw.rtl.boundary_generator import bound_shape
from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import NO_COLLISIONS, BurstCounter, ReadPort, WritePort
from hw.rtl.searcher import Comparator, SearchPort
from hw.spec import JoinParams

__all__ = ["BankedMemory"]


class BankedMemory(wiring.Component):
    """``depth`` words of tuples, keys and rids apart, the keys in `BANKS` banks by address.

    searches  ports of probers. Half of them share one port of each bank's blocks, half the other
              one; the first of those that want the same bank is served, the others wait. A bound
              goes to its bank and is compared there: a word of keys is far wider than a bound. An
              answer comes 6 cycles after its request is taken
    read      bursts of whole words, before searches, a word a cycle; a word comes 4 cycles after
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
        width = key_shape(params).width * params.lanes
        self.keys = [
            Memory(shape=unsigned(width), depth=depth >> self.bank_bits, init=[],
                   attrs=NO_COLLISIONS)
            for _ in range(self.BANKS)
        ]

    def elaborate(self, platform):
        m = Module()
        m.submodules.counter = counter = self.counter
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        whole = counter.addresses
        half = -(-len(self.searches) // 2)
        # What each port of the blocks serves, the first first: (valid, address, bound or none).
        asks = [
            (port.requests.valid, port.requests.payload.address, port.requests.payload.bound)
            for port in self.searches
        ]
        sides = ([(whole.valid, whole.payload, None), *asks[:half]], asks[half:])
        written = self._written(m)
        grants, words, found = ([], []), ([], []), ([], [])
        for bank in range(self.BANKS):
            m.submodules[f"bank_{bank}"] = cells = self.keys[bank]
            writes = Signal(name=f"writes_{bank}")
            m.d.comb += writes.eq(
                written.valid & (written.write.address[: self.bank_bits] == bank)
            )
            for side, readers in enumerate(sides):
                name = f"{bank}_{side}"
                # The second port of the blocks is also the one that writes.
                held = writes if side else C(0)
                granted, row, bound = self._arbitrate(m, name, bank, readers, held)
                keys = self._fetch(m, name, cells, row, held, written.write)
                grants[side].append(granted[-half:])
                words[side].append(keys)
                found[side].append(self._compare(m, name, bound, keys))
        for number, port in enumerate(self.searches):
            side = int(number >= half)
            taken = Cat(granted[number - side * half] for granted in grants[side]).any()
            m.d.comb += port.requests.ready.eq(taken)
            self._answer(m, number, port, found[side])
        m.d.comb += whole.ready.eq(1)
        self._deliver(m, whole, words[0], self._rids(m, whole.payload, written))
        return m

    def _written(self, m):
        """What is written now: it came a cycle before, so that who writes is far from who waits."""
        writes = self.write.writes
        written = Signal(data.StructLayout({"valid": 1, "write": writes.payload.shape()}))
        m.d.comb += writes.ready.eq(1)
        m.d.sync += written.valid.eq(writes.valid)
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

    def _fetch(self, m, name, cells, row, held, write):
        """The keys of that row, two cycles later; or the row is written, where one is `held`."""
        read = cells.read_port()
        m.d.comb += read.addr.eq(row)
        if not isinstance(held, Const):
            port = cells.write_port()
            m.d.sync += port.en.eq(held)
            m.d.comb += port.addr.eq(row)
            with m.If(held):
                m.d.sync += row.eq(write.address[self.bank_bits :])
                m.d.sync += port.data.eq(Cat(lane.key for lane in write.word))
            m.d.comb += read.en.eq(~port.en)
        # Block RAM is slow to answer: a register takes the word before it travels.
        keys = Signal(
            data.ArrayLayout(key_shape(self.params), self.params.lanes), name=f"keys_{name}"
        )
        m.d.sync += Value.cast(keys).eq(read.data)
        return keys

    def _compare(self, m, name, bound, keys):
        """What a search finds here, four cycles after its row; whose it is, it knows."""
        m.submodules[f"comparator_{name}"] = comparator = Comparator(self.params)
        waiting = [Signal.like(bound, name=f"bound_{name}_{n}") for n in range(2)]
        m.d.sync += [waiting[0].eq(bound), waiting[1].eq(waiting[0])]
        m.d.comb += comparator.bound.eq(waiting[1])
        m.d.comb += comparator.keys.eq(keys)
        return comparator.found.count

    def _answer(self, m, number, port, found):
        """The count of the bank that the search went to, in its time."""
        taken = port.requests.valid & port.requests.ready
        here, bank = self._later(m, f"search_{number}", taken, port.requests.payload.address, 5)
        m.d.sync += port.found.valid.eq(here)
        m.d.sync += port.found.count.eq(Array(found)[bank])

    def _deliver(self, m, whole, keys, rids):
        """Whole words, whose rids nobody else reads."""
        words, lanes = self.read.words, self.params.lanes
        here, bank = self._later(m, "whole", whole.valid, whole.payload, 3)
        chosen = Signal.like(keys[0], name="whole_keys")
        m.d.comb += Value.cast(chosen).eq(Array(Value.cast(bank_keys) for bank_keys in keys)[bank])
        m.d.comb += words.valid.eq(here)
        for lane in range(lanes):
            m.d.comb += words.payload[lane].key.eq(chosen[lane])
            m.d.comb += words.payload[lane].rid.eq(rids[lane])

    def _later(self, m, name, taken, address, cycles):
        """After so many cycles: whether a word was asked for, and its bank."""
        here, bank = taken, address[: self.bank_bits]
        for n in range(cycles):
            now, its_bank = here, bank
            here = Signal(name=f"{name}_here_{n}")
            bank = Signal(self.bank_bits, name=f"{name}_bank_{n}")
            m.d.sync += [here.eq(now), bank.eq(its_bank)]
        return here, bank

    def _rids(self, m, address, written):
        """The rids of a word, three cycles later."""
        rid = self.read.words.payload[0].rid.shape()
        shape = data.ArrayLayout(rid, self.params.lanes)
        m.submodules.rids = cells = Memory(
            shape=unsigned(shape.size), depth=self.depth, init=[], attrs=NO_COLLISIONS
        )
        port = cells.write_port()
        m.d.sync += port.en.eq(written.valid)
        m.d.sync += port.addr.eq(written.write.address)
        m.d.sync += port.data.eq(Cat(lane.rid for lane in written.write.word))
        read = cells.read_port()
        m.d.sync += read.addr.eq(address)
        rids = Signal(shape)
        m.d.sync += Value.cast(rids).eq(read.data)
        return rids
