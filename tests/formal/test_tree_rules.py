"""SplitJoin's trees keep the stream contract, lose and double nothing, and never block: proofs."""

import pytest
from amaranth.hdl import *

from hw.rtl.collection_tree import CollectionTree, CollectNode
from hw.rtl.combiner import Combiner
from hw.rtl.core_input import CoreInput
from hw.rtl.distribution_tree import DistributionTree
from hw.rtl.engine_port import AnswerWriter, CommandReader
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.rtl.punctuator import NEAR_BITS, Punctuator
from hw.spec import JoinParams
from tests.formal.proofs import check, prove
from tests.formal.test_stream_rules import Harness, inside_buffer, streams_of

pytestmark = pytest.mark.formal


def on_the_way(tree, leaf):
    """Every place between the root and a leaf that holds a token which the leaf still waits for."""
    places = []
    for name, child in tree.paths[leaf]:
        node = tree.nodes[name][0]
        (valid, first), second = inside_buffer(node.buffer)
        # A child that was served already waits no longer for the token on offer.
        places += [(valid & ~node.fork.served[child], first), second]
    return places


@pytest.mark.parametrize("leaf", range(3))
def test_every_leaf_of_a_distribution_tree_gets_every_token_once(leaf, tmp_path):
    dut = DistributionTree(1, 3, 2)

    def claims(m, rules):
        for name, (node, _) in dut.nodes.items():
            m.d.comb += Assert(node.buffer.first_valid | ~node.buffer.second_valid, name)
            m.d.comb += Assert(node.buffer.first_valid | ~node.fork.served.any(), name)
        rules.conserved("token", [dut.i], [dut.o[leaf]], on_the_way(dut, leaf), 1)

    prove(Harness(dut, [dut.i], list(dut.o), claims), tmp_path)


def token_is_sound(port):
    """A token has stars or data."""
    return ~port.valid | port.payload.present | (port.payload.stars != 0)


def count_stars(m, port, name):
    """Stars that have passed, in a narrow counter: differences stay below its range."""
    stars = Signal(8, name=f"{name}_stars")
    with m.If(port.valid & port.ready):
        m.d.sync += stars.eq(stars + port.payload.stars)
    return stars


def test_a_collect_node_gives_one_star_for_a_star_of_each(tmp_path):
    """Stars in are stars out, those ahead, and those of a result that waits behind its own."""
    dut = CollectNode(1, 2)

    def claims(m, rules):
        m.d.comb += Assert(token_is_sound(dut.o))
        out = count_stars(m, dut.o, "o")
        offered = Mux(dut.o.valid, dut.o.payload.stars, 0)
        for n, port in enumerate(dut.i):
            m.d.comb += Assume(token_is_sound(port))
            came = count_stars(m, port, f"i{n}")
            counted = Mux(dut.counted[n], port.payload.stars, 0)
            m.d.comb += Assert((came + counted)[:8] == (out + offered + dut.ahead[n])[:8])
            # Only a result on offer can wait behind stars that are counted.
            m.d.comb += Assert(~dut.counted[n] | (rules.waiting[f"i{n}"] & port.payload.present))
        # The slowest input is ahead of nobody.
        m.d.comb += Assert((dut.ahead[0] == 0) | (dut.ahead[1] == 0))

    prove(Harness(dut, list(dut.i), [dut.o], claims), tmp_path)


def test_a_collect_node_loses_and_doubles_no_result(tmp_path):
    dut = CollectNode(2, 2)

    def claims(m, rules):
        magic = 2  # values are not looked at, so one stands for all
        came = Signal(4)
        gone = Signal(4)

        def moves(port):
            payload = port.payload
            return port.valid & port.ready & payload.present & (payload.data == magic)

        m.d.sync += came.eq(came + sum(moves(port) for port in dut.i))
        m.d.sync += gone.eq(gone + moves(dut.o))
        held = dut.o.valid & dut.o.payload.present & (dut.o.payload.data == magic)
        m.d.comb += Assert((came - gone)[:4] == held)
        for n, port in enumerate(dut.i):
            m.d.comb += Assume(token_is_sound(port))
            m.d.comb += Assert(~dut.counted[n] | rules.waiting[f"i{n}"])

    prove(Harness(dut, list(dut.i), [dut.o], claims), tmp_path)


