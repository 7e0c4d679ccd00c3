"""IBWJ, the parallel window join of the PIM-Tree paper: exact, in order, whatever the threads."""

import numpy as np
import pytest

from host.indexes.window_join import WindowJoin
from hw.spec import reference
from hw.spec.predicates import ALL, Band, Predicate, compare
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow
from tests.helpers import exactly

BAND = Predicate((Band(-3, 4),))


def arrivals(count, keys, seed):
    """Sides and keys of tuples of both streams, in no regular turn."""
    random = np.random.default_rng(seed)
    return random.integers(0, 2, count), keys(random, count).astype(np.int32)


def expected(predicate, rows, sides, keys):
    """For each arrival, the numbers of its partners."""
    numbers = [0, 0]
    order, of = [], ([], [])
    for side, key in zip(sides.tolist(), keys.tolist(), strict=True):
        order.append((Side(side), numbers[side]))
        of[side].append(key)
        numbers[side] += 1
    pairs = reference.pairs(
        order, lambda left, right: predicate.holds(of[0][left], of[1][right]), RowWindow(*rows)
    )
    place = {arrival: at for at, arrival in enumerate(order)}
    found = [[] for _ in order]
    for left, right in pairs:
        at = place[Side.LEFT, left], place[Side.RIGHT, right]
        found[max(at)].append(right if at[0] > at[1] else left)
    return [sorted(one) for one in found]


def found_by(join, sides, keys, push):
    parts = [join.push(sides[at : at + push], keys[at : at + push])
             for at in range(0, len(sides), push)]
    counts = np.concatenate([part[0] for part in parts])
    partners = np.split(np.concatenate([part[1] for part in parts]), np.cumsum(counts)[:-1])
    return [sorted(one.tolist()) for one in partners]


KEYS = {
    "uniform": lambda random, count: random.integers(0, 400, count),
    "one key": lambda random, count: np.full(count, 7) + (random.random(count) < 0.1) * 50,
    "increasing": lambda random, count: np.arange(count) // 2 + random.integers(0, 9, count),
}


@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize(
    ("structure", "threads", "ratio"),
    [("btree", 1, 1.0), ("im", 1, 0.2), ("pim", 1, 0.1), ("im", 2, 0.5), ("pim", 2, 0.3),
     ("pim", 3, 1.0)],
)  # fmt: skip
def test_every_arrival_meets_its_window(structure, threads, ratio, keys):
    sides, values = arrivals(1_500, KEYS[keys], seed=threads)
    join = WindowJoin(
        BAND, (90, 130), structure, threads, task=3, merge_ratio=ratio, trees=8
    )
    try:
        assert found_by(join, sides, values, 400) == expected(BAND, (90, 130), sides, values)
    finally:
        join.close()


def test_a_drifting_window_builds_its_tree_anew():
    sides, values = arrivals(140_000, lambda random, count: np.arange(count) * 3, seed=1)
    join = WindowJoin(Predicate((Band(-9, 9),)), (100, 100), "btree")
    counts = [len(one) for one in found_by(join, sides, values, 70_000)]
    other = WindowJoin(Predicate((Band(-9, 9),)), (100, 100), "pim")
    assert counts == [len(one) for one in found_by(other, sides, values, 140_000)]


def test_more_matches_than_there_was_room_for():
    sides, values = np.arange(600) % 2, np.zeros(600, np.int32)
    for threads in (1, 2):
        join = WindowJoin(compare("="), (200, 200), "pim", threads)
        counts, partners = join.push(sides, values)
        join.close()
        assert counts.sum() == len(partners) > 8 * 600
        # Threads insert equal keys in any order.
        assert counts[-1] == 200 and sorted(partners[-200:]) == list(range(100, 300))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((compare("<>"), (1, 1)), f"the predicate must be one band, not {compare('<>')}"),
        ((ALL, (1, 1), "rap"), "structure must be btree, im or pim, not rap"),
        ((ALL, (1, 1), "btree", 2), "a single B+-tree has no locks: threads must be 1, not 2"),
    ],
)
def test_what_it_cannot_do_it_says(arguments, message):
    with pytest.raises(ValueError, match=exactly(message)):
        WindowJoin(*arguments)
