"""Pairs that are expanded straight into columns against those that are taken row by row."""

import numpy as np
import pyarrow as pa
import pytest

import host
from host import expansion, output

SCHEMA = pa.schema([("x", pa.int32()), ("id", pa.int64()), ("t", pa.timestamp("us"))])
WINDOWS = {"rows": {"window": "rows 700"}, "time": {"window": "700 microseconds", "time": "t,t"}}


def rows_of(random, first, count):
    """Rows whose times, like their numbers, are those of a stream."""
    numbers = np.arange(first, first + count)
    keys = pa.array(random.integers(0, 60, count).astype(np.int32), mask=random.random(count) < 0.1)
    return pa.record_batch([keys, numbers, pa.array(numbers, pa.timestamp("us"))], SCHEMA)


def pairs(options, select=("l.id", "r.t", "r.x"), sizes=((400, 300), (0, 90), (500, 700))):
    """The rows of all results in one order, and how many record batches they came in."""
    random, firsts = np.random.default_rng(9), [0, 0]
    with host.StreamJoin(
        left=SCHEMA, right=SCHEMA, subwindow=256, batch=512, select=list(select),
        index="bisort", **options
    ) as join:
        found = []
        for size in sizes:
            pushed = [rows_of(random, *each) for each in zip(firsts, size, strict=True)]
            found += join.push(*pushed)
            firsts = [first + more for first, more in zip(firsts, size, strict=True)]
        found += join.finish()
    table = pa.Table.from_batches(found, join.schema)
    return table.sort_by([(name, "ascending") for name in table.column_names]), len(found)


def expanded(monkeypatch, chunk_bytes=1 << 22):
    """Every batch is expanded from here on; returns the list that shows which were."""
    taken, original = [], expansion.expand

    def watched(expansions, *more):
        taken.append(sum(expansion.pairs for expansion in expansions))
        return original(expansions, *more)

    monkeypatch.setattr(output, "LARGE_BATCH", 1)
    monkeypatch.setattr(expansion, "expand", watched)
    monkeypatch.setattr(expansion, "_CHUNK_BYTES", chunk_bytes)
    monkeypatch.setattr(expansion, "_TOGETHER", 100)
    return taken


@pytest.mark.parametrize("backend", ["numpy", "opencl"])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("on", ["l.x BETWEEN r.x - 2 AND r.x + 9", "l.x <> r.x", "l.x = r.x + 1"])
def test_expanded_pairs_are_the_pairs(monkeypatch, on, window, backend):
    options = {"on": on, "backend": backend, **WINDOWS[window]}
    plain, _ = pairs(options, select=("l.id", "r.t"))
    taken = expanded(monkeypatch)
    whole, few = pairs(options, select=("l.id", "r.t"))
    assert whole.equals(plain)
    assert sum(taken) == plain.num_rows > 5_000
    monkeypatch.setattr(expansion, "_CHUNK_BYTES", 16 * 333)
    cut, many = pairs(options, select=("l.id", "r.t"))
    assert cut.equals(plain)
    assert many > few + plain.num_rows // 500


def test_columns_with_nulls_are_taken_row_by_row(monkeypatch):
    options = {"on": "l.id <= r.id", "window": "rows 500", "backend": "numpy"}
    plain, _ = pairs(options)
    taken = expanded(monkeypatch)
    assert pairs(options)[0].equals(plain)
    assert taken == []


def test_few_tuples_with_many_matches_are_expanded(monkeypatch):
    taken = expanded(monkeypatch)
    monkeypatch.setattr(output, "LARGE_BATCH", 1 << 40)
    monkeypatch.setattr(output, "LARGE_RESULT", 1_000)
    options = {"on": "l.id < r.id + 1000", "window": "rows 600", "backend": "numpy"}
    found, _ = pairs(options, select=("r.id", "l.id"), sizes=((600, 0), (0, 1), (0, 2)))
    assert found["r_id"].to_pylist() == [0] * 600 + [1] * 600 + [2] * 600
    assert found["l_id"].to_pylist() == 3 * list(range(600))
    assert taken == [1_200]
