"""Two predicates searched at once: every pair of operators, type, window, order and output."""

import itertools
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import host
from host.errors import OptionError
from host.explain import explain
from host.options import JoinOptions
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
    share,
    stream,
)
from tests.judges import by_duckdb, matrix_of

SIGNS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "within 1 of": lambda a, b: abs(a - b) <= 1,
    "0 to 2 before": lambda a, b: a <= b <= a + 2,
}
TEXTS = {
    "within 1 of": "ABS(l.{0} - r.{0}) <= 1",
    "0 to 2 before": "r.{0} BETWEEN l.{0} AND l.{0} + 2",
}
PAIRS = list(itertools.product(SIGNS, SIGNS))


def text(sign, column):
    return TEXTS.get(sign, f"l.{{0}} {sign} r.{{0}}").format(column)


def small_streams(count, seed=1):
    """Duplicates, ties and NULLs in both columns."""
    random = np.random.default_rng(seed)
    return [
        stream(**{name: pa.array(random.integers(0, 6, count), mask=random.random(count) < 0.1)
                  for name in "ab"})
        for _ in "lr"
    ]  # fmt: skip


def searched(on, left, right, **options):
    """Whether a join of these searches both predicates."""
    with join_of(on, "none", left, right, **options) as join:
        return join.condition.plan.both


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_every_pair_of_operators_is_as_the_reference_has_it(one, other):
    left, right = small_streams(40)
    on = f"{text(one, 'a')} AND {text(other, 'b')}"
    # Two equalities are one search, by a hash.
    assert searched(on, left, right) == ((one, other) != ("=", "="))
    both = null_safe(lambda a, b, c, d: SIGNS[one](a, c) and SIGNS[other](b, d))
    splits = in_splits(40, 40, [(7, 9), (1, 0), (0, 3)])
    wanted = expected_pairs(
        lambda l, r: both(l["a"], l["b"], r["a"], r["b"]), "rows 15,20", left, right,  # noqa: E741
        arrival_of(splits),
    )  # fmt: skip
    found = run_join(on, "rows 15,20", left, right, splits, batch=8, subwindow=6, workers=2)
    same_pairs(found, wanted)


FLOATS = [0.0, -0.0, 1.0, -1.5, math.nan, math.inf, -math.inf, 1e308, None]
EDGES = {
    pa.int32(): [-(1 << 31), 1 - (1 << 31), -1, 0, 0, 1, (1 << 31) - 2, (1 << 31) - 1, None],
    pa.int64(): [-(1 << 63), 1 - (1 << 63), -1, 0, 0, 1, (1 << 63) - 2, (1 << 63) - 1, None],
    pa.uint64(): [0, 1, 2, (1 << 63) - 1, 1 << 63, (1 << 64) - 2, (1 << 64) - 1, 2, None],
    pa.float64(): FLOATS,
    pa.float32(): [value if value != 1e308 else 3e38 for value in FLOATS],
    pa.decimal128(9, 2): [None if n is None else Decimal(n).scaleb(-2)
                          for n in (-999_999_999, -1, 0, 0, 1, 100, 101, 999_999_999, None)],
}  # fmt: skip
CONDITIONS = [
    "l.a < r.a AND l.b >= r.b",
    "l.a <> r.a AND l.b BETWEEN r.b - 1 AND r.b + 1",
    "l.a BETWEEN r.a - 1 AND r.a + 1 AND l.b BETWEEN r.b - 2 AND r.b",
    "l.a <> r.a AND l.b <> r.b",
    "l.a = r.a AND l.b > r.b - 1",
    "l.a > r.a - 1 AND (l.b = r.b OR l.b > r.b + 1)",
]


