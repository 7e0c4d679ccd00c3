"""StreamJoin as a user meets it: what may be pushed, what comes out, and when."""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pytest

import host
from host.errors import InputError, JoinError, OptionError, SchemaError
from hw.spec.tuples import Side
from tests.helpers import (
    arrival_of,
    exactly,
    expected_pairs,
    in_splits,
    join_of,
    null_safe,
    pairs_of,
    push_all,
    run_join,
    same_pairs,
    stream,
)

EQUAL = "l.a = r.b"
LEFT = stream(a=pa.array([1, 2, 3, 2], pa.int32()))
RIGHT = stream(b=pa.array([2, 3, 2, 4], pa.int32()))
PAIRS = [(1, 0), (1, 2), (2, 1), (3, 0), (3, 2)]


def seconds(*values):
    return pa.array([None if v is None else v * 1_000_000 for v in values], pa.timestamp("us"))


def timed(**columns):
    """A stream with event times `t` in seconds."""
    times = columns.pop("t")
    return stream(**columns, t=seconds(*times))


# What may be pushed.


@pytest.mark.parametrize("sizes", [[(1, 1)], [(1, 0), (0, 1)], [(4, 0), (0, 4)], [(3, 0), (0, 1)]])
def test_any_mix_of_sides_may_be_pushed(sizes):
    splits = in_splits(4, 4, sizes)
    same_pairs(run_join(EQUAL, "none", LEFT, RIGHT, splits), PAIRS)


def test_nothing_may_be_pushed():
    with join_of(EQUAL, "rows 3", LEFT, RIGHT) as join:
        assert pairs_of(join.push()) == []
        assert pairs_of(join.push(left=LEFT.slice(0, 0), right=None)) == []
        assert pairs_of(join.push(left=pa.RecordBatch.from_pylist([], LEFT.schema))) == []
        assert pairs_of(join.finish()) == []
        assert join.metrics.tuples == [0, 0]


def test_a_stream_that_never_comes_matches_nothing():
    with join_of(EQUAL, "rows 3", LEFT, RIGHT) as join:
        assert pairs_of(join.push(left=LEFT)) == []
        assert pairs_of(join.finish()) == []


def test_nulls_match_nothing_but_take_their_place_in_a_row_window():
    left = stream(a=pa.array([1, None, None], pa.int32()))
    right = stream(b=pa.array([None, None, 1], pa.int32()))
    for window, wanted in (("none", [(0, 2)]), ("rows 3", [(0, 2)]), ("rows 2", [])):
        assert run_join(EQUAL, window, left, right) == wanted


def test_all_values_may_be_null():
    nulls = stream(a=pa.nulls(4, pa.int32()))
    assert run_join("l.a <= r.b", "none", nulls, RIGHT) == []
    assert run_join("l.a <> r.b", "none", nulls, RIGHT) == []


@pytest.mark.parametrize("announced", ["plain", "encoded"])
def test_dictionaries_are_their_values(announced):
    encoded = LEFT.set_column(1, "a", LEFT.column("a").dictionary_encode())
    schema = encoded.schema if announced == "encoded" else LEFT.schema
    with host.StreamJoin(EQUAL, "none", schema, RIGHT.schema) as join:
        found = pa.Table.from_batches([*join.push(encoded, RIGHT), *join.finish()], join.schema)
    assert found.schema.field("l_a").type == pa.int32()
    same_pairs(zip(*(found.column(n).to_pylist() for n in ("l_id", "r_id")), strict=True), PAIRS)


def test_tables_may_have_any_chunks():
    chunked = pa.concat_tables([LEFT.slice(0, 1), LEFT.slice(1, 0), LEFT.slice(1, 3)])
    assert chunked.column("a").num_chunks > 1
    same_pairs(run_join(EQUAL, "none", chunked, RIGHT), PAIRS)


def test_slices_and_record_batches_may_be_pushed():
    padded = pa.concat_tables([RIGHT, LEFT.rename_columns(["id", "b"])]).combine_chunks()
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        for row in range(4):
            list(join.push(LEFT.to_batches()[0].slice(row, 1)))
        found = pairs_of(join.push(right=padded.slice(0, 4)))
    same_pairs(found, PAIRS)


