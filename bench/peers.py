"""What people do without this project, over the same windows: each counts matches per batch.

A peer is made over the keys of the two windows. `push` joins a batch of each stream with the other
stream's window, and is what is timed; `probe` does it for a left batch alone, on the window as it
was given, so that the number of matches can be compared with the join's.
"""

from collections.abc import Sequence
from typing import Protocol

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from bench.rounds import THREADS
from bench.workload import BandWorkload

__all__ = [
    "DuckDBBuckets", "DuckDBPairs", "DuckDBPeer", "DuckDBReadyBuckets", "Peer", "PolarsPairs",
    "PolarsPeer", "PolarsStreaming", "PolarsStreamingPairs", "ResortPeer", "Windows", "bounds",
]

#: Keys of the left and of the right window, in order of arrival.
Windows = Sequence[np.ndarray]


class Peer(Protocol):
    """Something that joins batches with windows."""

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """Matches of both batches with the other stream's window."""

    def probe(self, left: pa.RecordBatch) -> int:
        """Matches of a left batch with the right window."""

    def close(self) -> None: ...


def _windows(workload: BandWorkload, windows: Windows | None) -> Windows:
    """The given windows, or random ones."""
    if windows is not None:
        return windows
    return [workload.batch(workload.rows).column("x").to_numpy().copy() for _ in range(2)]


