"""Two predicates at once beside DuckDB and beside PO-Join as its paper has it.

A window is stored, and a batch is joined with it: by pushes to a StreamJoin, by the structure
alone, and by what stands beside them. All have two threads, take turns in one run, and are
compared by their best round and by the number of matches that they find.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import host
from bench.figures import figure
from bench.rounds import THREADS, best_in_turn, two_cores
from host.backends.choice import condition_of
from host.condition import JoinCondition
from host.indexes.po import PoIndex
from host.indexes.po.candidates import PoCandidates
from host.indexes.po.per_tuple import per_tuple_counts
from host.indexes.po.threads import Threads
from host.options import JoinOptions
from host.two_keys import Rectangles, ascending, keyed_twice
from hw.spec.tuples import Side

__all__ = ["Workload", "run"]

Progress = Callable[[str], None]

STORED, BATCH, ROUNDS = 1_000_000, 100_000, 9
#: Batches of one push: their steps overlap, as those of a stream do.
_BATCHES = 8
#: Tuples that the per-tuple form is given: its time grows with nothing else.
_FEW = 400
_RANGE = 1 << 30


@dataclass(frozen=True)
class Workload:
    """Two columns, a condition over them, and the same for DuckDB.

    spread   second values are so far from the first at most; None, where they have nothing to
             do with each other
    table    what DuckDB stores, out of `incoming`
    query    how it joins `probes` with `stored`; {what} is what it selects
    """

    name: str
    on: str
    spread: int | None
    table: str
    query: str

    def rows(self, random: np.random.Generator, count: int) -> pa.Table:
        a = random.integers(0, _RANGE, count)
        b = random.integers(0, _RANGE, count)
        if self.spread is not None:
            b = a + random.integers(-self.spread, self.spread, count)
        ids = np.arange(count, dtype=np.int32)
        return pa.table({"id": ids, "a": a.astype(np.int32), "b": b.astype(np.int32)})


def inequalities(stored: int) -> Workload:
    """Q1 of the paper, with about 100 matches a tuple."""
    # Of all pairs, spread / (3 * range) match.
    return Workload(
        "two inequalities, about 100 matches", "r.a > l.a AND r.b < l.b",
        300 * _RANGE // stored, "SELECT * FROM incoming",
        "SELECT {what} FROM probes AS l JOIN stored AS r ON r.a > l.a AND r.b < l.b",
    )


def bands(stored: int) -> Workload:
    """Q2, a band of two dimensions with about one match; in DuckDB with a grid by hand."""
    width = int(_RANGE / stored**0.5 / 2)
    cell = 2 * width + 1

    def cells(column: str) -> str:
        return (f"unnest(generate_series(({column} - {width}) // {cell}, "
                f"({column} + {width}) // {cell}))")  # fmt: skip

    return Workload(
        "two bands, about 1 match",
        f"ABS(l.a - r.a) <= {width} AND ABS(l.b - r.b) <= {width}", None,
        f"SELECT *, a // {cell} AS ca, b // {cell} AS cb FROM incoming",
        f"WITH wide AS (SELECT *, {cells('a')} AS ca FROM probes), "
        f"l AS (SELECT *, {cells('b')} AS cb FROM wide) "
        "SELECT {what} FROM l JOIN stored AS r ON r.ca = l.ca AND r.cb = l.cb "
        f"AND abs(l.a - r.a) <= {width} AND abs(l.b - r.b) <= {width}",
    )


class DuckDB:
    """The stored tuples as a table; a batch is a query."""

    def __init__(self, workload: Workload, stored: pa.Table) -> None:
        self._query = workload.query
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {THREADS}")
        self._connection.register("incoming", stored)
        self._connection.execute(f"CREATE TABLE stored AS {workload.table}")

    def counts(self, batch: pa.Table) -> int:
        self._connection.register("probes", batch)
        rows = self._connection.execute(self._query.format(what="count(*)")).fetchall()
        return int(rows[0][0])

    def pairs(self, batch: pa.Table) -> int:
        self._connection.register("probes", batch)
        query = self._query.format(what="l.id, r.id AS partner")
        return int(self._connection.sql(query).to_arrow_table().num_rows)

    def close(self) -> None:
        self._connection.close()


class Pushed:
    """A StreamJoin whose right window holds the stored tuples; left ones are pushed.

    The left window is a single row: what stands beside it does not keep its probes, either.
    """

    def __init__(self, workload: Workload, stored: pa.Table, emit: str, batch: int) -> None:
        more: dict[str, Any] = {"select": ["l.id", "r.id"]} if emit == "pairs" else {}
        rows = stored.num_rows
        self._join = host.StreamJoin(
            workload.on, f"rows 1,{rows}", stored.schema, stored.schema, emit=emit, batch=batch,
            subwindow=rows, index="po", **more,
        )
        for _ in self._join.push(right=stored):
            pass

    def push(self, tuples: pa.Table) -> int:
        """Matches of the tuples."""
        before = self._join.metrics.pairs
        for _ in self._join.push(left=tuples):
            pass
        return self._join.metrics.pairs - before

    def close(self) -> None:
        self._join.close()


class Alone:
    """The structure without the join around it: keys in, counts or row numbers out."""

    def __init__(self, workload: Workload, stored: pa.Table) -> None:
        options = JoinOptions(
            on=workload.on, window="none", left=stored.schema, right=stored.schema, index="po"
        )
        self._condition = condition_of(options)
        keys, seconds, rids = _keys(self._condition, Side.RIGHT, stored)
        self.index = PoIndex(len(keys))
        self.index.insert(keyed_twice(keys, rids, seconds, ascending(seconds)))
        self._threads = Threads(THREADS)

    def find(self, batch: pa.Table) -> PoCandidates:
        keys, seconds, _ = _keys(self._condition, Side.LEFT, batch)
        beside = self._condition.second_keys
        assert beside is not None
        wanted = Rectangles.of(
            self._condition.intervals(Side.LEFT, keys), beside.intervals(Side.LEFT, seconds)
        )
        return self.index.find(wanted, self._threads)

    def counts(self, batch: pa.Table) -> int:
        return int(self.find(batch).sizes().sum())

    def pairs(self, batch: pa.Table) -> int:
        return sum(len(probe) for probe, _ in self.find(batch).pairs(1 << 16))

    def per_tuple(self, batch: pa.Table) -> int:
        """By the paper's own form, one tuple at a time."""
        candidates = self.find(batch)
        (part,) = candidates.parts

        def counts(piece: Rectangles) -> np.ndarray:
            return per_tuple_counts(part.permutation, part.runs(piece).by_first)

        pieces = candidates.wanted.split(THREADS)
        found = self._threads.together([partial(counts, piece) for piece in pieces])
        return int(np.concatenate(found).sum())

    def close(self) -> None:
        self._threads.close()