def test_columns_are_found_by_name():
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        same_pairs(pairs_of(join.push(LEFT.select(["a", "id"]), RIGHT)), PAIRS)


def test_an_unannounced_batch_is_refused_and_the_join_goes_on():
    wrong = {
        "left must be a RecordBatch or a Table, not list": [1],
        "a left batch has no column 'a', or several: it has id": LEFT.select(["id"]),
        "a left batch has a column 'z' that was not announced": LEFT.append_column("z", LEFT["a"]),
        "left column 'a' was announced as int32 and came as int64": LEFT.set_column(
            1, "a", LEFT["a"].cast(pa.int64())
        ),
    }
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        for message, pushed in wrong.items():
            with pytest.raises(SchemaError, match=exactly(message)):
                join.push(pushed, RIGHT)
        same_pairs(pairs_of(join.push(LEFT, RIGHT)), PAIRS)
        assert join.metrics.tuples == [4, 4]


def test_all_columns_come_out_under_their_sides():
    left = LEFT.append_column("name", pa.array(["x", None, "z", "w"]))
    with host.StreamJoin(EQUAL, "none", left.schema, RIGHT.schema) as join:
        assert join.schema.names == ["l_id", "l_a", "l_name", "r_id", "r_b"]
        found = pa.Table.from_batches([*join.push(left, RIGHT), *join.finish()], join.schema)
    assert found.schema == join.schema
    rows = sorted((row["l_id"], row["l_name"], row["r_b"]) for row in found.to_pylist())
    assert rows == [(1, None, 2), (1, None, 2), (2, "z", 3), (3, "w", 2), (3, "w", 2)]


def test_select_says_which_columns_come_and_in_which_order():
    with host.StreamJoin(
        EQUAL, "none", LEFT.schema, RIGHT.schema, select="r.b, l.id"
    ) as join:
        assert join.schema.names == ["r_b", "l_id"]
        same_pairs(pairs_of(join.push(LEFT, RIGHT)), [(2, 1), (2, 1), (3, 2), (2, 3), (2, 3)])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch must be a whole number from 1 on, not 0"),
        ({"workers": 1.5}, "workers must be a whole number from 1 on, not 1.5"),
        ({"subwindow": -1}, "subwindow must be a whole number from 1 on, not -1"),
        ({"linger": -1}, "linger must be seconds from 0 on, not -1"),
        ({"order": "best"}, "order must be one of none, outer, strict, not 'best'"),
        ({"emit": "rows"}, "emit must be one of pairs, counts, aggregate, not 'rows'"),
        ({"late": "lose"}, "late must be one of drop, keep, not 'lose'"),
        ({"window": "rows 0"}, "window: a row window holds at least 1 row, not 0"),
        ({"window": 5}, "window must be text, not 5"),
        ({"lateness": "1 s"},
         "lateness goes with a time window, and the window is 'none': leave it out"),
        ({"window": "1 s"}, "the window '1 s' is of time: name the event-time column with time"),
        ({"window": "1 s", "time": "a"}, "time: right has no column 'a', it has id, b"),
        ({"window": "1 s", "time": "id"},
         "time column l.id is int64, not a timestamp or a date: cast it"),
        ({"select": ["id"]}, "select takes columns like l.id and r.id, not 'id'"),
        ({"select": ["l.ids"]}, "select: left has no column 'ids', did you mean 'id'?"),
        ({"arrival": "a,b,c"}, "arrival takes one column or two, not 3"),
        ({"left": "schema"}, "left must be a pyarrow schema, not 'schema'"),
    ],
)  # fmt: skip
def test_an_option_that_cannot_be_used_is_named(options, message):
    asked = {"on": EQUAL, "window": "none", "left": LEFT.schema, "right": RIGHT.schema} | options
    with pytest.raises(OptionError, match=exactly(message)):
        host.StreamJoin(**asked)


# When results come.


def test_what_was_not_read_comes_later():
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        join.push(LEFT.slice(0, 2), RIGHT.slice(0, 2))
        join.push(LEFT.slice(2, 1))
        some = pairs_of(join.push(LEFT.slice(3), RIGHT.slice(2)))
        same_pairs(some + pairs_of(join.finish()), PAIRS)


