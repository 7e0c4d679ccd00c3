"""The one order of arrival."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from host.arrivals import interleave, merge_by_value
from hw.spec import reference
from hw.spec.tuples import Side
from tests.helpers import share

counts = st.tuples(st.integers(0, 6), st.integers(0, 6))


def rows(count, first=0):
    return pa.RecordBatch.from_pydict({"id": pa.array(range(first, first + count), pa.int64())})


def arrivals_of(left, right):
    return interleave((rows(left), rows(right)), (np.arange(left), np.arange(right)))


def sequence(arrivals):
    """The tuples in their order; rows, numbers and positions must tell the same."""
    found = [None] * len(arrivals)
    for side in Side:
        ids = arrivals.rows[side].column("id").to_pylist()
        assert ids == arrivals.numbers[side].tolist()
        for number, place in zip(ids, arrivals.positions[side].tolist(), strict=True):
            assert found[place] is None
            found[place] = (side, number)
    return found


@share(5)
@given(counts)
def test_left_row_i_arrives_just_before_right_row_i(counts):
    assert sequence(arrivals_of(*counts)) == reference.interleaved(*counts)


@share(5)
@given(counts, counts)
def test_a_sum_is_one_after_the_other(first, second):
    later = interleave(
        (rows(second[0], first[0]), rows(second[1], first[1])),
        tuple(np.arange(before, before + more) for before, more in zip(first, second, strict=True)),
    )
    whole = arrivals_of(*first) + later
    assert len(whole) == sum(first) + sum(second)
    assert sequence(whole) == sequence(arrivals_of(*first)) + sequence(later)


@share(5)
@given(counts, st.integers(1, 4))
def test_pieces_in_order_are_the_whole(counts, most):
    whole = arrivals_of(*counts)
    pieces = list(whole.cut(most))
    assert [who for piece in pieces for who in sequence(piece)] == sequence(whole)
    for piece in pieces:
        assert 0 < max(len(positions) for positions in piece.positions) <= most
    # No piece could have taken the next tuple as well.
    for piece, later in pairwise(pieces):
        side, _ = sequence(later)[0]
        assert len(piece.positions[side]) == most


@share(5)
@given(st.lists(st.integers(0, 5), max_size=6), st.lists(st.integers(0, 5), max_size=6))
def test_values_decide_and_left_wins_a_tie(left, right):
    values = (np.sort(np.array(left, int)), np.sort(np.array(right, int)))
    found = merge_by_value(
        (rows(len(left)), rows(len(right))), (np.arange(len(left)), np.arange(len(right))), values
    )
    order = [(values[side][row], side, row) for side, row in sequence(found)]
    assert order == sorted(order)
