"""The join in Spark beside what Spark users do without it: suite `spark`.

    python -m bench.spark_suite PART ... [--results FILE]    # some parts, added to a result file
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from bench.figures import figure
from bench.rounds import THREADS, two_cores
from bench.spark_batch import batch_figures
from bench.spark_recovery import recovery
from bench.spark_streams import (
    MASTER,
    STORES,
    Load,
    Timed,
    bucketed,
    constant_key,
    ours,
    session,
    sides,
    source,
    timed,
)

__all__ = ["PARTS", "run"]

Progress = Callable[[str], None]
_STORE = "spark.sql.streaming.stateStore.providerClass"
_SAME = {_STORE: STORES["HDFS-backed"]}


#: Micro-batches before those that are measured: the window is full, and Java has compiled most.
_WARM = 6

_MEMORY = (
    "by how many bytes of its own the daemon's process has grown from before the query to the full "
    "window, buffers and all, beside memoryUsedBytes of Spark's state stores"
)


def run(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """All figures, each a ratio of two queries in one session."""
    result: dict[str, Any] = {"threads": THREADS, "quick": quick, "master": MASTER}
    with two_cores(), session() as spark:
        for name, part in PARTS.items():
            result[name] = part(spark, progress, quick)
    return result


def buckets(spark: SparkSession, progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """Against Spark's own join on buckets: the best of several widths and both state stores."""
    loads = [(Load(1 << 17, 1 << 17), 8.0), (Load(1 << 20, 1 << 19), 20.0)]
    if quick:
        loads = [(Load(1 << 12, 1 << 11), 8.0)]
    ways = [(times, store) for store in STORES for times in ((16,) if quick else (4, 16))]
    figures = []
    begun = Load(1 << 13, 1 << 13)  # from here on, what a daemon grows by is state
    timed(partial(ours, spark, begun), begun, 1, _SAME)
    warm = 2 if quick else _WARM
    for load, at_least in loads:
        progress(f"the join, {load.rows:,} rows a side, micro-batch {load.batch:,}")
        mine = timed(partial(ours, spark, load), load, 2 if quick else 6, _SAME, warm=warm)
        best: Timed | None = None
        for times, store in ways:
            progress(f"Spark's join on buckets of {times} half bands, {store} state store")
            peer = timed(
                _stateless(bucketed, spark, load, times), load, 2, {_STORE: STORES[store]},
                warm=warm,
            )
            if best is None or peer.tuples_per_s > best.tuples_per_s:
                best, chosen = peer, (times, store)
        assert best is not None
        # What loses at the small size is not run again at the large one.
        ways = [chosen]
        name = f"{load.rows:,} rows a side, micro-batch {load.batch:,}"
        figures += [
            figure(name, mine.tuples_per_s / best.tuples_per_s, at_least=at_least,
                   tuples_per_s=mine.tuples_per_s, peer_tuples_per_s=best.tuples_per_s,
                   buckets=chosen[0], store=chosen[1]),
            figure(f"memory, {name}", mine.state_bytes / best.state_bytes, at_most=1.0,
                   bytes=mine.state_bytes, peer_bytes=best.state_bytes, measured=_MEMORY),
        ]
    return figures


def _stateless(make: Callable[..., DataFrame], *given: Any) -> Callable[[str], DataFrame]:
    """A query that needs no place for state of its own."""
    return lambda place: make(*given)