def test_results_may_be_read_in_part():
    left, right = stream(a=[1] * 30), stream(b=[1] * 30)
    with join_of(EQUAL, "none", left, right, batch=3) as join:
        found = pairs_of([next(iter(join.push(left, right)))])
        assert 0 < len(found) < 900
        found += pairs_of(join.push())
        assert len(found) == len(set(found)) == 900


def test_results_come_with_the_push_that_completed_them():
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        assert pairs_of(join.push(left=LEFT)) == []
        assert pairs_of(join.push(right=RIGHT.slice(0, 1))) == [(1, 0), (3, 0)]
        assert pairs_of(join.push(right=RIGHT.slice(1, 1))) == [(2, 1)]


def test_a_batch_waits_until_it_is_full():
    with join_of(EQUAL, "none", LEFT, RIGHT, batch=3, linger=3600) as join:
        assert pairs_of(join.push(LEFT.slice(0, 2), RIGHT.slice(0, 2))) == []
        assert join.metrics.batches == 0
        # The fourth left tuple is one too many: what came before it goes.
        found = pairs_of(join.push(LEFT.slice(2), RIGHT.slice(2)))
        assert join.metrics.batches == 1
        same_pairs(found, [(1, 0), (1, 2), (2, 1)])
        same_pairs(found + pairs_of(join.finish()), PAIRS)


