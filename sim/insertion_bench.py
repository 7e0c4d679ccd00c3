"""The insertion engine with its memories: what the benches and the cycle figures run."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.insertion_engine import InsertionEngine, insertion_layout
from hw.rtl.layouts import key_shape, row_count, word_layout
from hw.rtl.memory import BlockMemory, ReadPort, SlowMemory, WritePort
from hw.spec import JoinParams

__all__ = ["InsertionBench"]


class InsertionBench(wiring.Component):
    """An insertion engine over a double-buffered main array, its index arrays and a batch.

    memory  "block" (a word a cycle each way), "slow" (latency and refresh as well) or "shared"
            (like "slow", and reads and writes share a word a cycle)

    ``fill`` writes the batch. ``load`` writes and ``dump`` reads main arrays and ``peek`` reads
    index arrays, while no command is under way.
    """

    def __init__(self, params: JoinParams, design, memory="block"):
        word, key = word_layout(params), key_shape(params)
        words = 2 * params.subwindow // params.lanes
        if memory == "block":
            self.main = BlockMemory(word, words)
        else:
            self.main = SlowMemory(word, words, shared=memory == "shared")
        self.index = BlockMemory(key, 2 * params.partitions)
        self.batch = BlockMemory(word, params.insert_buffer // params.lanes)
        bits = {name: getattr(self, name).address_bits for name in ("main", "index", "batch")}
        self.engine = InsertionEngine(params, bits["main"], bits["batch"], design)
        super().__init__(
            {
                "commands": In(stream.Signature(insertion_layout(params, bits["main"]))),
                "done": Out(stream.Signature(row_count(params))),
                "fill": In(WritePort(word, bits["batch"])),
                "load": In(WritePort(word, bits["main"])),
                "load_index": In(WritePort(key, bits["index"])),
                "dump": In(ReadPort(word, bits["main"])),
                "peek": In(ReadPort(key, bits["index"])),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.main = self.main
        m.submodules.index = self.index
        m.submodules.batch = self.batch
        m.submodules.engine = engine = self.engine
        wiring.connect(m, wiring.flipped(self.commands), engine.commands)
        wiring.connect(m, engine.done, wiring.flipped(self.done))
        wiring.connect(m, engine.batch, self.batch.read)
        wiring.connect(m, wiring.flipped(self.fill), self.batch.write)
        with m.If(self.commands.valid & self.commands.ready):
            m.d.sync += self.busy.eq(1)
        with m.If(self.done.valid & self.done.ready):
            m.d.sync += self.busy.eq(0)
        _choose(m, self.busy, engine.main, self.dump, self.main.read, ("requests",), ("words",))
        _choose(m, self.busy, engine.index, self.peek, self.index.read, ("requests",), ("words",))
        _choose(m, self.busy, engine.new_main, self.load, self.main.write, ("writes",), ())
        _choose(m, self.busy, engine.new_index, self.load_index, self.index.write, ("writes",), ())
        return m


def _choose(m, busy, inner, outer, memory, forth, back):
    """The engine has the port while it is busy, the bench at other times."""
    for name in forth:
        target = getattr(memory, name)
        for owner, turn in ((getattr(inner, name), busy), (getattr(outer, name), ~busy)):
            m.d.comb += owner.ready.eq(target.ready & turn)
            with m.If(turn):
                m.d.comb += target.valid.eq(owner.valid)
                m.d.comb += target.payload.eq(owner.payload)
    for name in back:
        source = getattr(memory, name)
        for owner, turn in ((getattr(inner, name), busy), (getattr(outer, name), ~busy)):
            m.d.comb += owner.payload.eq(source.payload)
            m.d.comb += owner.valid.eq(source.valid & turn)
            with m.If(turn):
                m.d.comb += source.ready.eq(owner.ready)