def bounds(batch: pa.RecordBatch, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Least and largest key that each tuple matches."""
    keys = batch.column("x").to_numpy()
    return _saturated(keys, -width), _saturated(keys, width)


def _saturated(keys: np.ndarray, offset: int) -> np.ndarray:
    limits = np.iinfo(np.int32)
    return np.clip(keys.astype(np.int64) + offset, limits.min, limits.max).astype(np.int32)


class ResortPeer:
    """Keeps each window as it arrived and sorts it anew with numpy for every batch."""

    def __init__(self, workload: BandWorkload, windows: Windows | None = None) -> None:
        self.width = workload.width
        self.rows = workload.rows
        self.windows = list(_windows(workload, windows))

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """Matches of both batches with the other stream's window; then the windows move on."""
        found = self._matches(left, self.windows[1]) + self._matches(right, self.windows[0])
        for side, batch in enumerate((left, right)):
            joined = np.concatenate([self.windows[side], batch.column("x").to_numpy()])
            self.windows[side] = joined[-self.rows :]
        return found

    def probe(self, left: pa.RecordBatch) -> int:
        return self._matches(left, self.windows[1])

    def close(self) -> None:
        self.windows = []

    def _matches(self, batch: pa.RecordBatch, window: np.ndarray) -> int:
        probes = np.sort(batch.column("x").to_numpy())
        # Keys with their rows, as one word, so that a match can name its row.
        packed = (window.astype(np.int64) << 32) | np.arange(len(window))
        packed.sort()
        keys = (packed >> 32).astype(np.int32)
        lo, hi = _saturated(probes, -self.width), _saturated(probes, self.width)
        ends = np.searchsorted(keys, hi, "right")
        return int((ends - np.searchsorted(keys, lo, "left")).sum())


class DuckDBPeer:
    """Joins each batch with the other stream's window by SQL; the windows stay as they are."""

    #: {window} is a table of x and id, `probes` has lo, hi and id.
    QUERY = "SELECT count(*) FROM probes JOIN {window} AS stored ON stored.x BETWEEN lo AND hi"
    #: What is stored of a window.
    TABLE = "SELECT * FROM incoming"

    def __init__(self, workload: BandWorkload, windows: Windows | None = None) -> None:
        self.width = workload.width
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {THREADS}")
        for name, keys in zip(("l", "r"), _windows(workload, windows), strict=True):
            rows = pa.table({"x": keys, "id": np.arange(len(keys), dtype=np.int32)})
            self.connection.register("incoming", rows)
            stored = self.TABLE.format(width=self.width)
            self.connection.execute(f"CREATE TABLE {name} AS {stored}")

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        return self._matches(left, "r") + self._matches(right, "l")

    def probe(self, left: pa.RecordBatch) -> int:
        return self._matches(left, "r")

    def close(self) -> None:
        self.connection.close()

    def _matches(self, batch: pa.RecordBatch, window: str) -> int:
        lo, hi = bounds(batch, self.width)
        probes = pa.table([lo, hi, *batch.columns], names=["lo", "hi", *batch.schema.names])
        self.connection.register("probes", probes)
        return self._run(self.QUERY.format(window=window, width=self.width))

    def _run(self, query: str) -> int:
        return int(self.connection.execute(query).fetchall()[0][0])


class DuckDBBuckets(DuckDBPeer):
    """The equality that people make by hand, of the keys: buckets as wide as the band reaches.

    A match is in the probe's bucket or in one beside it.
    """

    QUERY = (
        "SELECT count(*) FROM (SELECT lo, hi, unnest([b - 1, b, b + 1]) AS bucket FROM "
        "(SELECT lo, hi, floor(x / {width}) AS b FROM probes)) AS wanted "
        "JOIN {window} AS stored ON floor(stored.x / {width}) = bucket "
        "WHERE stored.x BETWEEN lo AND hi"
    )


class DuckDBReadyBuckets(DuckDBPeer):
    """The same over windows that have their buckets ready, in a column of their own."""

    TABLE = "SELECT x, id, x::BIGINT // {width} AS bucket FROM incoming"
    QUERY = (
        "SELECT count(*) FROM (SELECT lo, hi, unnest([b - 1, b, b + 1]) AS bucket FROM "
        "(SELECT lo, hi, x::BIGINT // {width} AS b FROM probes)) AS wanted "
        "JOIN {window} AS stored USING (bucket) WHERE stored.x BETWEEN lo AND hi"
    )


class DuckDBPairs(DuckDBPeer):
    """Pairs of identifiers, to Arrow."""

    QUERY = (
        "SELECT probes.id AS probe, stored.id AS stored FROM probes JOIN {window} AS stored "
        "ON stored.x BETWEEN lo AND hi"
    )

    def _run(self, query: str) -> int:
        pairs: pa.Table = self.connection.sql(query).to_arrow_table()
        return pairs.num_rows


class PolarsPeer:
    """Joins each batch with the other stream's window by `DataFrame.join_where`.

    A call on two frames runs on Polars' in-memory engine. A lazy query runs on its streaming
    engine, which is several times faster here where only the number of rows is asked for: that is
    PolarsStreaming.
    """

    def __init__(self, workload: BandWorkload, windows: Windows | None = None) -> None:
        self.width = workload.width
        self.windows = [
            pl.DataFrame({"x": keys, "stored": np.arange(len(keys), dtype=np.int32)})
            for keys in _windows(workload, windows)
        ]

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        return self._matches(left, self.windows[1]) + self._matches(right, self.windows[0])

    def probe(self, left: pa.RecordBatch) -> int:
        return self._matches(left, self.windows[1])

    def close(self) -> None:
        self.windows = []

    def _matches(self, batch: pa.RecordBatch, window: pl.DataFrame) -> int:
        lo, hi = bounds(batch, self.width)
        probes = pl.DataFrame({"lo": lo, "hi": hi, "probe": batch.column("id").to_numpy()})
        return self._run(probes, window)

    def _run(self, probes: pl.DataFrame, window: pl.DataFrame) -> int:
        return probes.join_where(window, *_WITHIN).height


_WITHIN = (pl.col("x") >= pl.col("lo"), pl.col("x") <= pl.col("hi"))


class PolarsStreaming(PolarsPeer):
    """The same as a lazy query for the number of rows alone, on the streaming engine."""

    def _run(self, probes: pl.DataFrame, window: pl.DataFrame) -> int:
        joined = probes.lazy().join_where(window.lazy(), *_WITHIN)
        return int(joined.select(pl.len()).collect(engine="streaming").item())


class PolarsPairs(PolarsPeer):
    """Pairs of identifiers, to Arrow."""

    def _run(self, probes: pl.DataFrame, window: pl.DataFrame) -> int:
        joined = probes.join_where(window, *_WITHIN)
        pairs: pa.Table = joined.select("probe", "stored").to_arrow()
        return pairs.num_rows


class PolarsStreamingPairs(PolarsPeer):
    """The same as a lazy query for these two columns, on the streaming engine."""

    def _run(self, probes: pl.DataFrame, window: pl.DataFrame) -> int:
        joined = probes.lazy().join_where(window.lazy(), *_WITHIN).select("probe", "stored")
        return int(joined.collect(engine="streaming").to_arrow().num_rows)
