# amaranth: UnusedElaboratable=no
"""hw.rtl.distribution_tree in Amaranth's own simulator."""

import math

import pytest

from hw.rtl.distribution_tree import DistributionTree, branches, tree_depth
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

SHAPES = [(1, 2), (2, 2), (3, 2), (5, 2), (5, 4), (6, 4), (8, 8), (9, 8)]


def distribute(leaves, fan_out, words, pause=no_pause):
    """Send words down a tree; what each leaf received, and how many cycles after the first left."""
    dut = DistributionTree(16, leaves, fan_out)
    received = [[] for _ in range(leaves)]
    clock = {"now": 0}
    begin = []
    times = [[] for _ in range(leaves)]

    async def count(ctx):
        while any(len(got) < len(words) for got in received):
            await ctx.tick()
            clock["now"] += 1

    async def send(ctx):
        for n, word in enumerate(words):
            await stream_put(ctx, dut.i, word)
            if n == 0:
                begin.append(clock["now"])

    def receiver(n):
        async def receive(ctx):
            for _ in words:
                received[n].append(await stream_get(ctx, dut.o[n], pause()))
                times[n].append(clock["now"])

        return receive

    run(dut, count, send, *(receiver(n) for n in range(leaves)))
    return received, [[time - begin[0] for time in got] for got in times]


@pytest.mark.parametrize("leaves, fan_out", SHAPES)
def test_every_leaf_gets_every_word_in_order(leaves, fan_out):
    words = list(range(1, 30))
    received, _ = distribute(leaves, fan_out, words, pauses(leaves))
    assert received == [words] * leaves


@pytest.mark.parametrize("leaves, fan_out", SHAPES)
def test_a_word_a_cycle_after_as_many_cycles_as_levels(leaves, fan_out):
    depth = tree_depth(leaves, fan_out)
    _, times = distribute(leaves, fan_out, list(range(20)))
    for got in times:
        assert got == list(range(depth, depth + 20))


@pytest.mark.parametrize("fan_out", [2, 4, 8])
@pytest.mark.parametrize("leaves", [1, 2, 3, 7, 8, 16, 64])
def test_the_depth_is_logarithmic(leaves, fan_out):
    exact = max(1, math.ceil(round(math.log(leaves, fan_out), 9)))
    assert tree_depth(leaves, fan_out) == exact
    assert sum(branches(leaves, fan_out)) == leaves
    assert max(branches(leaves, fan_out)) == -(-leaves // fan_out)


@pytest.mark.parametrize(
    "leaves, fan_out, said",
    [(0, 2, "leaves must be from 1 on, not 0"), (2, 1, "fan_out must be from 2 on, not 1")],
)
def test_refused_trees(leaves, fan_out, said):
    with pytest.raises(ValueError) as refused:
        DistributionTree(8, leaves, fan_out)
    assert str(refused.value) == said