def test_no_result_leaves_before_its_star(tmp_path):
    """Bounded: a result comes behind as many stars as it was sent behind."""
    dut = CollectNode(4, 2)

    def claims(m, rules):
        out = count_stars(m, dut.o, "o")
        with m.If(dut.o.valid & dut.o.payload.present):
            # What is sent is the number of the stars before it.
            m.d.comb += Assert(dut.o.payload.data == (out + dut.o.payload.stars)[:4])
        for n, port in enumerate(dut.i):
            m.d.comb += Assume(token_is_sound(port))
            m.d.comb += Assume(port.payload.stars <= 1)
            sent = count_stars(m, port, f"i{n}")
            with m.If(port.valid & port.payload.present):
                m.d.comb += Assume(port.payload.data == (sent + port.payload.stars)[:4])

    check(Harness(dut, list(dut.i), [dut.o], claims), tmp_path, 5)


def test_a_collection_tree_that_is_fed_and_drained_never_rests_long(tmp_path):
    """Bounded: with all inputs on offer and the output taken, something moves in every 8 cycles."""
    dut = CollectionTree(1, 2, 2, queue_tokens=4)

    def claims(m, rules):
        m.d.comb += Assume(dut.o.ready)
        for port in dut.i:
            m.d.comb += Assume(port.valid)
            m.d.comb += Assume(token_is_sound(port))
            m.d.comb += Assume(port.payload.stars <= 2)
        idle = Signal(4)
        m.d.sync += idle.eq(Mux(dut.o.valid, 0, idle + 1))
        m.d.comb += Assert(idle < 8)

    check(Harness(dut, list(dut.i), [dut.o], claims), tmp_path, 14)


SMALL = JoinParams(
    subwindow=8, partitions=4, lanes=2, probers=2, mergers=2, insert_buffer=8, bands=1, cores=2
)


def count_results(m, port, name):
    """Results that have passed, in a narrow counter."""
    results = Signal(4, name=f"{name}_results")
    with m.If(port.valid & port.ready & port.payload.present):
        m.d.sync += results.eq(results + 1)
    return results


def test_a_combiner_loses_and_doubles_no_star_and_no_result(tmp_path):
    """Of a token that is split, one star has gone already while the rest waits."""
    dut = Combiner(SMALL, commands=4)

    def claims(m, rules):
        m.d.comb += Assume(token_is_sound(dut.results))
        m.d.comb += Assert(token_is_sound(dut.answers))
        out = dut.answers.payload
        came, gone = count_stars(m, dut.results, "came"), count_stars(m, dut.answers, "gone")
        held = Mux(dut.answers.valid, out.stars, 0)
        m.d.comb += Assert((came + dut.split)[:8] == (gone + held)[:8])
        results = count_results(m, dut.results, "came")
        answered = count_results(m, dut.answers, "gone")
        m.d.comb += Assert((results - answered)[:4] == (dut.answers.valid & out.present))
        token = dut.results.payload
        more = (token.stars != 0) & ((token.stars != 1) | token.present)
        m.d.comb += Assert(~dut.split | (rules.waiting["i1"] & more))
        # Only a star ends an answer, and a split follows it.
        m.d.comb += Assert(~dut.answers.valid | ~out.last | ((out.stars == 1) & ~out.present))

    prove(Harness(dut, [dut.sides, dut.results], [dut.answers], claims), tmp_path)


class OpenPunctuator(Punctuator):
    """A punctuator that tells whether it is among the records of a probe."""

    def __init__(self):
        super().__init__(SMALL, 1)
        self.built = Fragment.get(super().elaborate(None), None)
        self.among_records = self.built.generated["fsm"].ongoing("RECORDS")

    def elaborate(self, platform):
        return self.built


