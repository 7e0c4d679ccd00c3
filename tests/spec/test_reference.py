"""The judge, judged by hand: examples worked out from the law."""

import pytest

from hw.spec.predicates import Band, Predicate
from hw.spec.reference import interleaved, late, match_counts, pairs, probe_records
from hw.spec.tuples import Side
from hw.spec.windows import NoWindow, RowWindow, TimeWindow

L, R = Side.LEFT, Side.RIGHT


def always(left, right):
    return True


def order(text):
    """'llr' -> left row 0, left row 1, right row 0."""
    count = {"l": 0, "r": 0}
    arrival = []
    for letter in text:
        arrival.append((L if letter == "l" else R, count[letter]))
        count[letter] += 1
    return arrival


def test_left_row_i_arrives_just_before_right_row_i():
    assert interleaved(3, 1) == [(L, 0), (R, 0), (L, 1), (L, 2)]
    assert interleaved(1, 3) == [(L, 0), (R, 0), (R, 1), (R, 2)]
    assert interleaved(0, 0) == []


def test_without_a_window_all_pairs_come_with_the_later_tuple():
    assert pairs(order("lrlr"), always, NoWindow()) == [(0, 0), (1, 0), (0, 1), (1, 1)]


def test_a_row_window_of_one_sees_the_last_tuple_only():
    # l0 l1 r0 r1 l2: r0 and r1 see l1; l2 sees r1.
    assert pairs(order("llrrl"), always, RowWindow(1, 1)) == [(1, 0), (1, 1), (2, 1)]


def test_each_side_has_a_row_window_of_its_own():
    # r0 sees the last two left tuples, l3 only the last right one.
    found = pairs(order("lllrrl"), always, RowWindow(2, 1))
    assert found == [(1, 0), (2, 0), (1, 1), (2, 1), (3, 1)]


def test_a_row_window_counts_what_never_matches():
    def not_the_first(left, right):
        return left != 1

    # l1 takes the place of l0 in the window of one, although it matches nothing.
    assert pairs(order("llr"), not_the_first, RowWindow(1, 1)) == []
    assert pairs(order("llr"), not_the_first, RowWindow(2, 1)) == [(0, 0)]


def test_a_time_window_includes_both_ends_in_any_order_of_arrival():
    times = ([100, 120], [90, 110, 111, 89])
    window = TimeWindow(-10, 10)
    wanted = [(0, 0), (0, 1), (1, 1), (1, 2)]
    for arrival in ("lrlrrr", "rrrrll", "llrrrr"):
        assert sorted(pairs(order(arrival), always, window, times)) == wanted


def test_an_uneven_time_window_is_of_right_minus_left():
    times = ([100], [94, 95, 100, 110, 111])
    assert pairs(order("lrrrrr"), always, TimeWindow(-5, 10), times) == [(0, 1), (0, 2), (0, 3)]


def test_a_tuple_is_late_by_what_came_before_it_on_its_own_stream():
    times = ([100, 89, 90, 85], [50, 40])
    # 89 < 100 - 10; 90 is just in time; the right stream has a watermark of its own.
    assert late(order("lrllrl"), times, 10) == {(L, 1), (L, 3)}


def test_a_late_tuple_still_counts_nothing_and_joins_nothing():
    times = ([100, 89, 95], [95])
    found = pairs(order("lllr"), always, TimeWindow(-10, 10), times, lateness_us=10)
    assert found == [(0, 0), (2, 0)]
    assert pairs(order("lllr"), always, TimeWindow(-10, 10), times) == [(0, 0), (1, 0), (2, 0)]


def test_a_lateness_of_zero_takes_equal_times():
    assert late(order("lll"), ([5, 5, 4], []), 0) == {(L, 2)}


def test_an_unknown_time_is_in_no_window_and_never_late():
    times = ([None, 3], [3, None])
    assert pairs(order("llrr"), always, TimeWindow(-9, 9), times, lateness_us=0) == [(1, 0)]


@pytest.mark.parametrize("answer", [None, False, 0])
def test_what_is_not_true_is_no_pair(answer):
    assert pairs(order("lr"), lambda left, right: answer, NoWindow()) == []


def test_counts_belong_to_the_tuple_that_completes_the_pair():
    arrival = order("llrlr")
    found = pairs(arrival, always, RowWindow(1, 2))
    assert found == [(1, 0), (2, 0), (2, 1)]
    assert match_counts(arrival, found) == [
        ("l", 0, 0), ("l", 1, 0), ("r", 0, 1), ("l", 2, 1), ("r", 1, 1),
    ]  # fmt: skip


def test_probe_records_are_runs_of_the_sorted_array():
    stored = [1, 3, 3, 5, 9]
    within_two = Predicate((Band(-2, 2),))
    assert probe_records(stored, 3, Side.LEFT, within_two) == [(0, 4)]
    assert probe_records(stored, 7, Side.LEFT, within_two) == [(3, 5)]
    assert probe_records(stored, 20, Side.LEFT, within_two) == [(5, 5)]
    two = Predicate((Band(-4, -2), Band(0, None)))
    assert probe_records(stored, 5, Side.LEFT, two) == [(0, 3), (3, 5)]
    assert probe_records(stored, 5, Side.RIGHT, two) == [(0, 4), (4, 5)]
