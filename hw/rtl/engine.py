"""The engine: distribution tree, join cores, collection tree behind one command and one result
stream (SplitJoin, figure 11)."""

from amaranth.hdl import *
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.collection_tree import CollectionTree
from hw.rtl.combiner import Combiner, answer_layout
from hw.rtl.core_input import CoreInput
from hw.rtl.distribution_tree import DistributionTree
from hw.rtl.engine_words import head_layout, head_words, result_layout, word_token
from hw.rtl.plumbing import Buffer
from hw.rtl.punctuator import Punctuator
from hw.rtl.restart import Restarted
from hw.spec import JoinParams
from hw.spec.commands import Opcode

__all__ = ["Engine"]


class Engine(wiring.Component):
    """``params.cores`` join cores that share the tuples of each subwindow.

    core     makes one join core: a component with a JoinCore's streams (and, where it has it, the
             register `scan` of the head)
    fan_out  children of a node, in both trees

    words    commands as hw.rtl.engine_words has them
    answers  for every command, in order: its results, punctuated as its head asked, a reply of
             each core, and a last star
    restart  forget everything: no word may come while it is on and for `cores` + RESTART_STEPS
             cycles after, nor may an answer be believed, and it must be on for longer than that
    """

    def __init__(self, params: JoinParams, core, *, fan_out=4):
        self.params = params
        self.cores = [core() for _ in range(params.cores)]
        self.distribution = DistributionTree(word_token(params), params.cores, fan_out)
        self.collection = CollectionTree(result_layout(params), params.cores, fan_out)
        self.combiner = Combiner(params)
        self.root = Buffer(self.combiner.results.payload.shape())
        super().__init__(
            {
                "words": In(stream.Signature(word_token(params))),
                "answers": Out(stream.Signature(answer_layout(params))),
                "restart": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        # A reset of thousands of registers is too far to go in a cycle: each core hears of it from
        # a register of its own, a cycle after the one before.
        heard = self._hear(m, "trees", self.restart)
        for name in ("distribution", "collection", "root", "combiner"):
            m.submodules[name] = ResetInserter(heard)(getattr(self, name))
        self._watch_sides(m, heard)
        for number, core in enumerate(self.cores):
            heard = self._hear(m, f"core_{number}", heard)
            front, back = CoreInput(self.params, number), Punctuator(self.params, number)
            # Registers between the far ends: neither waits for the other's wires in a cycle. No
            # core waits for another one's but at the root of the tree.
            words = Buffer(front.words.payload.shape())
            probes = Buffer(front.probes.payload.shape())
            contexts = Buffer(front.contexts.payload.shape())
            records = Buffer(back.records.payload.shape())
            for name, part in (
                ("input", front), ("punctuator", back), ("words", words), ("probes", probes),
                ("contexts", contexts), ("records", records),
            ):
                m.submodules[f"{name}_{number}"] = ResetInserter(heard)(part)
            m.submodules[f"core_{number}"] = Restarted(core, heard)
            wiring.connect(m, self.distribution.o[number], words.i)
            wiring.connect(m, words.o, front.words)
            wiring.connect(m, front.contexts, contexts.i)
            wiring.connect(m, contexts.o, back.contexts)
            for name in ("commands", "tuples"):
                wiring.connect(m, getattr(front, name), getattr(core, name))
            wiring.connect(m, front.probes, probes.i)
            wiring.connect(m, probes.o, core.probes)
            wiring.connect(m, core.records, records.i)
            wiring.connect(m, records.o, back.records)
            wiring.connect(m, core.replies, back.replies)
            if hasattr(core, "scan"):
                m.d.comb += core.scan.eq(front.scan)
            wiring.connect(m, back.results, self.collection.i[number])
        wiring.connect(m, self.collection.o, self.root.i)
        wiring.connect(m, self.root.o, self.combiner.results)
        wiring.connect(m, self.combiner.answers, wiring.flipped(self.answers))
        return m

    @staticmethod
    def _hear(m, name, restart):
        heard = Signal(name=f"restart_{name}")
        m.d.sync += heard.eq(restart)
        return heard

    def _watch_sides(self, m, restart):
        """Pass words to the tree, and each command's stream to the combiner."""
        count = head_words(self.params)
        at = Signal(range(count + 1))  # the head's word that comes next; behind it the payload
        has_payload = Signal()
        had_payload = Signal()  # what the first word said
        word = self.words.payload
        # The stream is in the first word of a head.
        bits = Value.cast(word.data)
        layout = head_layout(self.params)
        command = layout["command"]
        fields = command.shape
        opcode = bits[command.offset + fields["opcode"].offset :][: fields["opcode"].width]
        side = bits[command.offset + fields["side"].offset]
        root, sides = self.distribution.i, self.combiner.sides
        first = at == 0
        m.d.comb += has_payload.eq(
            Mux(first, (opcode == Opcode.INSERT) | (opcode == Opcode.PROBE), had_payload)
        )
        m.d.comb += [root.payload.eq(word), sides.payload.eq(side)]
        m.d.comb += root.valid.eq(self.words.valid & (~first | sides.ready))
        m.d.comb += sides.valid.eq(self.words.valid & first & root.ready)
        m.d.comb += self.words.ready.eq(root.ready & (~first | sides.ready))
        with m.If(self.words.valid & self.words.ready):
            m.d.sync += had_payload.eq(has_payload)
            with m.If(at < count - 1):
                m.d.sync += at.eq(at + 1)
            with m.Elif(at == count - 1):
                m.d.sync += at.eq(Mux(has_payload, count, 0))
            with m.Elif(word.end):
                m.d.sync += at.eq(0)
        with m.If(restart):
            m.d.sync += at.eq(0)
