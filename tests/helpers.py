"""Tuples, joins and their expectations, as the tests of every layer make them."""

import re
from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import settings

import host
from host.backends.choice import backend_opener
from host.options import JoinOptions
from hw.spec import reference
from hw.spec.tuples import Side, tuple_dtype
from hw.spec.windows import TimeWindow, parse_duration, parse_window

__all__ = [
    "arrival_of",
    "exactly",
    "expected_pairs",
    "in_splits",
    "join_of",
    "make_tuples",
    "null_safe",
    "open_engine",
    "pairs_of",
    "push_all",
    "run_join",
    "same_pairs",
    "share",
    "stream",
]


def make_tuples(keys, key_bits=32, first_rid=0):
    """Stored tuples of those keys in order of arrival: ascending by key, then by rid."""
    tuples = np.empty(len(keys), tuple_dtype(key_bits))
    tuples["key"] = keys
    tuples["rid"] = np.arange(first_rid, first_rid + len(keys))
    return tuples[np.argsort(tuples["key"], kind="stable")]


def same_pairs(found, expected):
    """Compare two multisets of pairs; a difference is shown as what is missing and what is not."""
    found, expected = Counter(found), Counter(expected)
    missing, extra = sorted((expected - found).elements()), sorted((found - expected).elements())
    assert not missing and not extra, (
        f"{len(missing)} pairs are missing, {missing[:10]} ..., "
        f"and {len(extra)} do not belong, {extra[:10]} ..."
    )


def stream(**columns):
    """A stream's rows: the given columns after `id`, the number of the row."""
    count = len(next(iter(columns.values())))
    arrays = {"id": pa.array(range(count), pa.int64())}
    arrays |= {
        name: values if isinstance(values, pa.Array) else pa.array(values)
        for name, values in columns.items()
    }
    return pa.table(arrays)


def in_splits(left, right, sizes):
    """Sizes of pushes, (left, right) each, that take all rows: `sizes` over and over."""
    splits, rest = [], [left, right]
    while any(rest):
        for size in sizes:
            split = tuple(min(size[side], rest[side]) for side in Side)
            rest = [rest[side] - split[side] for side in Side]
            splits.append(split)
            if not any(rest):
                break
    return splits


def arrival_of(splits):
    """The order of arrival that pushes of those sizes make."""
    order, done = [], (0, 0)
    for split in splits:
        order += [(side, row + done[side]) for side, row in reference.interleaved(*split)]
        done = (done[0] + split[0], done[1] + split[1])
    return order


def join_of(on, window, left, right, **options):
    """A StreamJoin for two tables that gives the numbers of the rows."""
    if options.get("emit") != "counts":
        options.setdefault("select", ["l.id", "r.id"])
    return host.StreamJoin(on, window, left.schema, right.schema, **options)


def push_all(join, left, right, splits):
    """Push the tables in parts of those sizes and finish; yield the results."""
    done = [0, 0]
    for split in splits:
        parts = [table.slice(done[side], split[side])
                 for side, table in zip(Side, (left, right), strict=True)]
        done = [done[side] + split[side] for side in Side]
        yield from join.push(*parts)
    yield from join.finish()


def run_join(on, window, left, right, splits=None, **options):
    """The (left id, right id) pairs of a join, in the order in which they came."""
    splits = splits or [(left.num_rows, right.num_rows)]
    with join_of(on, window, left, right, **options) as join:
        return pairs_of(push_all(join, left, right, splits))


def pairs_of(batches):
    """The rows of results as tuples of plain values."""
    return [
        row
        for batch in batches
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]


def null_safe(condition):
    """A condition over plain values as SQL has it: NULL where a value is."""
    def holds(*values):
        return None if any(value is None for value in values) else condition(*values)

    return holds


def expected_pairs(holds, window, left, right, arrival, time=None, lateness=None):
    """What the reference says; `holds` takes two rows as dicts."""
    rows = (left.to_pylist(), right.to_pylist())
    parsed = parse_window(window)
    times = None
    if isinstance(parsed, TimeWindow):
        times = tuple(_micros(table.column(time)) for table in (left, right))
    lateness_us = None if lateness is None else parse_duration(lateness)

    def match(left, right):
        return holds(rows[Side.LEFT][left], rows[Side.RIGHT][right])

    return reference.pairs(arrival, match, parsed, times, lateness_us)


def _micros(column):
    return column.cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()


def open_engine(name, key_bits=32, index="bisort"):
    """An engine by its name."""
    nothing = pa.schema([("a", pa.int64())])
    options = JoinOptions(
        on="l.a = r.a", window="none", left=nothing, right=nothing, backend=name, index=index
    )
    return backend_opener(options, key_bits)()


def exactly(message):
    """A pattern that matches that message, whole."""
    return f"^{re.escape(message)}$"


def share(percent):
    """Settings of a property that takes that share of the profile's examples."""
    return settings(max_examples=max(1, settings.default.max_examples * percent // 100))
