"""Which tuples are late."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from host.watermark import Watermark
from hw.spec import reference
from hw.spec.tuples import Side
from hw.spec.windows import EVERYTHING, NOTHING_YET
from tests.helpers import share


def observe(watermark, *times):
    known = np.array([time is not None for time in times], bool)
    late = watermark.observe(np.array([time or 0 for time in times], np.int64), known)
    return None if late is None else late.tolist()


def test_a_tuple_is_late_by_those_before_it():
    watermark = Watermark(10)
    assert observe(watermark, 100, 90, 89, 120, 110, 109) == [False] * 2 + [True] + [False] * 2 + [
        True
    ]
    assert watermark.time == 110
    assert observe(watermark, 109, 110) == [True, False]


def test_the_first_tuple_is_never_late():
    for first in (EVERYTHING[0] + 1, -5, 0, EVERYTHING[1]):
        watermark = Watermark(0)
        assert watermark.time == NOTHING_YET
        assert observe(watermark, first) == [False]
        assert watermark.time == first


def test_an_unknown_time_is_not_late_and_moves_nothing():
    watermark = Watermark(0)
    assert observe(watermark, 5, None, 5, 4) == [False, False, False, True]
    assert watermark.time == 5


def test_nothing_came_in_an_empty_batch():
    watermark = Watermark(0)
    assert observe(watermark) == []
    assert watermark.time == NOTHING_YET


def test_without_a_lateness_nothing_is_late():
    watermark = Watermark(None)
    assert observe(watermark, 100, -100) is None
    assert watermark.time == NOTHING_YET


def test_a_promise_makes_late_what_comes_before_it():
    watermark = Watermark(None)
    watermark.advance(50)
    assert observe(watermark, 49, 50, None) == [True, False, False]
    watermark.advance(40)
    assert watermark.time == 50


def test_the_further_of_promise_and_lateness_counts():
    watermark = Watermark(10)
    watermark.advance(50)
    assert observe(watermark, 49, 55, 49, 70, 59, 60) == [True, False, True, False, True, False]
    assert watermark.time == 60


def test_a_watermark_does_not_wrap_at_the_first_time():
    watermark = Watermark(10)
    assert observe(watermark, EVERYTHING[0] + 5, EVERYTHING[0] + 1) == [False, False]
    assert watermark.time == EVERYTHING[0]


@share(10)
@given(
    st.lists(st.lists(st.one_of(st.none(), st.integers(-9, 9)), max_size=5), max_size=4),
    st.integers(0, 9),
)
def test_late_tuples_are_the_references_however_they_are_split(batches, lateness):
    watermark = Watermark(lateness)
    found = [late for batch in batches for late in observe(watermark, *batch)]
    times = [time for batch in batches for time in batch]
    arrival = [(Side.LEFT, row) for row in range(len(times))]
    wanted = reference.late(arrival, (times, []), lateness)
    assert found == [who in wanted for who in arrival]
