"""The indexer of the insertion engine (PanJoin III-D, IV)."""

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.rtl.layouts import check_geometry, key_shape, word_layout
from hw.rtl.memory import WritePort
from hw.spec import JoinParams

__all__ = ["Indexer", "index_address_bits"]


def index_address_bits(params: JoinParams, address_bits):
    """Address bits of the index arrays that belong to main arrays in that many address bits."""
    return max(1, address_bits - _partition_bits(params))


def _partition_bits(params):
    """Address bits of a word inside its partition."""
    return exact_log2(params.partition_rows // params.lanes)


class Indexer(wiring.Component):
    """Passes the words of a main array from ``merged`` on to ``main`` and writes the first key of
    each partition to ``index``, the index array: entry p is the key of tuple p * partition_rows.

    The index array of the main array at word `a` begins at entry a * lanes / partition_rows, so
    that each copy of a main array has an index array of its own. Words may come in any order.

    Latency 0, one word a cycle.
    """

    def __init__(self, params: JoinParams, address_bits):
        check_geometry(params)
        self.params = params
        word = word_layout(params)
        index_bits = index_address_bits(params, address_bits)
        super().__init__(
            {
                "merged": In(WritePort(word, address_bits)),
                "main": Out(WritePort(word, address_bits)),
                "index": Out(WritePort(key_shape(params), index_bits)),
            }
        )
        # Attributes, so that a proof can look inside.
        self.main_has = Signal()
        self.index_has = Signal()

    def elaborate(self, platform):
        m = Module()
        merged, main, index = self.merged.writes, self.main.writes, self.index.writes
        within = _partition_bits(self.params)
        first = Signal()  # this word begins a partition
        m.d.comb += first.eq(merged.payload.address[:within] == 0)
        # Each of the two takes its part in its own time; the word goes when both have it.
        main_has = self.main_has
        index_has = self.index_has
        m.d.comb += [
            main.payload.eq(merged.payload),
            main.valid.eq(merged.valid & ~main_has),
            index.payload.address.eq(merged.payload.address >> within),
            index.payload.word.eq(merged.payload.word[0].key),
            index.valid.eq(merged.valid & first & ~index_has),
        ]
        main_done = main_has | main.ready
        index_done = index_has | index.ready | ~first
        m.d.comb += merged.ready.eq(main_done & index_done)
        with m.If(merged.valid):
            m.d.sync += main_has.eq(main_done & ~index_done)
            m.d.sync += index_has.eq(first & index_done & ~main_done)
        return m