def test_a_batch_that_lingered_long_enough_goes(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("host.stream_join.time.monotonic", lambda: now[0])
    with join_of(EQUAL, "none", LEFT, RIGHT, linger=5) as join:
        assert pairs_of(join.push(LEFT, RIGHT)) == []
        now[0] += 4.9
        assert pairs_of(join.push()) == []
        now[0] += 0.1
        same_pairs(pairs_of(join.push()), PAIRS)


@pytest.mark.parametrize("batch", [1, 2, 100])
@pytest.mark.parametrize("order", ["outer", "strict"])
def test_ordered_results_are_in_order_of_the_later_tuple(order, batch):
    left, right = stream(a=[1, 1, 2, 1, 1]), stream(b=[1, 2, 1, 1])
    wanted = expected_pairs(
        lambda a, b: a["a"] == b["b"], "rows 3", left, right, arrival_of([(5, 4)])
    )
    found = run_join(EQUAL, "rows 3", left, right, order=order, batch=batch, subwindow=2)
    place = {who: number for number, who in enumerate(arrival_of([(5, 4)]))}
    later = [max(place[Side.LEFT, a], place[Side.RIGHT, b]) for a, b in found]
    assert later == sorted(later)
    if order == "strict":
        assert found == wanted
    else:
        same_pairs(found, wanted)


def test_counts_are_one_row_a_tuple():
    with join_of(EQUAL, "rows 2", LEFT, RIGHT, emit="counts") as join:
        assert join.schema.names == ["side", "row", "matches"]
        found = pairs_of([*join.push(LEFT, RIGHT), *join.finish()])
    assert found == [
        ("l", 0, 0), ("r", 0, 0), ("l", 1, 1), ("r", 1, 0),
        ("l", 2, 1), ("r", 2, 1), ("l", 3, 1), ("r", 3, 0),
    ]  # fmt: skip


def test_a_batch_larger_than_the_window_leaves_the_window():
    left = stream(a=[1] * 50)
    right = stream(b=[1] * 50)
    with join_of(EQUAL, "rows 3", left, right, subwindow=2) as join:
        for _ in join.push(left, right):
            pass
        assert [sum(part.rows for part in chain) for chain in join.manager.chains] == [3, 3]
        found = pairs_of(join.push(right=right.slice(0, 1)))
        assert found == [(47, 0), (48, 0), (49, 0)]


# Time.


def test_late_tuples_are_counted_and_not_joined():
    left = timed(a=[1, 1, 1, 1], t=[100, 89, 90, None])
    right = timed(b=[1], t=[95])
    with join_of(EQUAL, "10 s", left, right, time="t", lateness="10 s") as join:
        found = pairs_of([*join.push(left), *join.push(right=right), *join.finish()])
        assert join.metrics.late == [1, 0]
        assert join.take_late() == []
    same_pairs(found, [(0, 0), (2, 0)])


def test_late_tuples_go_to_the_side_output_once():
    left = timed(a=[1, 2, 3, 4], t=[100, 50, 100, 60])
    right = timed(b=[1], t=[95])
    with join_of(EQUAL, "10 s", left, right, time="t", lateness="10 s", late="keep") as join:
        for part in (left.slice(0, 2), left.slice(2)):
            list(join.push(part, right.slice(0, 0)))
        taken = join.take_late()
        assert [(side, numbers.tolist()) for side, numbers, _ in taken] == [("l", [1]), ("l", [3])]
        assert [rows.column("a").to_pylist() for _, _, rows in taken] == [[2], [4]]
        assert join.take_late() == []


def test_a_late_tuple_has_its_row_among_the_counts():
    left, right = timed(a=[1, 1], t=[100, 50]), timed(b=[1, 1], t=[95, 55])
    with join_of(
        EQUAL, "10 s", left, right, time="t", lateness="1 s", emit="counts"
    ) as join:
        found = pairs_of([*join.push(left, right), *join.finish()])
    assert found == [("l", 0, 0), ("r", 0, 1), ("l", 1, 0), ("r", 1, 0)]


def test_without_a_lateness_nothing_is_late_and_all_is_kept():
    left = timed(a=[1] * 40, t=range(0, 4000, 100))
    right = timed(b=[1], t=[0])
    with join_of(EQUAL, "10 s", left, right, time="t", subwindow=4) as join:
        list(join.push(left))
        assert sum(part.rows for part in join.manager.chains[Side.LEFT]) == 40
        assert pairs_of(join.push(right=right)) == [(0, 0)]


def test_watermarks_free_the_state_of_both_streams():
    left = timed(a=[1] * 100, t=range(100))
    right = timed(b=[1] * 100, t=range(100))
    with join_of(EQUAL, "5 s", left, right, time="t", lateness="0 s", subwindow=4) as join:
        for row in range(0, 100, 10):
            list(join.push(left.slice(row, 10), right.slice(row, 10)))
        held = [sum(part.rows for part in chain) for chain in join.manager.chains]
        assert max(held) <= 12
        assert all(store.end - store.first <= 16 for store in join.stores)


def test_a_promise_frees_the_state_when_a_stream_is_silent():
    left, right = timed(a=[1] * 20, t=range(20)), timed(b=[1, 1], t=[8, 15])
    with join_of(EQUAL, "5 s", left, right, time="t", lateness="0 s", subwindow=2) as join:
        list(join.push(left))
        assert sum(part.rows for part in join.manager.chains[Side.LEFT]) == 20
        join.advance(right=15_000_000)
        # A right tuple from 15 s on sees left times from 10 s on.
        assert sum(part.rows for part in join.manager.chains[Side.LEFT]) == 10
        assert join.stores[Side.LEFT].nbytes > 0
        found = pairs_of(join.push(right=right))
        assert join.metrics.late == [0, 1]
        assert found == [(row, 1) for row in range(10, 20)]


def test_a_promise_makes_late_without_a_lateness():
    left, right = timed(a=[1] * 3, t=[4, 5, 6]), timed(b=[1], t=[5])
    with join_of(EQUAL, "5 s", left, right, time="t") as join:
        join.advance(left=5_000_000)
        list(join.push(left))
        same_pairs(pairs_of(join.push(right=right)), [(1, 0), (2, 0)])
        assert join.metrics.late == [1, 0]


def test_a_promise_is_not_for_what_was_pushed_before_it():
    left, right = timed(a=[1], t=[5]), timed(b=[1], t=[5])
    message = "read the results of the last push before the watermark is advanced"
    with join_of(EQUAL, "5 s", left, right, time="t", linger=3600) as join:
        assert pairs_of(join.push(left, right)) == []
        with pytest.raises(JoinError, match=exactly(message)):
            join.advance(left=60_000_000)
        assert pairs_of(join.push()) == [(0, 0)]
        join.advance(left=60_000_000)
        assert pairs_of([*join.push(left=left), *join.finish()]) == []
        assert join.metrics.late == [1, 0]


def test_a_promise_loses_no_result_that_was_not_read():
    left, right = timed(a=[1], t=[5]), timed(b=[1], t=[5])
    with join_of(EQUAL, "5 s", left, right, time="t") as join:
        join.push(left, right)
        with pytest.raises(JoinError):
            join.advance(left=60_000_000)
        assert pairs_of(join.finish()) == [(0, 0)]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_event_times_may_have_any_unit_and_a_zone(unit, zone):
    kind = pa.timestamp(unit, zone)
    left, right = (
        stream(**{name: [1, 1], "t": pa.array([100, 200], pa.timestamp("s", zone)).cast(kind)})
        for name in "ab"
    )
    found = run_join(EQUAL, "10 s", left, right, time="t")
    same_pairs(found, [(0, 0), (1, 1)])


def test_event_times_may_be_dates():
    left, right = (stream(**{name: [1, 1], "t": pa.array([1, 3], pa.date32())}) for name in "ab")
    same_pairs(run_join(EQUAL, "1 day", left, right, time="t"), [(0, 0), (1, 1)])
    assert len(run_join(EQUAL, "2 days", left, right, time="t")) == 4


def test_equal_times_match_in_a_window_of_nothing():
    left, right = timed(a=[1, 1], t=[5, 6]), timed(b=[1, 1], t=[5, 7])
    assert run_join(EQUAL, "0 s", left, right, time="t") == [(0, 0)]


# Order of arrival by columns.


def arriving(name, values, at):
    return stream(**{name: values}, at=pa.array(at))


def test_arrival_columns_say_who_came_first():
    left, right = arriving("a", [1, 1, 1], [10, 30, 50]), arriving("b", [1, 1], [20, 40])
    # l0 r0 l1 r1 l2 with windows of one.
    wanted = [(0, 0), (1, 0), (1, 1), (2, 1)]
    assert run_join(EQUAL, "rows 1", left, right, arrival="at", order="strict") == wanted


def test_of_equal_arrivals_left_comes_first():
    left, right = arriving("a", [1, 1], [10, 10]), arriving("b", [1, 1], [10, 10])
    assert run_join(EQUAL, "rows 1", left, right, arrival="at", order="strict") == [(1, 0), (1, 1)]


@pytest.mark.parametrize("sizes", [[(1, 0), (0, 1)], [(5, 0), (0, 5)], [(0, 9), (2, 0)], [(2, 1)]])
def test_pushes_do_not_matter_with_arrival_columns(sizes):
    random = np.random.default_rng(5)
    sides = random.permutation([0] * 20 + [1] * 17)
    at = [np.flatnonzero(sides == side).tolist() for side in Side]
    left = arriving("a", random.integers(0, 3, 20), at[0])
    right = arriving("b", random.integers(0, 3, 17), at[1])
    arrival = sorted(
        [(Side.LEFT, row) for row in range(20)] + [(Side.RIGHT, row) for row in range(17)],
        key=lambda who: at[who[0]][who[1]],
    )
    wanted = expected_pairs(
        null_safe(lambda a, b: a["a"] == b["b"]), "rows 4", left, right, arrival
    )
    splits = in_splits(20, 17, sizes)
    assert run_join(EQUAL, "rows 4", left, right, splits, arrival="at", order="strict") == wanted


def test_a_tuple_waits_until_the_other_stream_has_come_as_far():
    left, right = arriving("a", [1, 1, 1], [1, 5, 9]), arriving("b", [1, 1], [4, 5])
    with join_of(EQUAL, "none", left, right, arrival="at", order="strict") as join:
        assert pairs_of(join.push(left=left)) == []
        assert join.metrics.batches == 0
        assert pairs_of(join.push(right=right.slice(0, 1))) == [(0, 0)]
        # Of the arrivals 5 the left one goes first, and the right one once left is past 5.
        assert pairs_of(join.push(right=right.slice(1))) == [(1, 0), (0, 1), (1, 1)]
        assert pairs_of(join.finish()) == [(2, 0), (2, 1)]
        assert join.metrics.tuples == [3, 2]


def test_a_right_tuple_waits_for_left_ones_of_the_same_arrival():
    left, right = arriving("a", [1, 1, 1], [5, 5, 6]), arriving("b", [1], [5])
    with join_of(EQUAL, "rows 1", left, right, arrival="at", order="strict") as join:
        assert pairs_of(join.push(left.slice(0, 1), right)) == []
        assert pairs_of(join.push(left.slice(1, 1))) == []
        assert pairs_of(join.push(left.slice(2))) == [(1, 0)]
        assert pairs_of(join.finish()) == [(2, 0)]


def test_rows_of_a_push_may_arrive_in_any_order():
    left, right = arriving("a", [7, 8, 9], [30, 10, 20]), arriving("b", [7, 8, 9], [15, 35, 25])
    with join_of("l.a <> r.b", "rows 1", left, right, arrival="at", emit="counts") as join:
        found = pairs_of([*join.push(left, right), *join.finish()])
    assert [row[:2] for row in found] == [
        ("l", 1), ("r", 0), ("l", 2), ("r", 2), ("l", 0), ("r", 1),
    ]  # fmt: skip
    # l8 r7 l9 r9 l7 r8, each with the last of the other stream.
    assert [row[2] for row in found] == [0, 1, 1, 0, 1, 1]


def test_arrivals_that_go_back_from_push_to_push_are_refused_and_nothing_is_lost():
    left, right = arriving("a", [1, 1, 1], [5, 3, 7]), arriving("b", [1], [9])
    with join_of(EQUAL, "none", left, right, arrival="at") as join:
        list(join.push(left=left.slice(0, 1)))
        message = (
            "arrival l.at goes back to 3 after 5 was pushed: push each stream in order of arrival"
        )
        with pytest.raises(InputError, match=exactly(message)):
            join.push(left.slice(1, 1), right)
        found = pairs_of([*join.push(left.slice(2), right), *join.finish()])
    same_pairs(found, [(0, 0), (2, 0)])


def test_a_stream_that_ended_is_not_waited_for():
    left = stream(a=pa.array([1, 2, 3], pa.int32()), at=pa.array([1, 5, 9]))
    right = stream(b=pa.array([1, 2, 3], pa.int32()), at=pa.array([2, 3, 4]))
    with join_of(EQUAL, "none", left, right, arrival="at") as join:
        assert pairs_of(join.push(left, right)) == [(0, 0)]
        assert sorted(pairs_of(join.end(right=True))) == [(1, 1), (2, 2)]
        message = exactly("right has ended: nothing more of it can be pushed")
        with pytest.raises(InputError, match=message):
            join.push(None, right)
        assert pairs_of(join.finish()) == []


def test_an_arrival_beyond_64_bits_is_refused():
    left = stream(a=pa.array([1]), b=pa.array([1]), at=pa.array([2**63 + 5], pa.uint64()))
    message = exactly("arrival l.at has a value that is no int64: cast the column")
    with (
        join_of(EQUAL, "none", left, left, arrival="at") as join,
        pytest.raises(InputError, match=message),
    ):
        join.push(left)


def test_an_arrival_that_is_not_a_number_is_refused():
    left = stream(a=pa.array([1]), b=pa.array([1]), at=pa.array([float("nan")]))
    message = exactly("arrival l.at has a NaN: every tuple needs its place")
    with (
        join_of(EQUAL, "none", left, left, arrival="at") as join,
        pytest.raises(InputError, match=message),
    ):
        join.push(left)


def test_a_time_finer_than_a_microsecond_is_refused():
    left = stream(a=pa.array([1]), b=pa.array([1]), t=pa.array([1001], pa.timestamp("ns")))
    message = exactly(
        "time l.t has a value that is no whole number of microseconds in 64 bits: round it"
    )
    with (
        join_of(EQUAL, "1 second", left, left, time="t") as join,
        pytest.raises(InputError, match=message),
    ):
        list(join.push(left))


def test_an_unknown_arrival_is_refused():
    left, right = arriving("a", [1, 1], [5, None]), arriving("b", [1], [9])
    with join_of(EQUAL, "none", left, right, arrival="at") as join:
        message = "arrival l.at is NULL in row 1: every tuple needs its place"
        with pytest.raises(InputError, match=exactly(message)):
            join.push(left, right)


@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        ((pa.int64(), pa.int32()), (1, 2, 3)),
        ((pa.int32(), pa.float64()), (1, 2, 3)),
        ((pa.float64(), pa.float64()), (0.25, 0.5, 0.75)),
        ((pa.timestamp("us"), pa.timestamp("s")), (1_000_000, 2_000_000, 3_000_000)),
    ],
)
def test_arrivals_may_be_numbers_or_times(kinds, values):
    first, between, last = values
    scale = 1_000_000 if kinds[1] == pa.timestamp("s") else 1
    left = stream(a=[1, 1], at=pa.array([first, last], kinds[0]))
    right = stream(b=[1], at=pa.array([between / scale if scale == 1 else between // scale],
                                      pa.float64() if scale == 1 else pa.int64()).cast(kinds[1]))
    assert run_join(EQUAL, "rows 1", left, right, arrival="at", order="strict") == [(0, 0), (1, 0)]


def test_arrivals_of_two_natures_are_refused():
    left = stream(a=[1], at=pa.array([1], pa.int64()))
    right = stream(b=[1], at=pa.array([1], pa.timestamp("us")))
    message = (
        "arrival columns l.at (int64) and r.at (timestamp[us]) must both be numbers "
        "or both be times"
    )
    with pytest.raises(InputError, match=exactly(message)):
        join_of(EQUAL, "none", left, right, arrival="at")


# The end, and failures.


def test_a_finished_join_takes_nothing_more():
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        same_pairs(pairs_of([*join.push(LEFT, RIGHT), *join.finish()]), PAIRS)
        assert pairs_of(join.finish()) == []
        message = exactly("this join is finished: begin another one")
        with pytest.raises(JoinError, match=message):
            join.push(LEFT)
        with pytest.raises(JoinError, match=message):
            join.advance(left=1)


def test_close_may_be_called_again():
    join = join_of(EQUAL, "none", LEFT, RIGHT, workers=2)
    with join:
        join.push(LEFT, RIGHT)
        join.close()
    join.close()


def test_closing_drops_what_nobody_read():
    left, right = stream(a=[1] * 2_000), stream(b=[1] * 2_000)
    with join_of(EQUAL, "none", left, right) as join:
        assert next(iter(join.push(left, right))).num_rows > 0


@pytest.mark.parametrize("begun", [False, True])
def test_nothing_can_be_read_after_closing(begun):
    left, right = stream(a=[1] * 2_000), stream(b=[1] * 2_000)
    join = join_of(EQUAL, "none", left, right, batch=500)
    results = join.push(left, right)
    if begun:
        next(results)
    join.close()
    message = exactly("this join is closed: what was not read is lost")
    for reading in (results, join.finish()):
        with pytest.raises(JoinError, match=message):
            next(reading)
    with pytest.raises(JoinError, match=message):
        join.push(left)


def test_nothing_can_be_read_after_a_failure(monkeypatch):
    with join_of(EQUAL, "none", LEFT, RIGHT, batch=1) as join:
        find, calls = join.manager.find, []

        def broken_once(prepared, *, counting):
            calls.append(prepared)
            if len(calls) == 2:
                raise JoinError("the cable was out")
            return find(prepared, counting=counting)

        monkeypatch.setattr(join.manager, "find", broken_once)
        first, second = join.push(LEFT, RIGHT), join.push()
        with pytest.raises(JoinError, match=exactly("the cable was out")):
            list(first)
        message = exactly("this join has failed before: the cable was out")
        with pytest.raises(JoinError, match=message):
            list(second)


def test_a_join_that_was_interrupted_in_its_work_is_of_no_more_use(monkeypatch):
    with join_of(EQUAL, "none", LEFT, RIGHT, emit="counts") as join:
        def interrupted(prepared, *, counting):
            raise KeyboardInterrupt

        monkeypatch.setattr(join.manager, "find", interrupted)
        with pytest.raises(KeyboardInterrupt):
            list(join.push(LEFT, RIGHT))
        message = "this join was interrupted in the middle of a batch: begin another one"
        for call in (join.push, join.finish):
            with pytest.raises(JoinError, match=exactly(message)):
                list(call())


@pytest.mark.parametrize("ending", ["push", "finish"])
def test_what_an_engine_fails_to_store_is_said_by_the_next_call(monkeypatch, ending):
    with join_of(EQUAL, "none", LEFT, RIGHT, emit="counts") as join:
        def full(batches):
            raise JoinError("the device is full")

        monkeypatch.setattr(join.manager.workers[0].backend, "insert_all", full)
        assert sum(batch.num_rows for batch in join.push(LEFT, RIGHT)) > 0
        with pytest.raises(JoinError, match=exactly("the device is full")):
            list(join.push(LEFT, RIGHT) if ending == "push" else join.finish())


def test_after_a_failure_every_call_says_so(monkeypatch):
    with join_of(EQUAL, "none", LEFT, RIGHT) as join:
        def broken(prepared, *, counting):
            raise JoinError("the cable is out")

        monkeypatch.setattr(join.manager, "find", broken)
        with pytest.raises(JoinError, match=exactly("the cable is out")):
            list(join.push(LEFT, RIGHT))
        message = exactly("this join has failed before: the cable is out")
        for call in (join.push, join.finish, join.advance):
            with pytest.raises(JoinError, match=message):
                call()


def test_metrics_tell_what_was_done():
    with join_of(EQUAL, "none", LEFT, RIGHT, batch=2) as join:
        list(push_all(join, LEFT, RIGHT, [(4, 3), (0, 1)]))
        metrics = join.metrics
    assert (metrics.tuples, metrics.late, metrics.pairs) == ([4, 4], [0, 0], 5)
    assert metrics.batches == 3
    assert metrics.seconds > 0
    assert metrics.engine_s > 0
    assert metrics.summary().startswith("8 tuples in (4 left, 4 right), 5 pairs out, 0 late, ")


# Memory.

EXPLOSION = """
    import resource, sys
    import numpy as np, pyarrow as pa
    import host

    rows, options = 10_000, dict(pair.split("=") for pair in sys.argv[1:])
    ones = pa.table({"a": np.ones(rows, np.int32), "id": np.arange(rows, dtype=np.int64)})

    def resident():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

    with host.StreamJoin("l.a = r.a", "none", ones.schema, ones.schema, batch=rows,
                         **options) as join:
        list(join.push(ones.slice(0, 1), ones.slice(0, 1)))
        before, pairs, largest = resident(), 1, 0
        for batch in join.push(ones.slice(1), ones.slice(1)):
            if options.get("emit") != "counts":
                pairs += batch.num_rows
                largest = max(largest, batch.nbytes)
        print(join.metrics.pairs, pairs, largest >> 20, resident() - before)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [("select=l.id,r.id",), ("select=l.id", "order=strict"), ("emit=counts",)]
)
def test_a_hundred_million_pairs_of_one_batch_fit_in_little_memory(options):
    """In a process of its own: pairs that are emitted in pieces never stand all in memory."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(EXPLOSION), *options],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pairs, counted, largest_mb, grown_mb = map(int, done.stdout.split())
    assert pairs == 100_000_000
    assert counted == (1 if "emit=counts" in options else pairs)
    assert largest_mb <= 64
    assert grown_mb <= 300


def test_streams_of_large_batches_are_prepared_side_by_side():
    """As large as the option allows or small, a batch gives the same counts."""
    random = np.random.default_rng(8)
    schema = pa.schema([("x", pa.int32())])
    left, right = (
        pa.record_batch([random.integers(0, 1 << 30, 70_000).astype(np.int32)], schema=schema)
        for _ in range(2)
    )
    matches = []
    for batch in (1 << 17, 1 << 13):
        with host.StreamJoin(
            on="ABS(l.x - r.x) <= 20000", window="rows 300000", left=schema, right=schema,
            backend="numpy", emit="counts", batch=batch,
        ) as join:
            results = [*join.push(left, right), *join.finish()]
        matches.append(pa.Table.from_batches(results).column("matches").to_pylist())
    assert matches[0] == matches[1]
    assert sum(matches[0]) > 70_000
