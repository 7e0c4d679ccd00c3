"""The numpy backend beside its peers, `push` beside its engine, and the memory of a window."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import psutil

from bench.peers import DuckDBPeer, ResortPeer
from bench.workload import BATCH, BandWorkload

__all__ = ["run"]

Progress = Callable[[str], None]

_ROUNDS = 7
_TUPLE_BYTES = 8
#: Rows a side, full size and quick.
_ROWS, _QUICK_ROWS = (1 << 20, 1 << 23), (1 << 16, 1 << 17)


def run(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """All figures; times are the best of several rounds, taken in turn with the peer's."""
    sizes = _QUICK_ROWS if quick else _ROWS
    return {
        "batch": BATCH,
        "quick": quick,
        "resort": [_against_resort(rows, progress) for rows in sizes],
        "duckdb": _against_duckdb(sizes[0], progress),
        "overhead": [_overhead(rows, progress) for rows in sizes],
        "memory": _memory(sizes[1], progress),
    }


def _against_resort(rows: int, progress: Progress) -> dict[str, Any]:
    progress(f"re-sorting a window of {rows:,} rows a side for each batch")
    workload = BandWorkload(rows)
    return _ratio(workload, ResortPeer(workload), _ROUNDS)


def _against_duckdb(rows: int, progress: Progress) -> dict[str, Any]:
    progress(f"DuckDB joining each batch with a window of {rows:,} rows a side")
    workload = BandWorkload(rows)
    return _ratio(workload, DuckDBPeer(workload), 2)


def _ratio(workload: BandWorkload, peer: ResortPeer | DuckDBPeer, rounds: int) -> dict[str, Any]:
    with workload.join(backend="numpy", emit="counts") as join:
        ours, theirs = [], []
        for _ in range(rounds):
            left, right = workload.batch(), workload.batch()
            ours.append(_timed(_push, join, left, right))
            theirs.append(_timed(peer.push, left, right))
    return {
        "rows": workload.rows,
        "seconds": min(ours),
        "peer_seconds": min(theirs),
        "tuples_per_s": 2 * BATCH / min(ours),
        "ratio": min(theirs) / min(ours),
    }


def _overhead(rows: int, progress: Progress) -> dict[str, Any]:
    """Of one push, what is outside the engine, as a share of the engine's own time."""
    progress(f"push beside its engine at {rows:,} rows a side")
    workload = BandWorkload(rows)
    shares = []
    with workload.join(backend="numpy", emit="counts") as join:
        for _ in range(3 * _ROUNDS):
            left, right = workload.batch(), workload.batch()
            before = join.manager.busy_s
            whole = _timed(_push, join, left, right)
            engine = join.manager.busy_s - before
            shares.append(((whole - engine) / engine, whole, engine))
    share, whole, engine = min(shares)
    return {"rows": rows, "push_s": whole, "engine_s": engine, "overhead_ratio": share}


def _push(join: Any, left: Any, right: Any) -> None:
    for _ in join.push(left=left, right=right):
        pass


def _timed(work: Callable[..., object], *arguments: object) -> float:
    begin = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - begin


def _memory(rows: int, progress: Progress) -> dict[str, Any]:
    """Peak of a process of its own that fills and turns over a window, pairs emitted."""
    progress(f"peak memory of a window of {rows:,} rows a side")
    command = [sys.executable, "-m", "bench.foundation", str(rows)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result: dict[str, Any] = json.loads(output)
    return result


def _fill_and_measure(rows: int) -> dict[str, Any]:
    """Peak above what the process needs for the same join with hardly a window."""
    import resource

    with BandWorkload(BATCH).join(backend="numpy", emit="pairs"):
        idle = psutil.Process().memory_info().rss
    workload = BandWorkload(rows)
    with workload.join(backend="numpy", emit="pairs") as join:
        for _ in range(0, rows // 2, BATCH):
            _push(join, workload.batch(), workload.batch())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    live = 2 * rows * _TUPLE_BYTES
    return {
        "rows": rows,
        "live_bytes": live,
        "idle_bytes": idle,
        "peak_bytes": peak,
        "ratio": (peak - idle) / live,
    }


if __name__ == "__main__":
    print(json.dumps(_fill_and_measure(int(sys.argv[1]))))
