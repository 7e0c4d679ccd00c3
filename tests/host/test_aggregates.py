"""emit="aggregate": aggregates over matches, against sums over the reference's pairs."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import host
from host.errors import EvaluationError, OptionError
from hw.spec import reference
from hw.spec.tuples import Side
from hw.spec.windows import parse_window
from tests.helpers import exactly, stream

ASKED = {
    "n": "count(*)",
    "known": "count(r.i)",
    "total": "sum(r.i)",
    "least": "min(r.f)",
    "largest": "MAX( r.f )",
    "mean": "avg(r.i)",
    "money": "sum(r.d)",
    "first": "min(r.t)",
    "back": "max(l.i)",
}


#: Conditions over the columns x and i of a left and a right row.
CONDITIONS = {
    "l.x BETWEEN r.x - 2 AND r.x + 1": lambda x, i, y, j: y - 2 <= x <= y + 1,
    "l.x <> r.x": lambda x, i, y, j: x != y,
    "l.x <= r.x AND (l.i + r.i) % 2 = 0": lambda x, i, y, j: (
        x <= y and None not in (i, j) and (i + j) % 2 == 0
    ),
}


def _holds(on, left, right):
    x, i, y, j = (row.column(name)[0].as_py() for row in (left, right) for name in "xi")
    return None not in (x, y) and CONDITIONS[on](x, i, y, j)


def rows(count, seed):
    """A stream with NULLs, NaNs and infinities in what is aggregated, and NULL keys."""
    rng = np.random.default_rng(seed)
    floats = rng.choice([1.5, -2.0, float("nan"), float("inf"), -0.0, 7.25], count)
    nulls = rng.random(count) < 0.2
    return stream(
        x=pa.array(rng.integers(0, 12, count), pa.int32(), mask=rng.random(count) < 0.1),
        i=pa.array(rng.integers(-50, 50, count), pa.int32(), mask=nulls),
        f=pa.array(floats, pa.float64(), mask=nulls),
        d=pa.array([Decimal(int(v)) / 100 for v in rng.integers(-999, 999, count)],
                   pa.decimal128(9, 2)),
        t=pa.array(rng.integers(0, 10**9, count), pa.timestamp("us")),
    )


def expected(left, right, found, arrival):
    """Every aggregate as SQL has it, over the pairs that each tuple completed."""
    position = {who: place for place, who in enumerate(arrival)}
    partners = [[] for _ in arrival]
    for pair in found:
        places = [position[Side.LEFT, pair[0]], position[Side.RIGHT, pair[1]]]
        later = int(np.argmax(places))
        partners[places[later]].append(pair[1 - later])
    return [
        (side.letter, row, *(_aggregate(text, side, partners[place], left, right)
                             for text in ASKED.values()))
        for place, (side, row) in enumerate(arrival)
    ]


def _aggregate(text, side, partners, left, right):
    function, _, inner = text.lower().replace(" ", "").rstrip(")").partition("(")
    if inner == "*":
        return len(partners)
    if inner[0] == side.letter:
        return None
    column = (left, right)[side.other].column(inner[2:]).to_pylist()
    values = [column[row] for row in partners if column[row] is not None]
    if function == "count":
        return len(values)
    if not values:
        return None
    nan_last = lambda value: (value != value, value)  # noqa: E731
    return {
        "sum": sum, "avg": lambda all_: sum(all_) / len(all_),
        "min": lambda all_: min(all_, key=nan_last), "max": lambda all_: max(all_, key=nan_last),
    }[function](values)


def same(found, wanted):
    """Equal, where NaN equals NaN."""
    return [[repr(v) if v != 0 else "0" for v in row] for row in found] == [
        [repr(v) if v != 0 else "0" for v in row] for row in wanted
    ]


@pytest.mark.parametrize("window", ["rows 9", "none", "200 seconds"])
@pytest.mark.parametrize("batch", [1, 7, 100])
@pytest.mark.parametrize("on", CONDITIONS)
def test_aggregates_are_those_of_the_pairs(backend, window, batch, on):
    left, right = rows(40, 1), rows(35, 2)
    arrival = reference.interleaved(40, 35)
    times = tuple(t.column("t").cast(pa.int64()).to_pylist() for t in (left, right))
    found = reference.pairs(
        arrival,
        lambda row, other: _holds(on, left.slice(row, 1), right.slice(other, 1)),
        parse_window(window),
        times,
    )
    with host.StreamJoin(
        on, window, left.schema, right.schema, time="t", batch=batch, subwindow=8,
        backend=backend, emit="aggregate", aggregates=ASKED,
    ) as join:
        batches = [*join.push(left, right), *join.finish()]
        table = pa.Table.from_batches(batches, join.schema)
    got = [tuple(row.values()) for row in table.to_pylist()]
    assert same(got, expected(left, right, found, arrival))
    assert join.metrics.pairs == len(found)


def test_types_follow_spark():
    schema = rows(1, 0).schema
    with host.StreamJoin(
        "l.x = r.x", "none", schema, schema, emit="aggregate", aggregates=ASKED, backend="numpy"
    ) as join:
        types = dict(zip(join.schema.names, join.schema.types, strict=True))
    assert types == {
        "side": pa.string(), "row": pa.int64(), "n": pa.int64(), "known": pa.int64(),
        "total": pa.int64(), "least": pa.float64(), "largest": pa.float64(),
        "mean": pa.float64(), "money": pa.decimal128(19, 2), "first": pa.timestamp("us"),
        "back": pa.int32(),
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"emit": "aggregate"}, "emit='aggregate' needs aggregates, like {'n': 'count(*)'}"),
        ({"aggregates": {"n": "count(*)"}},
         "aggregates go with emit='aggregate', not with 'pairs'"),
        ({"emit": "aggregate", "aggregates": {"n": "median(r.i)"}},
         "aggregate 'n' must be count(*), or count, sum, min, max, avg of a column like "
         "sum(r.qty), not 'median(r.i)'"),
        ({"emit": "aggregate", "aggregates": {"n": "sum(r.nope)"}},
         "aggregate 'n': right has no column 'nope'"),
        ({"emit": "aggregate", "aggregates": "n=sum(r.t)"},
         "aggregate 'n': sum of timestamp[us] is not possible: cast it"),
    ],
)
def test_aggregates_that_cannot_be_are_named(options, message):
    schema = rows(1, 0).schema
    with pytest.raises(OptionError, match=exactly(message)):
        host.StreamJoin("l.x = r.x", "none", schema, schema, **options)


def test_a_sum_that_could_wrap_is_refused(backend):
    large = stream(x=pa.array([1, 1]), v=pa.array([2**62, 2**62]))
    with (
        host.StreamJoin("l.x = r.x", "none", large.schema, large.schema, emit="aggregate",
                        aggregates="s=sum(l.v)", backend=backend) as join,
        pytest.raises(EvaluationError, match=exactly(
            "aggregate 's' may not fit in 64 bits: cast its column to double")),
    ):
        list(join.push(large, large))