@pytest.mark.parametrize("on", CONDITIONS)
@pytest.mark.parametrize(
    "kinds",
    [(pa.int32(), pa.int64()), (pa.float64(), pa.int32()), (pa.uint64(), pa.float32()),
     (pa.decimal128(9, 2), pa.float64())],
    ids=str,
)  # fmt: skip
def test_extremes_nan_and_null_are_as_duckdb_has_them(kinds, on):
    values = list(itertools.product(EDGES[kinds[0]], EDGES[kinds[1]]))
    columns = {name: pa.array([value[n] for value in values], kinds[n])
               for n, name in enumerate("ab")}  # fmt: skip
    left = stream(**columns)
    assert searched(on, left, left)
    rows = left.to_batches()[0].drop_columns("id")
    wanted = by_duckdb(on, rows, rows)
    found = np.array(run_join(on, "none", left, left, batch=50, subwindow=32)).reshape(-1, 2)
    assert len(set(map(tuple, found))) == len(found), "a pair is found twice"
    assert (matrix_of(*found.T, len(values), len(values)) == wanted).all()
    assert wanted.any()


def test_three_predicates_search_the_two_most_selective():
    left, right = small_streams(60)
    on = "l.id < r.id AND ABS(l.a - r.a) <= 1 AND l.b = r.b"
    with join_of(on, "none", left, right) as join:
        plan = dict(join.condition.explain())
    assert plan["on the device"] == "l.b = r.b"
    assert plan["second predicate"] == "ABS(l.a - r.a) <= 1, searched at the same time"
    assert plan["residual"] == "l.id < r.id"
    holds = null_safe(lambda i, j, a, b, c, d: i < j and abs(a - c) <= 1 and b == d)
    wanted = expected_pairs(
        lambda l, r: holds(l["id"], r["id"], l["a"], l["b"], r["a"], r["b"]),  # noqa: E741
        "none", left, right, arrival_of([(60, 60)]),
    )  # fmt: skip
    same_pairs(run_join(on, "none", left, right, batch=9), wanted)


def test_texts_and_a_band_are_searched_together():
    left, right = (
        table.append_column("k", pa.array(["x", "y", None, "z"] * 15))
        for table in small_streams(60)
    )
    on = "l.k = r.k AND l.a BETWEEN r.a AND r.a + 1"
    with join_of(on, "none", left, right) as join:
        assert join.condition.plan.both
        assert join.condition.residual.condition.text == "l.k = r.k"
    holds = null_safe(lambda k, a, m, c: k == m and c <= a <= c + 1)
    wanted = expected_pairs(
        lambda l, r: holds(l["k"], l["a"], r["k"], r["a"]), "none", left, right,  # noqa: E741
        arrival_of([(60, 60)]),
    )  # fmt: skip
    same_pairs(run_join(on, "none", left, right, batch=9), wanted)


TIMES = [0, 0, 1, 5, 3, 4, 9, 7, 7, 12]


@share(3)
@given(
    st.sampled_from(PAIRS),
    st.sampled_from(["rows 5", "rows 3,20", "2 s", "-1 s..4 s", "none"]),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=3).filter(
        lambda sizes: any(map(any, sizes))
    ),
    st.integers(1, 9),
    st.integers(1, 7),
    st.sampled_from(["none", "outer", "strict"]),
    st.sampled_from([1, 2]),
    st.integers(0, 99),
)
def test_every_window_order_and_batch_gives_the_reference(
    signs, window, sizes, batch, subwindow, order, workers, seed
):
    left, right = (
        table.append_column("t", pa.array(np.array(TIMES * 3) * 1_000_000, pa.timestamp("us")))
        for table in small_streams(30, seed)
    )
    sizes = [size for size in sizes if any(size)]
    if not any(size[0] for size in sizes) or not any(size[1] for size in sizes):
        sizes = [*sizes, (2, 3)]
    splits = in_splits(30, 30, sizes)
    on = f"{text(signs[0], 'a')} AND {text(signs[1], 'b')}"
    both = null_safe(lambda a, b, c, d: SIGNS[signs[0]](a, c) and SIGNS[signs[1]](b, d))
    wanted = expected_pairs(
        lambda l, r: both(l["a"], l["b"], r["a"], r["b"]), window, left, right,  # noqa: E741
        arrival_of(splits), "t",
    )  # fmt: skip
    timed = {"time": "t"} if " s" in window else {}
    options = dict(batch=batch, subwindow=subwindow, workers=workers, **timed)
    found = run_join(on, window, left, right, splits, order=order, **options)
    if order == "strict":
        assert found == wanted
    same_pairs(found, wanted)
    with join_of(on, window, left, right, emit="counts", **options) as join:
        counted = [row for row in pairs_of(push_all(join, left, right, splits)) if row[2]]
    assert sum(row[2] for row in counted) == len(wanted)
    place = {one: n for n, one in enumerate(arrival_of(splits))}
    expected = {}
    for pair in wanted:
        later = max((Side.LEFT, pair[0]), (Side.RIGHT, pair[1]), key=place.__getitem__)
        expected[later] = expected.get(later, 0) + 1
    assert {(Side("lr".index(row[0])), row[1]): row[2] for row in counted} == expected


