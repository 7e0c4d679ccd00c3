"""Windows: what a probe sees, and what can go."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.spec.tuples import Side
from hw.spec.windows import (
    EVERYTHING,
    NOTHING_YET,
    Coverage,
    NoWindow,
    RowWindow,
    TimeWindow,
    coverage,
    parse_duration,
    parse_window,
)
from tests.helpers import exactly, share

FIRST, LAST = EVERYTHING
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("none", NoWindow()),
        (" NONE ", NoWindow()),
        ("rows 5", RowWindow(5, 5)),
        ("rows 5,9", RowWindow(5, 9)),
        ("ROWS 5 , 9", RowWindow(5, 9)),
        ("10 minutes", TimeWindow(-600 * SECOND, 600 * SECOND)),
        ("1 hour 30 minutes", TimeWindow(-5400 * SECOND, 5400 * SECOND)),
        ("0 s", TimeWindow(0, 0)),
        ("-5 minutes..10 minutes", TimeWindow(-300 * SECOND, 600 * SECOND)),
        ("5 s .. 10 s", TimeWindow(5 * SECOND, 10 * SECOND)),
        ("-10 s..-5 s", TimeWindow(-10 * SECOND, -5 * SECOND)),
    ],
)
def test_a_window_is_what_its_text_says(text, window):
    assert parse_window(text) == window


@pytest.mark.parametrize("window", ["none", "rows 5", "rows 5,9", "7 microseconds", "-3 us..8 us"])
def test_a_window_reads_its_own_text(window):
    assert parse_window(str(parse_window(window))) == parse_window(window)


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1 microsecond", 1), ("3 us", 3), ("1 ms", 1000), ("2 milliseconds", 2000), ("1s", SECOND),
        ("1 sec", SECOND), ("2 min", 120 * SECOND), ("1 h", 3600 * SECOND), ("1 d", 86400 * SECOND),
        ("2 days", 172800 * SECOND), ("1 week", 604800 * SECOND), ("1.5 seconds", 1_500_000),
        ("-5 s", -5 * SECOND), ("1 minute -1 second", 59 * SECOND), ("0.000001 s", 1),
    ],
)  # fmt: skip
def test_durations_are_microseconds(text, microseconds):
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a duration: write it like '10 minutes'"),
        ("10", "'10' is not a duration: write it like '10 minutes'"),
        ("ten minutes", "'ten minutes' is not a duration: write it like '10 minutes'"),
        ("10 minutes!", "'10 minutes!' is not a duration: write it like '10 minutes'"),
        (
            "3 fortnights",
            "'fortnights' in '3 fortnights' is not a unit of time: use microseconds, "
            "milliseconds, seconds, minutes, hours, days or weeks",
        ),
        ("0.5 us", "'0.5 us' is finer than a microsecond"),
        ("99999999999 weeks", "'99999999999 weeks' is longer than 64 bits of microseconds"),
    ],
)
def test_what_is_no_duration_is_refused(text, message):
    with pytest.raises(ValueError, match=exactly(message)):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows", "'rows' is not a row window: write 'rows 1000' or 'rows 1000,500'"),
        ("rows -1", "'rows -1' is not a row window: write 'rows 1000' or 'rows 1000,500'"),
        ("rows 1,2,3", "'rows 1,2,3' is not a row window: write 'rows 1000' or 'rows 1000,500'"),
        ("rows 0", "a row window holds at least 1 row, not 0"),
        ("rows 5,0", "a row window holds at least 1 row, not 0"),
        (f"rows {2**63}", f"a row window holds at most {2**62} rows, not {2**63}"),
        ("-5 s", "'-5 s' is negative: write a window of both signs as '-5 s..10 s'"),
        ("10 s..5 s", "the window begins at 10000000 us and ends before that, at 5000000 us"),
        ("", "'' is not a duration: write it like '10 minutes'"),
    ],
)
def test_what_is_no_window_is_refused(text, message):
    with pytest.raises(ValueError, match=exactly(message)):
        parse_window(text)


def test_a_probe_sees_the_last_rows_before_it():
    window = RowWindow(3, 2)
    assert window.rows(Side.LEFT) == 3
    # A right probe that follows ten left tuples sees the left ones 7, 8 and 9.
    first, last = window.seen(Side.RIGHT, np.array([10, 2, 0]))
    assert (first.tolist(), last.tolist()) == ([7, -1, -3], [9, 1, -1])
    first, last = window.seen(Side.LEFT, np.array([10]))
    assert (first.tolist(), last.tolist()) == ([8], [9])


def test_rows_expire_when_the_next_probe_no_longer_sees_them():
    assert RowWindow(3, 2).horizon(Side.LEFT, 10) == 7
    assert RowWindow(3, 2).horizon(Side.RIGHT, 10) == 8


def test_each_side_sees_the_mirror_image_of_a_time_window():
    window = TimeWindow(-5, 10)
    first, last = window.seen(Side.LEFT, np.array([100]))
    assert (first.tolist(), last.tolist()) == ([95], [110])
    first, last = window.seen(Side.RIGHT, np.array([100]))
    assert (first.tolist(), last.tolist()) == ([90], [105])


def test_times_at_the_ends_saturate():
    window = TimeWindow(-5, 10)
    first, last = window.seen(Side.LEFT, np.array([FIRST, FIRST + 4, FIRST + 6, LAST, LAST - 11]))
    assert first.tolist() == [FIRST, FIRST, FIRST + 1, LAST - 5, LAST - 16]
    assert last.tolist() == [FIRST + 10, FIRST + 14, FIRST + 16, LAST, LAST - 1]


def test_the_horizon_is_what_the_other_watermark_leaves():
    window = TimeWindow(-5, 10)
    # A left tuple at 100 still sees right times from 95, a right one left times from 90.
    assert window.horizon(Side.RIGHT, 100) == 95
    assert window.horizon(Side.LEFT, 100) == 90
    assert window.horizon(Side.LEFT, NOTHING_YET) == NOTHING_YET
    assert window.horizon(Side.LEFT, FIRST + 3) == FIRST


def test_without_a_window_everything_is_seen_and_nothing_goes():
    first, last = NoWindow().seen(Side.LEFT, np.array([0, 7]))
    assert (first.tolist(), last.tolist()) == ([FIRST] * 2, [LAST] * 2)
    assert NoWindow().horizon(Side.LEFT, 1_000) == FIRST


@share(10)
@given(*[st.integers(-4, 4)] * 4)
def test_coverage_is_that_of_the_places(first, last, smallest, size):
    places = range(smallest, smallest + abs(size) + 1)
    seen = [first <= place <= last for place in places]
    found = coverage(np.array([first]), np.array([last]), places[0], places[-1])[0]
    if found == Coverage.WHOLE:
        assert all(seen)
    elif found == Coverage.NONE:
        assert not any(seen)
    else:
        # A window between two places sees neither: part is then the careful answer.
        assert any(seen) != all(seen) or first > last


@share(10)
@given(*[st.integers(1, 4)] * 2, st.sampled_from(Side), *[st.integers(0, 9)] * 2)
def test_no_probe_sees_a_row_before_the_horizon(left, right, stored, total, more):
    window = RowWindow(left, right)
    first, _ = window.seen(stored.other, np.array([total + more]))
    assert first[0] >= window.horizon(stored, total)


@share(10)
@given(*[st.integers(-5, 5)] * 2, st.sampled_from(Side), st.integers(-9, 9), st.integers(0, 9))
def test_no_probe_sees_a_time_before_the_horizon(lo, width, stored, watermark, more):
    window = TimeWindow(lo, lo + abs(width))
    first, _ = window.seen(stored.other, np.array([watermark + more]))
    assert first[0] >= window.horizon(stored, watermark)
    exact, _ = window.seen(stored.other, np.array([watermark]))
    assert exact[0] == window.horizon(stored, watermark)
