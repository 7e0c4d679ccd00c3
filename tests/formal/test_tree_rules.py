"""SplitJoin's trees keep the stream contract, lose and double nothing, and never block: proofs."""

import pytest
from amaranth.hdl import *

from hw.rtl.collection_tree import CollectionTree, CollectNode
from hw.rtl.distribution_tree import DistributionTree
from tests.formal.proofs import check, prove
from tests.formal.test_stream_rules import Harness, inside_buffer

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