def test_aggregates_are_those_of_the_pairs():
    left, right = small_streams(90)
    on, window = "l.a < r.a AND l.b >= r.b", "rows 20,35"
    aggregates = {
        "n": "count(*)", "total": "sum(r.id)", "least": "min(r.id)", "mean": "avg(l.id)",
    }  # fmt: skip
    splits = in_splits(90, 90, [(11, 5)])
    pairs = run_join(on, window, left, right, splits, batch=7, subwindow=9)
    with host.StreamJoin(
        on, window, left.schema, right.schema, emit="aggregate", aggregates=aggregates, batch=7,
        subwindow=9, workers=2,
    ) as join:
        assert join.condition.plan.both
        rows = [row for part in push_all(join, left, right, splits) for row in part.to_pylist()]
    place = {one: n for n, one in enumerate(arrival_of(splits))}
    of_left = {}
    of_right = {}
    for one, two in pairs:
        if place[Side.LEFT, one] > place[Side.RIGHT, two]:
            of_left.setdefault(one, []).append(two)
        else:
            of_right.setdefault(two, []).append(one)
    for row in rows:
        partners = (of_left if row["side"] == "l" else of_right).get(row["row"], [])
        assert row["n"] == len(partners)
        if row["side"] == "l":
            assert row["total"] == (sum(partners) if partners else None)
            assert row["least"] == (min(partners) if partners else None)
        else:
            assert row["mean"] == (sum(partners) / len(partners) if partners else None)


@pytest.mark.parametrize("indexes", [("po", "bisort"), ("bisort", "po"), ("po", "po")])
def test_a_snapshot_serves_every_index(tmp_path, indexes):
    left, right = small_streams(80)
    on, window = "l.a <= r.a AND l.b > r.b", "rows 30"
    first, rest = [(13, 13), (9, 9)], in_splits(58, 58, [(10, 10)])
    with join_of(on, window, left, right, batch=6, subwindow=7, index=indexes[0],
                 backend="numpy") as join:  # fmt: skip
        done = 0
        begun = []
        for count, _ in first:
            begun += pairs_of(join.push(left.slice(done, count), right.slice(done, count)))
            done += count
        join.snapshot(str(tmp_path / "saved"))
    with host.StreamJoin.resume(str(tmp_path / "saved"), index=indexes[1], workers=2) as join:
        assert join.condition.plan.both == (indexes[1] == "po")
        begun += pairs_of(push_all(join, left.slice(22), right.slice(22), rest))
    holds = null_safe(lambda a, b, c, d: a <= c and b > d)
    wanted = expected_pairs(
        lambda l, r: holds(l["a"], l["b"], r["a"], r["b"]), window, left, right,  # noqa: E741
        arrival_of([*first, *rest]),
    )  # fmt: skip
    same_pairs(begun, wanted)


def test_many_matches_at_the_edges_are_summed(monkeypatch):
    """Wide predicates: windows that cover a subwindow in part are not looked at pair by pair."""
    random = np.random.default_rng(9)
    left, right = (
        stream(a=random.integers(0, 100, 2_500), b=random.integers(0, 100, 2_500)) for _ in "lr"
    )
    asked = []
    from host.indexes.po.candidates import PoCandidates

    sums = PoCandidates.sums
    monkeypatch.setattr(PoCandidates, "sums", lambda *given: asked.append(1) or sums(*given))

    def counts():
        with join_of("l.a <= r.a AND l.b >= r.b", "rows 900,700", left, right, emit="counts",
                     batch=600, subwindow=500) as join:  # fmt: skip
            return pairs_of(push_all(join, left, right, [(2_500, 2_500)]))

    found = counts()
    assert asked
    monkeypatch.setattr(PoCandidates, "has_many", lambda *given: False)
    assert counts() == found


