"""Searches inside one memory word: how many of its keys come before a bound."""

from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.boundary_generator import bound_shape
from hw.rtl.layouts import key_shape, word_layout
from hw.rtl.memory import ReadPort
from hw.rtl.plumbing import ShortQueue
from hw.rtl.seeker import comes_before
from hw.spec import JoinParams

__all__ = ["SearchPort", "Searcher", "Comparator"]


class SearchPort(wiring.Signature):
    """The prober's side: ``requests``, each a `bound` and the `address` of a memory word whose
    keys ascend. ``found`` tells in the order of the requests how many of the word's first keys
    come before the bound: `count`, in cycles that are `valid`. It does not wait for anybody.
    """

    def __init__(self, params: JoinParams, address_bits):
        request = data.StructLayout({"address": address_bits, "bound": bound_shape(params)})
        found = data.StructLayout({"valid": 1, "count": range(params.lanes + 1)})
        super().__init__({"requests": Out(stream.Signature(request)), "found": In(found)})


class Comparator(wiring.Component):
    """The number of ``keys`` before the first that does not come before ``bound``: ``found``, two
    cycles later.
    """

    def __init__(self, params: JoinParams):
        self.params = params
        super().__init__(
            {
                "valid": In(1),
                "bound": In(bound_shape(params)),
                "keys": In(data.ArrayLayout(key_shape(params), params.lanes)),
                "found": Out(SearchPort(params, 1).members["found"].shape),
            }
        )
        self.compared = Signal()

    def elaborate(self, platform):
        m = Module()
        lanes = self.params.lanes
        before = Signal(lanes)
        for lane in range(lanes):
            m.d.sync += before[lane].eq(comes_before(self.keys[lane], self.bound))
        m.d.sync += self.compared.eq(self.valid)
        m.d.sync += self.found.valid.eq(self.compared)
        # What lies behind the main array's last tuple may be anything: only the first keys count.
        m.d.sync += self.found.count.eq(lanes)
        for lane in reversed(range(lanes)):
            with m.If(~before[lane]):
                m.d.sync += self.found.count.eq(lane)
        return m


class Searcher(wiring.Component):
    """Answers ``search`` by reading each word through ``read``, a port of any memory.

    Requires that at most `DEPTH` - 2 searches are under way, and none is asked for in the first
    cycle after a reset: a WordProber has no room for more.
    One search a cycle, latency 3 cycles and memory's.
    """

    DEPTH = 16

    def __init__(self, params: JoinParams, address_bits):
        super().__init__(
            {
                "search": In(SearchPort(params, address_bits)),
                "read": Out(ReadPort(word_layout(params), address_bits)),
            }
        )
        self.params = params
        # Whatever holds a search, for proofs.
        self.bounds = ShortQueue(bound_shape(params), self.DEPTH)
        self.met = Signal()
        self.comparator = Comparator(params)

    def elaborate(self, platform):
        m = Module()
        m.submodules.bounds = bounds = self.bounds
        m.submodules.comparator = comparator = self.comparator
        asked, request, words = self.search.requests, self.read.requests, self.read.words
        m.d.comb += [
            asked.ready.eq(request.ready),
            request.valid.eq(asked.valid),
            request.payload.address.eq(asked.payload.address),
            request.payload.count.eq(1),
            bounds.i.valid.eq(asked.valid & request.ready),
            bounds.i.payload.eq(asked.payload.bound),
            # A memory may answer before the bound has passed the queue.
            words.ready.eq(bounds.o.valid),
            bounds.o.ready.eq(words.valid),
            comparator.valid.eq(self.met),
            self.search.found.eq(comparator.found),
        ]
        bound = Signal.like(comparator.bound)
        keys = Signal.like(comparator.keys)
        m.d.sync += self.met.eq(words.valid & bounds.o.valid)
        m.d.sync += bound.eq(bounds.o.payload)
        m.d.sync += [keys[n].eq(words.payload[n].key) for n in range(self.params.lanes)]
        m.d.comb += [comparator.bound.eq(bound), comparator.keys.eq(keys)]
        return m