def _keys(
    condition: JoinCondition, side: Side, rows: pa.Table
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys in their order, second keys and rids beside them."""
    keys, seconds, _ = condition.encode_both(side, rows.combine_chunks().to_batches()[0])
    assert seconds is not None
    order = ascending(keys)
    return keys[order], seconds[order], order


def run(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """All figures; with `quick` in sizes that prove nothing but that it works."""
    stored, batch, rounds = (20_000, 2_000, 1) if quick else (STORED, BATCH, ROUNDS)
    figures: list[dict[str, Any]] = []
    with two_cores():
        for made, asked in (
            (inequalities, {"counts": 25.0, "pairs": 15.0}), (bands, {"counts": 8.0}),
        ):  # fmt: skip
            workload = made(stored)
            progress(f"storing {stored:,} tuples: {workload.name}")
            random = np.random.default_rng(7)
            rows = workload.rows(random, stored)
            batches = workload.rows(random, _BATCHES * batch)
            for emit, at_least in asked.items():
                progress(f"{workload.name}, {emit}")
                figures += _beside_duckdb(workload, rows, batches, emit, at_least, rounds)
            if workload.spread is not None:
                progress(f"{workload.name}, the paper's form")
                figures.append(_beside_paper(workload, rows, batches, rounds))
    return {"quick": quick, "stored": stored, "batch": batch, "figures": figures}


def _beside_duckdb(
    workload: Workload, rows: pa.Table, tuples: pa.Table, emit: str, at_least: float, rounds: int
) -> Iterator[dict[str, Any]]:
    batch = tuples.num_rows // _BATCHES
    one = tuples.slice(0, batch)
    peer, alone = DuckDB(workload, rows), Alone(workload, rows)
    pushed = Pushed(workload, rows, emit, batch)
    by_peer = peer.counts if emit == "counts" else peer.pairs
    by_structure = alone.counts if emit == "counts" else alone.pairs
    agrees = by_peer(one) == by_structure(one) == pushed.push(one)
    pushed.push(tuples)
    seconds = best_in_turn(
        lambda: lambda: by_peer(one), lambda: lambda: pushed.push(tuples),
        lambda: lambda: by_structure(one), rounds=rounds,
    )
    rates = [len(one) / seconds[0], len(tuples) / seconds[1], len(one) / seconds[2]]
    for side in (peer, pushed, alone):
        side.close()
    for name, rate in (("join", rates[1]), ("structure alone", rates[2])):
        yield figure(
            f"{workload.name}, {emit}: {name} beside DuckDB", rate / rates[0], at_least=at_least,
            tuples_per_s=rate, peer_tuples_per_s=rates[0], agrees=agrees,
        )


def _beside_paper(
    workload: Workload, rows: pa.Table, tuples: pa.Table, rounds: int
) -> dict[str, Any]:
    batch = tuples.num_rows // _BATCHES
    few, one = tuples.slice(0, min(_FEW, batch)), tuples.slice(0, batch)
    alone = Alone(workload, rows)
    agrees = alone.per_tuple(few) == alone.counts(few)
    paper, ours = best_in_turn(
        lambda: lambda: alone.per_tuple(few), lambda: lambda: alone.counts(one), rounds=rounds
    )
    alone.close()
    rates = len(one) / ours, len(few) / paper
    return figure(
        f"{workload.name}, counts: structure alone beside PO-Join tuple by tuple",
        rates[0] / rates[1], at_least=300.0, tuples_per_s=rates[0], peer_tuples_per_s=rates[1],
        agrees=agrees, peer_scaled=True, peer_measured_tuples=len(few),
    )