SCHEMA = pa.schema([("a", pa.int32()), ("b", pa.int32())])


def plan(on, **more):
    return dict(explain(JoinOptions(on=on, window="none", left=SCHEMA, right=SCHEMA, **more)))


def test_explain_tells_which_predicate_runs_where():
    on = "l.a < r.a AND l.b > r.b"
    lines = plan(on)
    assert lines["on the device"] == "l.a < r.a"
    assert lines["second predicate"] == "l.b > r.b, searched at the same time"
    assert lines["residual"] == "none"
    assert lines["index"] == "po, which searches both predicates at once (auto)"
    assert lines["backend"] == "numpy, the best of this version that is here (auto)"
    assert plan(on, index="po")["index"] == "po, as asked for"
    lines = plan(on, index="bisort")
    assert (lines["second predicate"], lines["residual"]) == ("l.b > r.b", "l.b > r.b")
    assert plan(on, backend="opencl")["residual"] == "l.b > r.b"
    assert plan(on, params="mergers=4")["residual"] == "l.b > r.b"


def test_po_without_a_second_predicate_is_refused():
    said = (
        "index 'po' searches two predicates at once, and the condition has no second one that "
        "can be searched: leave it out"
    )
    with pytest.raises(OptionError, match=exactly(said)):
        plan("l.a < r.a", index="po")
    said = (
        "index 'po' runs on the host, and the backend 'rtl' has only 'bisort': use backend "
        "'numpy' or leave it out"
    )
    with pytest.raises(OptionError, match=exactly(said)):
        plan("l.a < r.a AND l.b > r.b", index="po", backend="rtl")


@pytest.mark.parametrize(("batch", "subwindow"), [(4_500, 400), (900, 400), (4_500, 2_600)])
def test_large_batches_are_joined_in_threads_and_straight_into_columns(
    batch, subwindow, monkeypatch
):
    """Probes that are dealt to threads, windows that end within the batch, and batches that go
    into two subwindows, as an immutable part of each.
    """
    from host.indexes.po import PoIndex, candidates, part

    for module in (candidates, part):
        monkeypatch.setattr(module, "MANY_RECTANGLES", 64)
    monkeypatch.setattr(PoIndex.__init__, "__defaults__", (64,))
    random = np.random.default_rng(3)
    left, right = (
        stream(a=random.integers(0, 1_000, 5_000), b=random.integers(0, 1_000, 5_000))
        for _ in "lr"
    )
    a, b, c, d = (table[name].to_numpy() for table in (left, right) for name in "ab")
    own, other = np.indices((5_000, 5_000), sparse=True)
    # Left row i arrives just before right row i.
    seen = np.where(own > other, own - other <= 3_100, other + 1 - own <= 4_000)
    for on, holds in (
        ("ABS(l.a - r.a) <= 4 AND r.b BETWEEN l.b AND l.b + 9",
         lambda: (abs(a[:, None] - c) <= 4) & (d >= b[:, None]) & (d <= b[:, None] + 9)),
        ("l.a < r.a - 950 AND l.b > r.b",
         lambda: (a[:, None] < c - 950) & (b[:, None] > d)),
    ):  # fmt: skip
        wanted = np.stack(np.nonzero(holds() & seen), axis=1)
        with join_of(on, "rows 4000,3100", left, right, batch=batch,
                     subwindow=subwindow) as join:  # fmt: skip
            found = pa.Table.from_batches(
                list(push_all(join, left, right, [(5_000, 5_000)])), join.schema
            )
        pairs = np.stack([column.to_numpy() for column in found.columns], axis=1)
        assert (pairs[np.lexsort(pairs.T[::-1])] == wanted).all()
