# amaranth: UnusedElaboratable=no
"""hw.rtl.collection_tree in Amaranth's own simulator."""

import random

import pytest

from hw.rtl.collection_tree import MOST_STARS, CollectionTree
from hw.rtl.distribution_tree import tree_depth
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

SHAPES = [(1, 2), (2, 2), (3, 2), (5, 4), (6, 4), (8, 8), (9, 8)]


def groups_of(rng, leaves, groups):
    """What each leaf sends between stars: groups[leaf][group] is a list of numbered results."""
    return [
        [
            [(leaf << 8) + (group << 4) + n for n in range(rng.choice((0, 0, 1, 3)))]
            for group in range(groups)
        ]
        for leaf in range(leaves)
    ]


def tokens_of(groups, together=1, ordered=0):
    """A leaf's tokens: results of a group, then its star; runs of stars up to `together`."""
    tokens, stars = [], 0
    for results in groups:
        for result in results:
            tokens.append({"stars": stars, "present": 1, "data": result, "ordered": ordered})
            stars = 0
        stars += 1
        if stars == together:
            tokens.append({"stars": stars, "present": 0})
            stars = 0
    if stars:
        tokens.append({"stars": stars, "present": 0})
    return tokens


def collect(sent, fan_in, ordered=0, pause_in=no_pause, pause_out=no_pause, together=1):
    """Send each leaf's groups up a tree; the groups that come out, and the cycles it took."""
    dut = CollectionTree(16, len(sent), fan_in)
    total, groups, clock = len(sent[0]), [[]], [0]

    def sender(n):
        async def send(ctx):
            for token in tokens_of(sent[n], together, ordered):
                await stream_put(ctx, dut.i[n], token, pause_in())

        return send

    async def receive(ctx):
        while len(groups) <= total:
            token = await stream_get(ctx, dut.o, pause_out())
            assert token.stars or token.present
            groups.extend([] for _ in range(token.stars))
            if token.present:
                groups[-1].append(token.data)

    async def count(ctx):
        while len(groups) <= total:
            await ctx.tick()
            clock[0] += 1

    run(dut, count, receive, *(sender(n) for n in range(len(sent))))
    assert groups.pop() == []  # behind the last star there is nothing
    return groups, clock[0]


@pytest.mark.parametrize("together", [1, 4, MOST_STARS])
@pytest.mark.parametrize("leaves, fan_in", SHAPES)
def test_no_result_passes_a_star(leaves, fan_in, together):
    sent = groups_of(random.Random(leaves), leaves, 12)
    groups, _ = collect(sent, fan_in, 0, pauses(1), pauses(2), together)
    for number, group in enumerate(groups):
        assert sorted(group) == sorted(result for leaf in sent for result in leaf[number])


@pytest.mark.parametrize("together", [1, MOST_STARS])
@pytest.mark.parametrize("leaves, fan_in", SHAPES)
def test_ordered_a_leaf_comes_before_the_next(leaves, fan_in, together):
    sent = groups_of(random.Random(leaves), leaves, 12)
    groups, _ = collect(sent, fan_in, 1, pauses(1), pauses(2), together)
    assert groups == [[r for leaf in sent for r in leaf[n]] for n in range(12)]


def test_leaves_without_results_do_not_block():
    """Erratum 9: an empty core still sends its star."""
    sent = [[[] for _ in range(40)] for _ in range(4)]
    sent[2][39] = [7]
    groups, _ = collect(sent, 2, together=MOST_STARS)
    assert groups == [[]] * 39 + [[7]]


def test_a_leaf_may_be_far_ahead():
    sent = [[[1]] + [[] for _ in range(60)], [[n] for n in range(61)]]
    groups, _ = collect(sent, 2, pause_in=no_pause, together=MOST_STARS)
    assert [sorted(group) for group in groups] == [[0, 1]] + [[n] for n in range(1, 61)]


def test_a_result_a_cycle_and_stars_cost_nothing_beside_them():
    plain = [[[leaf] * 25] for leaf in range(4)]
    _, without = collect(plain, 2)
    starred = [[[leaf] for _ in range(25)] for leaf in range(4)]
    _, strict = collect(starred, 2, together=2)
    assert without <= 100 + 8
    assert strict <= without + 4


@pytest.mark.parametrize("fan_in", [2, 4, 8])
@pytest.mark.parametrize("leaves", [2, 8, 16])
def test_latency_is_the_depth_and_two(leaves, fan_in):
    dut = CollectionTree(16, leaves, fan_in)
    cycles = []

    async def send(ctx):
        ctx.set(dut.o.ready, 1)
        await stream_put(ctx, dut.i[leaves - 1], {"stars": 0, "present": 1, "data": 5})
        count = 0
        while not ctx.get(dut.o.valid):
            await ctx.tick()
            count += 1
        cycles.append(count + 1)

    run(dut, send)
    assert cycles == [tree_depth(leaves, fan_in) + 2]


@pytest.mark.parametrize(
    "leaves, fan_in, said",
    [(0, 2, "leaves must be from 1 on, not 0"), (2, 1, "fan_in must be from 2 on, not 1")],
)
def test_refused_trees(leaves, fan_in, said):
    with pytest.raises(ValueError) as refused:
        CollectionTree(8, leaves, fan_in)
    assert str(refused.value) == said
