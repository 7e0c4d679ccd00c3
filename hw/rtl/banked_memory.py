"""Main arrays in block RAM, read by all probers at once: banks of two-ported blocks."""

from amaranth.hdl import *
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In
from amaranth.utils import exact_log2

from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import BurstCounter, ReadPort, WritePort
from hw.spec import JoinParams

__all__ = ["BankedMemory"]


class BankedMemory(wiring.Component):
    """``depth`` words of tuples, keys and rids apart, the keys in `BANKS` banks by address.

    keys   read ports of probers: a request is for one word (its `count` is 1), whose rids read as
           zero. Half of the ports share one port of each bank's blocks, half the other one; the
           first of those that want the same bank is served, the others wait
    read   bursts of whole words, a word a cycle while the ports before it are still
    write  a word a cycle, before all reads

    A word comes 3 cycles after its request is taken. Requires that whoever asks has room and
    takes each word when it comes: words are not held.
    """

    BANKS = 4

    def __init__(self, params: JoinParams, depth, ports):
        self.params = params
        self.depth = depth
        self.address_bits = bits = exact_log2(depth)
        word = word_layout(params)
        super().__init__(
            {
                "keys": In(ReadPort(word, bits)).array(ports),
                "read": In(ReadPort(word, bits)),
                "write": In(WritePort(word, bits)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.counter = counter = BurstCounter(self.address_bits)
        wiring.connect(m, wiring.flipped(self.read.requests), counter.bursts)
        half = -(-len(self.keys) // 2)
        asks = [self._ask(port.requests) for port in self.keys]
        whole = (counter.addresses.valid, counter.addresses.payload, counter.addresses.ready)
        # What each port of the blocks serves, the first first.
        sides = ([*asks[:half], whole], asks[half:])
        fetched = self._banks(m, sides)
        for number, port in enumerate(self.keys):
            side = int(number >= half)
            words = fetched[side][number - side * half]
            self._deliver(m, port.words, words)
        self._deliver(m, self.read.words, fetched[0][half])
        self._rids(m, whole)
        m.d.comb += self.write.writes.ready.eq(1)
        return m

    @staticmethod
    def _ask(requests):
        return requests.valid, requests.payload.address, requests.ready

    def _banks(self, m, sides):
        """For both ports of the blocks, for each reader: whether its word is here, and its keys."""
        banks = exact_log2(self.BANKS)
        row = self.address_bits - banks
        width = key_shape(self.params).width * self.params.lanes
        write = self.write.writes
        new = Cat(lane.key for lane in write.payload.word)
        outputs = ([], [])
        served = [[C(0)] * len(asks) for asks in sides]
        for bank in range(self.BANKS):
            cells = Memory(shape=unsigned(width), depth=1 << row, init=[])
            m.submodules[f"bank_{bank}"] = cells
            writes = Signal(name=f"writes_{bank}")
            m.d.comb += writes.eq(write.valid & (write.payload.address[:banks] == bank))
            port = cells.write_port()
            m.d.comb += port.en.eq(writes)
            m.d.comb += port.data.eq(new)
            for side, asks in enumerate(sides):
                # The second port of the blocks is also the one that writes: one address.
                held = writes if side else C(0)
                grants, address = self._arbitrate(m, f"{bank}_{side}", bank, asks, held)
                if side:
                    m.d.comb += port.addr.eq(address)
                    with m.If(writes):
                        m.d.comb += address.eq(write.payload.address[banks:])
                read = cells.read_port()
                m.d.comb += read.en.eq(~held)
                m.d.comb += read.addr.eq(address)
                # Block RAM is slow to answer: a register takes the word before it travels.
                output = Signal(width, name=f"output_{bank}_{side}")
                m.d.sync += output.eq(read.data)
                outputs[side].append(output)
                served[side] = [s | g for s, g in zip(served[side], grants, strict=True)]
        return [
            [self._choose(m, f"{side}_{n}", ask, served[side][n], outputs[side])
             for n, ask in enumerate(asks)]
            for side, asks in enumerate(sides)
        ]

    def _arbitrate(self, m, name, bank, asks, held):
        """Which of the readers has this port of this bank now, and the row it wants."""
        banks = exact_log2(self.BANKS)
        address = Signal(self.address_bits - banks, name=f"address_{name}")
        grants = []
        taken = held
        for n, (valid, wanted, _) in enumerate(asks):
            wants = Signal(name=f"wants_{name}_{n}")
            grant = Signal(name=f"grant_{name}_{n}")
            m.d.comb += wants.eq(valid & (wanted[:banks] == bank))
            m.d.comb += grant.eq(wants & ~taken)
            taken = taken | wants
            grants.append(grant)
            with m.If(grant):
                m.d.comb += address.eq(wanted[banks:])
        return grants, address

    def _choose(self, m, name, ask, served, outputs):
        """The reader's word among what its side of the banks gave, two cycles after the grant."""
        _, wanted, ready = ask
        bits = exact_log2(self.BANKS)
        m.d.comb += ready.eq(served)
        bank = [Signal(bits, name=f"bank_of_{name}_{n}") for n in range(2)]
        here = [Signal(name=f"here_{name}_{n}") for n in range(2)]
        m.d.sync += [here[0].eq(served), here[1].eq(here[0])]
        m.d.sync += [bank[0].eq(wanted[:bits]), bank[1].eq(bank[0])]
        return here[1], Array(outputs)[bank[1]]

    def _deliver(self, m, words, fetched):
        here, keys = fetched
        key = data.ArrayLayout(key_shape(self.params), self.params.lanes)
        chosen = Signal(key)
        m.d.comb += chosen.eq(keys)
        m.d.comb += words.valid.eq(here)
        for lane in range(self.params.lanes):
            m.d.comb += words.payload[lane].key.eq(chosen[lane])

    def _rids(self, m, whole):
        """The rids, which only whole words show."""
        write = self.write.writes
        shape = data.ArrayLayout(self.read.words.payload[0].rid.shape(), self.params.lanes)
        m.submodules.rids = cells = Memory(
            shape=unsigned(shape.size), depth=self.depth, init=[]
        )
        port = cells.write_port()
        m.d.comb += port.en.eq(write.valid)
        m.d.comb += port.addr.eq(write.payload.address)
        m.d.comb += port.data.eq(Cat(lane.rid for lane in write.payload.word))
        read = cells.read_port()
        _, address, _ = whole
        m.d.comb += read.addr.eq(address)
        output = Signal(shape)
        m.d.sync += output.eq(read.data)
        for lane in range(self.params.lanes):
            m.d.comb += self.read.words.payload[lane].rid.eq(output[lane])