def inequalities(spark: SparkSession, progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """Where nothing can be put in buckets: against Spark's join on a constant key."""
    load = Load(1 << 8, 1 << 7) if quick else Load(1 << 14, 1 << 13)
    half = _fraction(load)
    asked = {
        "two inequalities": f"l.x < r.x - {half} AND l.y > r.y + {half}",
        "one inequality and a time range": f"l.x < r.x - {_tail(load)}",
    }
    figures = []
    for name, on in asked.items():
        progress(f"{name}: the join, then Spark's on a constant key, {load.rows:,} rows a side")
        mine = timed(partial(ours, spark, load, on=on), load, 3, _SAME)
        peer = timed(_stateless(constant_key, spark, load, on), load, 1, _SAME)
        figures.append(figure(
            f"{name}, {load.rows:,} rows a side, micro-batch {load.batch:,}",
            mine.tuples_per_s / peer.tuples_per_s, at_least=100,
            tuples_per_s=mine.tuples_per_s, peer_tuples_per_s=peer.tuples_per_s,
        ))
    return figures


def _fraction(load: Load) -> int:
    """Two independent inequalities by this much leave about one match a tuple."""
    return int((1 << 30) * (1 - (4 / load.rows) ** 0.25))


def _tail(load: Load) -> int:
    """One inequality by this much leaves about one match a tuple."""
    return int((1 << 30) * (1 - (2 / load.rows) ** 0.5))


def empty(spark: SparkSession, progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """Against workers that discard, and these against a plain mapInArrow.

    PanJoin (section V) compares itself in Storm with "a system where every subwindow is empty, i.e.
    the join processor does nothing but receive the input tuples and discard them afterward". Here
    that is the same query: Spark makes the same rows, its task writes the same part and makes it
    durable, the worker reads it whole, checks it, drops it and reports. It fixes no manifest,
    stores nothing, finds nothing, and so returns no pairs; the join, with about one match a tuple,
    returns one for each of them, and Spark takes them up and hands them to the sink.

    At micro-batches of 16,384 rows a stream, and at four times as many, where Spark spends so
    little on a row that taking up the pairs shows.
    """
    if quick:
        return _beside_empty(spark, progress, Load(1 << 12, 1 << 11), 1, warm=1, measured=2)
    return [
        *_beside_empty(spark, progress, Load(1 << 20, 1 << 14), 6),
        *_beside_empty(spark, progress, Load(1 << 20, 1 << 16), 6),
    ]


def _beside_empty(
    spark: SparkSession, progress: Progress, load: Load, rounds: int, warm: int = 16,
    measured: int = 24,
) -> list[dict[str, Any]]:
    """Three queries in turn, `rounds` times; of each the best median counts.

    All of them read the same two streams, watermarks and all. In a round before these Java
    compiles what they have in common, and what they do not.
    """

    def identity(place: str) -> Any:
        left, right = sides(spark, load)
        united = left.union(right).coalesce(1)
        return united.mapInArrow(lambda batches: batches, united.schema)

    named = f"micro-batch {load.batch:,}"
    progress(f"the join, workers that discard, mapInArrow: {load.rows:,} rows a side, {named}")
    queries: dict[str, Callable[[str], DataFrame]] = {
        "join": partial(ours, spark, load), "none": partial(ours, spark, load, discard=True),
        "plain": identity,
    }
    best = dict.fromkeys(queries, 0.0)
    for number in range(rounds + 1):
        for name, query in queries.items():
            first = None if name == "join" else warm
            seconds = timed(query, load, measured, _SAME, warm=first).median_s
            if number:
                best[name] = max(best[name], 2 * load.batch / seconds)
    return [
        figure(f"the join beside workers that discard, {load.rows:,} rows a side, {named}, "
               "a match a tuple", best["join"] / best["none"], at_least=0.85,
               tuples_per_s=best["join"], peer_tuples_per_s=best["none"]),
        figure(f"workers that discard beside mapInArrow, {named}",
               best["none"] / best["plain"], at_least=0.85,
               tuples_per_s=best["none"], peer_tuples_per_s=best["plain"]),
    ]


def latency(spark: SparkSession, progress: Progress, quick: bool) -> list[dict[str, Any]]:
    """Small micro-batches: what the bridge adds to a union of the same streams."""
    load = Load(1 << 13, 1000)
    count = 5 if quick else 30

    def union(place: str) -> Any:
        left, right = (source(spark, load, tag) for tag in (0, 1))
        return left.union(right)

    progress("micro-batches of 2,000 rows: union, one worker, two workers")
    warm = 2 if quick else 8
    native = timed(union, load, count, _SAME, warm=warm)
    figures = []
    for workers, at_most in ((1, 0.1), (2, 0.2)):
        with_it = timed(partial(ours, spark, load, workers=workers), load, count, _SAME, warm=warm)
        # A union that happens to be slower is no reason for a figure without a logarithm.
        added = max(1e-3, with_it.median_s - native.median_s)
        figures.append(figure(
            f"seconds over a union, {workers} worker{'s' * (workers > 1)}, 2,000 rows", added,
            at_most=at_most, seconds=with_it.median_s, peer_seconds=native.median_s,
        ))
    return figures


#: Name of a part of the result -> what measures it.
PARTS: dict[str, Callable[[SparkSession, Progress, bool], Any]] = {
    "buckets": buckets,
    "inequalities": inequalities,
    "empty": empty,
    "latency": latency,
    "batch": batch_figures,
    "recovery": recovery,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure some parts and put them in a result file beside those that are there."""
    from bench.suites import RESULTS, machine

    parser = argparse.ArgumentParser(prog="python -m bench.spark_suite", description=__doc__)
    parser.add_argument("part", nargs="+", choices=PARTS)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--results", type=Path, default=RESULTS / "spark.json")
    said = parser.parse_args(argv)
    kept = json.loads(said.results.read_text()) if said.results.exists() else {"result": {}}
    result = {"threads": THREADS, "quick": said.quick, "master": MASTER} | kept["result"]
    with two_cores(), session() as spark:
        for name in said.part:
            result[name] = PARTS[name](spark, lambda line: print(line, file=sys.stderr), said.quick)
            written = {"suite": "spark", "machine": machine(), "result": result}
            said.results.write_text(json.dumps(written, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
