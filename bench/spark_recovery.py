"""How long a worker takes to have its window back after its daemon died."""

import shutil
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

from bench.figures import figure
from host.options import JoinOptions
from host.options_json import to_plain
from host.service import Job, WorkerClient
from host.service.job import join_directory
from host.spool import write_part
from hw.spec.tuples import Side

__all__ = ["recovery"]

_SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("ts", pa.timestamp("us"))])
_BATCH = 1 << 16
_QUERY, _JOIN = "recovery", "band"


def recovery(
    spark: SparkSession, progress: Callable[[str], None], quick: bool
) -> dict[str, Any]:
    """Seconds from a dead daemon to the first answer, by the rows of the window."""
    sizes = (1 << 12, 1 << 13) if quick else (1 << 16, 1 << 18, 1 << 20)
    points = []
    for rows in sizes:
        progress(f"recovery of {rows:,} rows a side")
        points.append({"rows": rows, "seconds": _recovered(rows, 1 if quick else 3)})
    last = points[-1]
    return figure(
        f"seconds to have {last['rows']:,} rows a side back", float(last["seconds"]), at_most=5.0,
        points=points, seconds=last["seconds"],
    )


def _recovered(rows: int, rounds: int) -> float:
    place = tempfile.mkdtemp(prefix="watersmeet-bench-")
    try:
        epochs = max(1, rows // _BATCH)
        for epoch in range(epochs):
            _ask(place, epoch, rows // epochs)
        best = float("inf")
        for more in range(rounds):
            _kill(place)
            begin = time.perf_counter()
            _ask(place, epochs + more, 1)
            best = min(best, time.perf_counter() - begin)
        _kill(place)
        return best
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _ask(place: str, epoch: int, rows: int) -> None:
    """One micro-batch of so many rows a side."""
    rng = np.random.default_rng(epoch)
    first = epoch * _BATCH
    batches = []
    for side in Side:
        ids = np.arange(first, first + rows)
        keys = rng.integers(0, 1 << 30, rows, dtype=np.int32)
        times = pa.array(ids * 1000).cast(pa.timestamp("us"))
        batches.append((side, pa.record_batch([ids, keys, times], schema=_SCHEMA)))
    part = write_part(join_directory(f"{place}/state", _QUERY, _JOIN), epoch, "part", batches)
    job = Job(query=_QUERY, join=_JOIN, epoch=epoch, state_dir=f"{place}/state",
              options=to_plain(_options()), parts=(part,))
    with WorkerClient.connect(directory=f"{place}/daemon") as client:
        for _ in client.run(job):
            pass


def _options() -> JoinOptions:
    return JoinOptions(
        on="l.x BETWEEN r.x - 500 AND r.x + 500", window="1 hour", time="ts",
        lateness="0 seconds", left=_SCHEMA, right=_SCHEMA, select=["l.id", "r.id"],
    )


def _kill(place: str) -> None:
    for process in psutil.process_iter(["cmdline"]):
        if f"{place}/daemon" in (process.info["cmdline"] or []):
            with suppress(psutil.NoSuchProcess):
                process.kill()
                process.wait()
