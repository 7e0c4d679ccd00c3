"""What people do without this project, over the same windows: each counts matches per batch."""

import duckdb
import numpy as np
import pyarrow as pa

from bench.workload import BandWorkload

__all__ = ["DuckDBPeer", "ResortPeer"]


class ResortPeer:
    """Keeps each window as it arrived and sorts it anew with numpy for every batch."""

    def __init__(self, workload: BandWorkload) -> None:
        self.width = workload.width
        self.rows = workload.rows
        self.windows = [
            workload.batch(workload.rows).column("x").to_numpy().copy() for _ in range(2)
        ]

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """Matches of both batches with the other stream's window; then the windows move on."""
        batches = [batch.column("x").to_numpy() for batch in (left, right)]
        found = 0
        for side in range(2):
            window, probes = self.windows[1 - side], np.sort(batches[side])
            # Keys with their rows, as one word, so that a match can name its row.
            packed = (window.astype(np.int64) << 32) | np.arange(len(window))
            packed.sort()
            keys = (packed >> 32).astype(np.int32)
            lo, hi = _saturated(probes, -self.width), _saturated(probes, self.width)
            ends = np.searchsorted(keys, hi, "right")
            found += int((ends - np.searchsorted(keys, lo, "left")).sum())
        for side in range(2):
            self.windows[side] = np.concatenate([self.windows[side], batches[side]])[-self.rows :]
        return found


def _saturated(keys: np.ndarray, offset: int) -> np.ndarray:
    limits = np.iinfo(np.int32)
    return np.clip(keys.astype(np.int64) + offset, limits.min, limits.max).astype(np.int32)


class DuckDBPeer:
    """Joins each batch with the other stream's window by SQL."""

    def __init__(self, workload: BandWorkload) -> None:
        self.width = workload.width
        self.windows = [pa.table([workload.batch(workload.rows).column("x")], ["x"]) for _ in "lr"]
        self.connection = duckdb.connect()
        for name, window in zip(("left_window", "right_window"), self.windows, strict=True):
            self.connection.register("incoming", window)
            self.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """Matches of both batches with the other stream's window, which stays as it is."""
        found = 0
        for name, batch in (("right_window", left), ("left_window", right)):
            self.connection.register("probes", pa.Table.from_batches([batch]))
            rows = self.connection.execute(
                f"SELECT count(*) FROM probes JOIN {name} AS stored ON stored.x "
                f"BETWEEN probes.x::BIGINT - {self.width} AND probes.x::BIGINT + {self.width}"
            ).fetchall()
            found += rows[0][0]
        return found
