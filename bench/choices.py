"""`--index auto` beside every fixed structure, on workloads that differ in all that matters."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import host
from bench.figures import figure
from bench.rounds import best_in_turn
from bench.workload import SCHEMA

__all__ = ["WORKLOADS", "measured", "run"]

Progress = Callable[[str], None]

_FIXED = ("bisort", "rap", "wib", "chain", "im", "pim", "loop")
_RANGE = 1 << 31
#: A nested loop is not tried where it would take minutes.
_LOOP_WORK = 1 << 31


@dataclass(frozen=True)
class Workload:
    """Keys, the window's rows, tuples of a batch, and matches of a tuple."""

    keys: str
    rows: int
    batch: int
    matches: int

    @property
    def name(self) -> str:
        return f"{self.keys}, {self.rows:,} rows, batch {self.batch:,}, {self.matches:,} matches"

    @property
    def pushes(self) -> int:
        """Of a round: enough to be timed, and few enough to wait for."""
        return max(1, min(256, (1 << 15) // self.batch))

    @property
    def rounds(self) -> int:
        """Pushes that take seconds are steady, and nobody waits for many of them."""
        return 7 if self.batch < self.rows else 3


WORKLOADS = (
    Workload("uniform", 1 << 16, 1, 1),
    Workload("uniform", 1 << 18, 32, 1),
    Workload("uniform", 1 << 18, 1 << 10, 1),
    Workload("uniform", 1 << 20, 1 << 15, 1),
    Workload("uniform", 1 << 20, 1 << 20, 1),
    Workload("uniform", 1 << 18, 1 << 10, 64),
    Workload("uniform", 1 << 18, 1 << 15, 4096),
    Workload("skewed", 1 << 18, 1 << 10, 8),
    Workload("skewed", 1 << 20, 1 << 15, 1),
    Workload("increasing", 1 << 16, 32, 1),
    Workload("increasing", 1 << 18, 1 << 12, 8),
    Workload("drifting", 1 << 18, 1 << 10, 1),
    Workload("drifting", 1 << 20, 1 << 15, 64),
    Workload("uniform", 1 << 9, 32, 1),
)
_QUICK = (Workload("uniform", 1 << 12, 1 << 12, 1),)


def _keys(workload: Workload) -> Iterator[np.ndarray]:
    """Batches of keys, the two streams in turn."""
    random, at = np.random.default_rng(11), 0
    while True:
        size = workload.batch
        if workload.keys == "uniform":
            yield random.integers(-_RANGE, _RANGE, size)
        elif workload.keys == "skewed":
            yield (random.lognormal(0, 2, size) * 1e6).clip(0, _RANGE - 1).astype(np.int64)
        elif workload.keys == "increasing":
            yield np.arange(at, at + size) // 2 * 16
        else:
            spread = random.integers(0, _RANGE // 8, size)
            yield at * 64 % _RANGE + spread - _RANGE // 16
        at += size


def _width(workload: Workload, keys: np.ndarray) -> int:
    """Half a band in which a tuple has about as many matches as the workload says."""
    spread = np.sort(keys.astype(np.float64))
    dense = (spread[-1] - spread[0] + 1) / len(spread)
    if workload.keys == "skewed":
        dense = float(np.median(np.diff(spread))) + 1
    if workload.keys == "increasing":
        return 8 * workload.matches
    return max(1, int(dense * len(keys) / workload.rows * workload.matches / 2))


class _Join:
    """A full window under one structure, and rounds of pushes."""

    def __init__(self, workload: Workload, index: str) -> None:
        self.keys, self.workload = _keys(workload), workload
        sample = np.concatenate([next(_keys(workload)) for _ in range(1)])
        width = _width(workload, sample if len(sample) > 64 else np.arange(64) * (_RANGE // 32))
        self.join = host.StreamJoin(
            on=f"l.x BETWEEN r.x - {width} AND r.x + {width}", window=f"rows {workload.rows}",
            left=SCHEMA, right=SCHEMA, index=index, emit="counts", backend="numpy",
            batch=max(workload.batch, 1 << 10),
        )
        filled = 0
        while filled < workload.rows + workload.rows // 8:
            size = max(workload.batch, 1 << 12)
            parts = [np.concatenate([next(self.keys) for _ in range(-(-size // workload.batch))])
                     for _ in range(2)]
            self._push(_rows(parts[0]), _rows(parts[1]))
            filled += len(parts[0])
        for _ in range(4 if workload.batch < workload.rows else 1):
            self.job()()

    def _push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        for _ in self.join.push(left=left, right=right):
            pass

    def job(self) -> Callable[[], None]:
        pushes = [(_rows(next(self.keys)), _rows(next(self.keys)))
                  for _ in range(self.workload.pushes)]

        def work() -> None:
            for left, right in pushes:
                self._push(left, right)

        return work


def _rows(keys: np.ndarray) -> pa.RecordBatch:
    ids = np.arange(len(keys), dtype=np.int32)
    return pa.record_batch([pa.array(keys.astype(np.int32)), pa.array(ids)], SCHEMA)


def run(progress: Progress, quick: bool) -> dict[str, Any]:
    """The time of `auto` over that of the best fixed structure, workload by workload."""
    if quick:
        return {"figures": [_compared(one, progress, 1) for one in _QUICK]}
    return measured(progress, range(len(WORKLOADS)), None)


def measured(
    progress: Progress, numbers: Iterable[int], kept: dict[str, Any] | None
) -> dict[str, Any]:
    """Those workloads measured, the others as they are in what is `kept`."""
    found = {one["workload"]: one for one in (kept or {"figures": []})["figures"]}
    for workload in (WORKLOADS[number] for number in numbers):
        found[workload.name] = _compared(workload, progress, workload.rounds)
    return {"figures": [found[one.name] for one in WORKLOADS if one.name in found]}


def _compared(workload: Workload, progress: Progress, rounds: int) -> dict[str, Any]:
    progress(f"auto beside every structure: {workload.name}")
    work = workload.rows * workload.batch * workload.pushes
    names = [
        name for name in ("auto", *_FIXED)
        if (name != "loop" or work <= _LOOP_WORK)
        # Section III-B3: on such keys a RaP-Table is a nested loop as well.
        and (name != "rap" or work <= _LOOP_WORK or workload.keys in ("uniform", "skewed"))
    ]
    joins = {name: _Join(workload, name) for name in names}
    seconds = dict(
        zip(names, best_in_turn(*[one.job for one in joins.values()], rounds=rounds), strict=True)
    )
    structures = joins["auto"].join.metrics.structures
    for one in joins.values():
        one.join.close()
    auto, best = seconds.pop("auto"), min(seconds, key=lambda name: seconds[name])
    return figure(
        f"auto over the best ({best}): {workload.name}", auto / seconds[best], at_most=1.3,
        workload=workload.name, seconds=auto, peer_seconds=seconds[best], fixed=seconds,
        chosen=structures,
    )
