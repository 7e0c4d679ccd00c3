"""Every component keeps the stream contract and loses, doubles or invents no token: proofs."""

from dataclasses import replace

import pytest
from amaranth.asserts import AnySeq
from amaranth.hdl import *
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In

from hw.rtl.arrays import TupleReader, TupleWriter, WideWriter, WordReader
from hw.rtl.indexer import Indexer
from hw.rtl.insertion_engine import DESIGNS, InsertionEngine
from hw.rtl.layouts import order_of, token
from hw.rtl.memory import BlockMemory, BurstCounter, ReadShare, SlowMemory, WriteShare
from hw.rtl.merger import Merger
from hw.rtl.plumbing import Arbiter, BlockQueue, Buffer, Fork, Join, Queue, ShortQueue
from hw.rtl.sdram import ULX3S_CHIP, SdramMemory
from hw.rtl.splitter import Splitter
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams
from tests.formal.proofs import ProofFailed, Rules, check, prove

pytestmark = pytest.mark.formal

#: Narrow, because a proof's cost grows with the width while the control it judges does not.
TUPLE = data.StructLayout({"key": signed(3), "rid": 2})
SMALL = JoinParams(subwindow=16, partitions=4, insert_buffer=8, mergers=2, lanes=2)


def members_of(component):
    """(Interface, name, member, depth) of all members of a component that are no interfaces."""

    def walk(interface, signature, depth):
        for name, member in signature.members.items():
            # The signature of an In member is a flipped one, and so are those inside it.
            if member.is_port or isinstance(_plain(member.signature), stream.Signature):
                yield interface, name, member, depth
                continue
            parts = getattr(interface, name)
            for part in parts if member.dimensions else [parts]:
                yield from walk(part, member.signature, depth + 1)

    return walk(component, component.signature, 0)


def _plain(signature):
    return signature.flip() if isinstance(signature, wiring.FlippedSignature) else signature


def streams_of(component):
    """The streams of a component: inputs, outputs."""
    found = [], []
    for interface, name, member, _ in members_of(component):
        if not member.is_port:
            flipped = isinstance(member.signature, wiring.FlippedSignature)
            parts = getattr(interface, name)
            found[0 if flipped else 1].extend(parts if member.dimensions else [parts])
    return found


def ports_of(component):
    """The other inputs of a component: its registers, and what comes with an answer."""
    found = [], []
    for interface, name, member, depth in members_of(component):
        if member.is_port and member.flow == In:
            found[min(depth, 1)].append(Value.cast(getattr(interface, name)))
    return found


class Harness(wiring.Component):
    """A component whose stream inputs are free but keep the contract.

    Its outputs must keep it as well, unless that is proved elsewhere (`police` false). Its
    registers have any values, which stay; claims may set them otherwise. Answers that do not wait
    to be taken have any value in each cycle.
    """

    def __init__(self, dut, inputs, outputs, claims, *, police=True):
        self.dut, self.inputs, self.outputs, self.claims = dut, inputs, outputs, claims
        self.police = police
        members = {}
        for n, port in enumerate(inputs):
            members[f"i{n}_payload"] = In(len(Value.cast(port.payload)))
            members[f"i{n}_valid"] = In(1)
        for n, _ in enumerate(outputs):
            members[f"o{n}_ready"] = In(1)
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        rules = Rules(m)
        registers, answers = ports_of(self.dut)
        m.d.comb += [register.eq(rules.constant(len(register))) for register in registers]
        m.d.comb += [answer.eq(AnySeq(len(answer))) for answer in answers]
        for n, port in enumerate(self.inputs):
            m.d.comb += Value.cast(port.payload).eq(getattr(self, f"i{n}_payload"))
            m.d.comb += port.valid.eq(getattr(self, f"i{n}_valid"))
            rules.kept(port, f"i{n}", Assume)
        for n, port in enumerate(self.outputs):
            m.d.comb += port.ready.eq(getattr(self, f"o{n}_ready"))
            if self.police:
                rules.kept(port, f"o{n}")
        self.claims(m, rules)
        return m


def inside_buffer(buffer):
    """The two places of a buffer."""
    return [(buffer.first_valid, buffer.first), (buffer.second_valid, buffer.second)]


def test_a_buffer_keeps_what_it_holds(tmp_path):
    dut = Buffer(4)

    def claims(m, rules):
        m.d.comb += Assert(dut.first_valid | ~dut.second_valid)
        rules.conserved("token", [dut.i], [dut.o], inside_buffer(dut), 4)

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_a_fork_gives_each_output_every_token(tmp_path):
    dut = Fork(3, 2)

    def claims(m, rules):
        # Outputs that already have the offered token are one ahead.
        for n, o in enumerate(dut.o):
            ahead = Signal(name=f"ahead{n}")
            gone = Signal(name=f"gone{n}")
            m.d.comb += gone.eq(ahead | (o.valid & o.ready))
            m.d.sync += ahead.eq(gone & ~dut.i.ready)
            m.d.comb += Assert(ahead == dut.served[n])
            m.d.comb += Assert(~dut.i.ready | ~dut.i.valid | gone)
            m.d.comb += Assert(o.valid == (dut.i.valid & ~ahead))

    prove(Harness(dut, [dut.i], list(dut.o), claims), tmp_path)


