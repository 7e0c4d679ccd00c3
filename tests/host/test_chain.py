"""A stream's window as a chain of subwindows."""

import numpy as np
import pytest

from host.chain import TIME, Chain, subwindow_rows
from hw.spec.tuples import Side
from hw.spec.windows import NOTHING_YET, NoWindow, RowWindow, TimeWindow


def add(chain, times_or_rows):
    """Put rows into the newest subwindows, as the manager does."""
    for place in times_or_rows:
        if chain.needs_new():
            chain.create()
        timed = isinstance(chain.window, TimeWindow)
        carried = {TIME: np.array([place])} if timed else {}
        chain.newest.extend(1, np.array([place]), carried)
        chain.total += 1


def bases(chain):
    return [(sub.base, sub.rows) for sub in chain]


def test_only_the_newest_takes_rows_until_it_is_full():
    chain = Chain(Side.LEFT, RowWindow(10, 10), workers=1, rows=3)
    assert chain.newest is None
    add(chain, range(8))
    assert bases(chain) == [(0, 3), (3, 3), (6, 2)]
    assert chain.newest.room == 1
    assert not chain.needs_new()


def test_subwindows_are_dealt_to_workers_in_turn_and_names_are_not_used_again():
    chain = Chain(Side.LEFT, RowWindow(2, 2), workers=3, rows=1)
    add(chain, range(5))
    assert [sub.worker for sub in chain] == [0, 1, 2, 0, 1]
    chain.take_expired(5)
    add(chain, range(5, 7))
    assert [sub.number for sub in chain] == [3, 4, 5, 6]


def test_rows_expire_by_whole_subwindows():
    chain = Chain(Side.RIGHT, RowWindow(99, 4), workers=1, rows=3)
    add(chain, range(9))
    # The next probe sees the rows 5 to 8: the first subwindow is past, the second is not.
    assert [sub.base for sub in chain.take_expired(9)] == [0]
    assert bases(chain) == [(3, 3), (6, 3)]
    assert chain.take_expired(9) == []
    assert [sub.base for sub in chain.take_expired(10)] == [3]


def test_times_expire_by_the_other_streams_watermark():
    chain = Chain(Side.LEFT, TimeWindow(-5, 10), workers=1, rows=2)
    add(chain, [20, 21, 10, 22, 50, 12])
    assert chain.take_expired(NOTHING_YET) == []
    # A right tuple at 31 sees left times from 21 on.
    assert chain.take_expired(31) == []
    gone = chain.take_expired(32)
    assert [(sub.smallest, sub.largest) for sub in gone] == [(20, 21)]
    # Out of order: what is in the middle may be past before what is older.
    add(chain, [1, 2])
    assert [sub.base for sub in chain.take_expired(33)] == [2, 6]
    assert [sub.base for sub in chain] == [4]


def test_times_are_kept_by_row():
    chain = Chain(Side.LEFT, TimeWindow(0, 1), workers=1, rows=3_000)
    add(chain, range(2_500))
    (subwindow,) = chain
    assert subwindow.times[: subwindow.rows].tolist() == list(range(2_500))


def test_rows_that_cannot_match_take_places_but_no_part_in_the_span():
    chain = Chain(Side.LEFT, RowWindow(3, 3), workers=1, rows=4)
    chain.create().extend(4, np.array([2]), {})
    chain.total += 4
    subwindow = chain.newest
    assert (subwindow.rows, subwindow.stored, subwindow.room) == (4, 1, 0)
    assert (subwindow.smallest, subwindow.largest) == (2, 2)


def test_a_subwindow_of_unknown_times_goes_once_it_is_full():
    chain = Chain(Side.LEFT, TimeWindow(0, 9), workers=1, rows=2)
    chain.create().extend(2, np.empty(0, int), {TIME: np.zeros(2, int)})
    chain.total += 2
    assert chain.take_expired(NOTHING_YET) == []
    add(chain, [5])
    assert [sub.number for sub in chain.take_expired(NOTHING_YET)] == [0]


def test_nothing_expires_without_a_window():
    chain = Chain(Side.LEFT, NoWindow(), workers=1, rows=2)
    add(chain, range(10))
    assert chain.take_expired(10) == []


def test_a_long_history_has_larger_subwindows():
    chain = Chain(Side.LEFT, NoWindow(), workers=1, rows=2)
    add(chain, range(1_000))
    assert len(chain.subwindows) < 200
    capacities = [sub.capacity for sub in chain]
    assert capacities == sorted(capacities)
    assert sum(sub.rows for sub in chain) == 1_000


@pytest.mark.parametrize(
    ("window", "rows"),
    [
        (RowWindow(1 << 20, 7), 1 << 18),
        (RowWindow(5, 7), 1 << 13),
        (RowWindow(1 << 40, 7), 1 << 26),
        (NoWindow(), 1 << 18),
        (TimeWindow(0, 1), 1 << 18),
    ],
)
def test_a_window_has_a_few_subwindows_of_fair_size(window, rows):
    assert subwindow_rows(window, Side.LEFT) == rows


@pytest.mark.parametrize(
    ("window", "rows"), [(100, 1 << 13), (1 << 20, 1 << 19), (1 << 23, 1 << 22), (1 << 26, 1 << 23)]
)
def test_a_window_in_opencl_has_fewer_subwindows(window, rows):
    assert subwindow_rows(RowWindow(window, 1), Side.LEFT, "opencl") == rows


def test_a_time_window_begins_a_subwindow_when_the_newest_spans_enough():
    chain = Chain(Side.LEFT, TimeWindow(-500, 500), workers=1)
    chain.create()
    few, many = np.arange(0, 1_000), np.arange(1 << 13)
    chain.newest.extend(len(few), few, {TIME: few})
    # Few rows stay together, however long they took.
    assert not chain.needs_new()
    chain.newest.extend(len(many), many % 200, {TIME: many % 200})
    assert chain.needs_new()
