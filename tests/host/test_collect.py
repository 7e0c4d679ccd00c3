"""Counts and pairs out of hits, in the asked order and in bounded chunks."""

import numpy as np
import pytest

from host import collect
from hw.spec.tuples import Side
from tests.helpers import (
    arrival_of,
    expected_pairs,
    join_of,
    pairs_of,
    push_all,
    same_pairs,
    stream,
)

ORDERS = ("none", "outer", "strict")
NEAR = "l.a BETWEEN r.b - 1 AND r.b + 1"
NEAR_ODD = f"{NEAR} AND (l.a * r.b) % 2 = 1"


@pytest.fixture
def small_chunks(monkeypatch):
    """Chunks of four pairs, so that small joins have many."""
    monkeypatch.setattr(collect, "CHUNK_PAIRS", 4)


def near(left, right):
    return right["b"] - 1 <= left["a"] <= right["b"] + 1


def near_odd(left, right):
    return near(left, right) and left["a"] * right["b"] % 2 == 1


def streams():
    random = np.random.default_rng(11)
    return stream(a=random.integers(0, 5, 30)), stream(b=random.integers(0, 5, 30))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("on", "holds"), [(NEAR, near), (NEAR_ODD, near_odd)])
@pytest.mark.parametrize("batch", [1, 4, 100])
def test_chunks_are_bounded_and_together_all_pairs(small_chunks, order, on, holds, batch):
    left, right = streams()
    splits = [(10, 10), (10, 0), (10, 20)]
    wanted = expected_pairs(holds, "rows 12", left, right, arrival_of(splits))
    with join_of(
        on, "rows 12", left, right, order=order, batch=batch, subwindow=5, linger=60
    ) as join:
        batches = list(push_all(join, left, right, splits))
    assert all(0 < batch.num_rows <= 4 for batch in batches)
    found = pairs_of(batches)
    same_pairs(found, wanted)
    if order == "strict":
        assert found == wanted
    if order == "outer":
        place = {who: number for number, who in enumerate(arrival_of(splits))}
        later = [max(place[Side.LEFT, a], place[Side.RIGHT, b]) for a, b in found]
        assert later == sorted(later)


@pytest.mark.parametrize("order", ORDERS)
def test_one_tuple_with_many_pairs_is_cut_as_well(small_chunks, order):
    left, right = stream(a=[1] * 50), stream(b=[1])
    with join_of(NEAR, "none", left, right, order=order, subwindow=7) as join:
        batches = list(push_all(join, left, right, [(30, 0), (20, 0), (0, 1)]))
    assert all(0 < batch.num_rows <= 4 for batch in batches)
    found = pairs_of(batches)
    same_pairs(found, [(row, 0) for row in range(50)])
    if order == "strict":
        assert found == sorted(found)


@pytest.mark.parametrize(("on", "holds"), [(NEAR, near), (NEAR_ODD, near_odd)])
def test_counts_do_not_depend_on_chunks(small_chunks, on, holds):
    left, right = streams()
    wanted = expected_pairs(holds, "rows 12", left, right, arrival_of([(30, 30)]))
    with join_of(on, "rows 12", left, right, emit="counts", subwindow=5, batch=8) as join:
        found = pairs_of(push_all(join, left, right, [(30, 30)]))
    assert sum(matches for _, _, matches in found) == len(wanted)