def inside_merger(dut):
    """Every place of a merger that can hold a token."""
    heads = [
        (dut.main_valid, Value.cast(dut.main_head)),
        (dut.batch_valid, Value.cast(dut.batch_head)),
    ]
    buffers = (dut.main_next, dut.batch_next, dut.out)
    return heads + [place for buffer in buffers for place in inside_buffer(buffer)]


def test_a_merger_loses_and_doubles_no_tuple(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        for buffer in (dut.main_next, dut.batch_next, dut.out):
            m.d.comb += Assert(buffer.first_valid | ~buffer.second_valid)
        rules.conserved(
            "tuple", [dut.main, dut.batch], [dut.merged], inside_merger(dut), token(TUPLE),
            also=lambda magic: ~magic.end,
        )
        merger_invariants(m, dut)

    prove(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path)


def merger_invariants(m, dut):
    """Both heads go only when both are ends; else the smaller goes, `main` first."""
    main, batch = dut.main_head, dut.batch_head
    both = dut.main_valid & dut.batch_valid
    with m.If(both):
        main_first = order_of(main.data.key, main.end) <= order_of(batch.data.key, batch.end)
        ends = main.end & batch.end
        m.d.comb += Assert(dut.take_main == (main_first | ends))
        m.d.comb += Assert(dut.take_batch == (~main_first | ends))


def ascending(m, stream, name, statement):
    """The tuples that pass ascend by key within a frame."""
    last = Signal.like(stream.payload.data.key, name=f"{name}_last")
    inside = Signal(name=f"{name}_inside")
    with m.If(stream.valid & stream.ready):
        m.d.sync += last.eq(stream.payload.data.key)
        m.d.sync += inside.eq(~stream.payload.end)
    with m.If(stream.valid & inside & ~stream.payload.end):
        m.d.comb += statement(stream.payload.data.key >= last)


def test_merged_tuples_ascend(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        ascending(m, dut.main, "main", Assume)
        ascending(m, dut.batch, "batch", Assume)
        ascending(m, dut.merged, "merged", Assert)

    check(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path, 12)


def test_a_merger_that_is_fed_and_drained_never_rests_long(tmp_path):
    dut = Merger(TUPLE)

    def claims(m, rules):
        idle = Signal(range(16))
        flowing = dut.main.valid & dut.batch.valid & dut.merged.ready
        with m.If(~flowing | dut.merged.valid):
            m.d.sync += idle.eq(0)
        with m.Else():
            m.d.sync += idle.eq(idle + 1)
        m.d.comb += Assert(idle <= 4)

    check(Harness(dut, [dut.main, dut.batch], [dut.merged], claims), tmp_path, 14)


def test_a_proof_can_fail(tmp_path):
    """A false claim is refuted, so that the proofs above mean something."""
    dut = Buffer(4)

    def claims(m, rules):
        m.d.comb += Assert(~dut.second_valid)

    with pytest.raises(ProofFailed):
        prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


KEEPERS = {
    "join": lambda: Join(one=2, other=3),
    "queue": lambda: Queue(3, 4),
    "short_queue": lambda: ShortQueue(3, 4),
    "block_queue": lambda: BlockQueue(3, 4),
    "arbiter": lambda: Arbiter(2, 3),
    "block_memory": lambda: BlockMemory(2, 4),
    "slow_memory": lambda: SlowMemory(2, 4),
    "burst_counter": lambda: BurstCounter(3),
    "sdram_memory": lambda: SdramMemory(16, replace(ULX3S_CHIP, row_bits=2, column_bits=2), 1e8),
    "read_share": lambda: ReadShare(2, 2, 2),
    "write_share": lambda: WriteShare(2, 2, 2),
    "wide_merger": lambda: WideMerger(TUPLE, 2),
    "indexer": lambda: Indexer(SMALL, 4),
    "word_reader": lambda: WordReader(2, 4),
    "tuple_reader": lambda: TupleReader(SMALL, 4),
    "tuple_writer": lambda: TupleWriter(SMALL, 4),
    "wide_writer": lambda: WideWriter(SMALL, 4),
    "splitter": lambda: Splitter(SMALL, 4, 2),
    **{f"{d}_insertion_engine": lambda d=d: InsertionEngine(SMALL, 4, 2, d) for d in DESIGNS},
}


@pytest.mark.parametrize("name", KEEPERS)
def test_an_offered_payload_stays_until_it_is_taken(name, tmp_path):
    dut = KEEPERS[name]()
    inputs, outputs = streams_of(dut)
    assert inputs
    assert outputs
    prove(Harness(dut, inputs, outputs, lambda m, rules: None), tmp_path, steps=3)


@pytest.mark.parametrize("kind", [ShortQueue, BlockQueue])
def test_a_queue_keeps_what_it_holds(tmp_path, kind):
    dut = kind(2, 4)
    # The proof follows one place of the memory through a port of its own.
    looked_at = dut.storage.read_port(domain="comb")

    def claims(m, rules):
        level = dut.level
        held = [(dut.o.valid, dut.o.payload)]
        if kind is BlockQueue:
            held.append((dut.fetched, dut.word))
        m.d.comb += Assert((dut.write_at - dut.read_at)[:2] == level[:2])
        m.d.comb += Assert(level <= 4)
        m.d.comb += Assert(dut.more == (level != 0))
        m.d.comb += Assert(~dut.room | (level < 4))
        # Whatever token is pushed as number n (modulo 8) is the token popped as number n.
        pushed = Signal(3)
        popped = Signal(3)
        followed = rules.constant(3)
        value = Signal(2)
        seen = Signal()
        push = dut.i.valid & dut.i.ready
        pop = dut.o.valid & dut.o.ready
        m.d.sync += pushed.eq(pushed + push)
        m.d.sync += popped.eq(popped + pop)
        with m.If(push & (pushed == followed)):
            m.d.sync += value.eq(dut.i.payload)
            m.d.sync += seen.eq(1)
        with m.If(pop & (popped == followed)):
            m.d.sync += seen.eq(0)
            m.d.comb += Assert(seen & (dut.o.payload == value))
        inside = (pushed - popped)[:3]
        out = sum(valid for valid, _ in held)  # tokens that are no longer in the memory
        m.d.comb += Assert(inside == level + out)
        behind = (followed - popped)[:3]  # tokens before the followed one
        m.d.comb += Assert(seen == (behind < inside))
        m.d.comb += looked_at.addr.eq(dut.read_at + behind - out)
        with m.If(seen & (behind >= out)):
            m.d.comb += Assert(looked_at.data == value)
        before = 0
        for valid, one in held:
            with m.If(seen & valid & (behind == before)):
                m.d.comb += Assert(one == value)
            before = before + valid

    prove(Harness(dut, [dut.i], [dut.o], claims), tmp_path)


def test_a_join_takes_a_token_of_each_input_for_each_that_it_gives(tmp_path):
    dut = Join(one=2, other=3)

    def claims(m, rules):
        gives = dut.o.valid & dut.o.ready
        for i, name in ((dut.i_one, "one"), (dut.i_other, "other")):
            m.d.comb += Assert((i.valid & i.ready) == gives)
            m.d.comb += Assert(~gives | (dut.o.payload[name] == i.payload))

    prove(Harness(dut, [dut.i_one, dut.i_other], [dut.o], claims), tmp_path)


def test_an_arbiter_loses_and_doubles_no_token(tmp_path):
    dut = Arbiter(2, 3)

    def claims(m, rules):
        chosen = dut.o.payload
        m.d.comb += Assert(dut.last < 3)
        for number, i in enumerate(dut.i):
            magic = rules.constant(2)
            came = Signal(4, name=f"came_{number}")
            went = Signal(4, name=f"went_{number}")
            ours = (chosen.source == number) & (chosen.payload == magic)
            m.d.sync += came.eq(came + (i.valid & i.ready & (i.payload == magic)))
            m.d.sync += went.eq(went + (dut.o.valid & dut.o.ready & ours))
            m.d.comb += Assert((came - went)[:4] == (dut.o.valid & ours))

    prove(Harness(dut, list(dut.i), [dut.o], claims), tmp_path)


def test_an_indexer_passes_each_word_once_and_indexes_each_partition_once(tmp_path):
    dut = Indexer(SMALL, 4)

    def claims(m, rules):
        words = {name: getattr(dut, name).writes for name in ("merged", "main", "index")}
        moves = {name: s.valid & s.ready for name, s in words.items()}
        ahead = {name: Signal(name=f"{name}_ahead") for name in ("main", "index")}
        first = words["merged"].payload.address[:1] == 0  # a partition of two words
        for name in ("main", "index"):
            gone = ahead[name] | moves[name]
            m.d.comb += Assert(~(ahead[name] & words[name].valid))
            due = gone if name == "main" else gone == first
            m.d.comb += Assert(~moves["merged"] | due)
            m.d.sync += ahead[name].eq(gone & ~moves["merged"])
        m.d.comb += Assert(ahead["main"] == dut.main_has)
        m.d.comb += Assert(ahead["index"] == dut.index_has)
        m.d.comb += Assert(~(ahead["main"] | ahead["index"]) | rules.waiting["i0"])
        m.d.comb += Assert(~ahead["index"] | first)

    prove(Harness(dut, [dut.merged.writes], [dut.main.writes, dut.index.writes], claims), tmp_path)