def stars_are_counted(m, dut, counted):
    """What the punctuator knows of the way to the next star, beside the records since the last."""
    every, lanes = dut.context.star_every, SMALL.lanes
    m.d.comb += Assert(dut.starry == (every != 0))
    with m.If(dut.starry):
        m.d.comb += Assert(dut.several == (every <= lanes))
        m.d.comb += Assert(dut.short == (every < 1 << NEAR_BITS))
    with m.If(dut.starry & dut.several):
        m.d.comb += Assert((dut.phase != 0) & (counted + dut.phase == every))
    with m.If(dut.starry & ~dut.several):
        m.d.comb += Assert((dut.left != 0) & (counted + dut.left == every))
        m.d.comb += Assert(~dut.close | (dut.left < 1 << NEAR_BITS))
        m.d.comb += Assert(dut.close | (dut.left > 2 * lanes))
        for lane in range(lanes):
            m.d.comb += Assert(dut.ends[lane] == (dut.left == lane + 1))
        for number in range(2 * lanes):
            m.d.comb += Assert(dut.whole[number] == (every == number))


def test_a_punctuator_sends_what_is_not_empty_and_every_star_that_is_due(tmp_path):
    """Records and stars in are results and stars out, and those on the way."""
    dut = OpenPunctuator()

    def claims(m, rules):
        word = dut.records.payload
        takes = dut.records.valid & dut.records.ready
        with m.If(dut.records.valid):
            m.d.comb += Assume(word.count <= Mux(word.end, 0, SMALL.lanes))
        found = Signal(5)  # records that are not empty, and replies
        due = Signal(5)  # stars that they ask for
        new, stars = C(0), C(0)
        counted = Signal(32)  # records since the last star
        since = counted
        for lane in range(SMALL.lanes):
            there = lane < word.count
            record = word.data[lane]
            new = new + (there & (record.start != record.end))
            star = there & (since + 1 == dut.context.star_every)
            stars = stars + star
            since = Mux(star, 0, since + there)[: len(counted)]
        with m.If(takes):
            m.d.sync += counted.eq(since)
        with m.If(dut.contexts.ready):
            m.d.sync += counted.eq(0)
        stars_are_counted(m, dut, counted)
        replied = dut.replies.valid & dut.replies.ready
        m.d.sync += found.eq(found + Mux(takes, new, 0) + replied)
        m.d.sync += due.eq(due + Mux(takes, stars, 0) + replied)
        out = dut.results.payload
        sent, gone = count_stars(m, dut.results, "sent"), count_results(m, dut.results, "sent")
        held = Mux(dut.results.valid, out.stars, 0)
        waiting = dut.pending + dut.starred[0] + dut.starred[1]
        m.d.comb += Assert((sent + held + waiting)[:5] == due)
        kept = dut.kept[0] + dut.kept[1] + (dut.results.valid & out.present)
        m.d.comb += Assert((gone + kept)[:4] == found[:4])
        # The end of the records is a word of none: behind it nothing is left of them.
        m.d.comb += Assert(dut.among_records | ((dut.kept == 0) & (dut.starred == 0)))

    prove(
        Harness(dut, [dut.contexts, dut.records, dut.replies], [dut.results], claims), tmp_path, 3
    )


KEEPERS = {
    "collection_tree": lambda: CollectionTree(1, 3, 2, queue_tokens=4),
    "core_input": lambda: CoreInput(SMALL, 1),
    "nested_loop_core": lambda: NestedLoopCore(SMALL),
    "command_reader": lambda: CommandReader(SMALL),
    "answer_writer": lambda: AnswerWriter(SMALL),
}


@pytest.mark.parametrize("name", KEEPERS)
def test_an_offered_payload_stays_until_it_is_taken(name, tmp_path):
    dut = KEEPERS[name]()
    inputs, outputs = streams_of(dut)
    assert inputs
    assert outputs
    prove(Harness(dut, inputs, outputs, lambda m, rules: None), tmp_path, steps=3)

