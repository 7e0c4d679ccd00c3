"""Streams that Spark makes itself, the joins that are measured on them, and how they are timed."""

import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_bridge.options import checked
from spark_bridge.streaming import streaming_join

__all__ = [
    "MASTER", "STORES", "Load", "Timed", "bucketed", "constant_key", "ours", "session", "sides",
    "source", "timed",
]

#: Two cores. A task may be tried again, since pipelined ones lose a race of Spark's own at times
#: (docs/spark.md): it takes a Python worker whose channel was closed a moment before.
MASTER = "local[2,4]"
#: Values of x.
_RANGE = 1 << 30
_STORES = "org.apache.spark.sql.execution.streaming.state."
STORES = {
    "HDFS-backed": _STORES + "HDFSBackedStateStoreProvider",
    "RocksDB": _STORES + "RocksDBStateStoreProvider",
}
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "6g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    # docs/spark.md: what each of these is for.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.python.udf.pipelined.enabled": "true",
    # However late this program looks, the measured micro-batches are still there.
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
}


@dataclass(frozen=True)
class Load:
    """rows  of the window, each side; batch  rows of a stream in a micro-batch."""

    rows: int
    batch: int
    matches: float = 1.0

    @property
    def width(self) -> int:
        """Half of a band in which a tuple has that many matches in the window."""
        return max(1, int(self.matches * _RANGE / (2 * self.rows)))

    @property
    def window(self) -> str:
        return f"{self.rows} milliseconds"

    @property
    def near(self) -> str:
        """The window as a condition of Spark's."""
        return (
            f"r.ts BETWEEN l.ts - INTERVAL {self.rows} MILLISECONDS "
            f"AND l.ts + INTERVAL {self.rows} MILLISECONDS"
        )

    @property
    def band(self) -> str:
        return f"l.x BETWEEN r.x - {self.width} AND r.x + {self.width}"


@contextmanager
def session() -> Iterator[SparkSession]:
    """Spark on two cores, the same for all sides."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(MASTER).appName("watersmeet bench")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def source(spark: SparkSession, load: Load, tag: int) -> DataFrame:
    """A stream of id, x, y and a time that goes on by a millisecond a row."""
    made = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", load.batch)
        .option("numPartitions", 1).load()
    )
    value = F.col("value")
    return made.select(
        value.alias("id"),
        F.pmod(F.xxhash64(value, F.lit(tag)), F.lit(_RANGE)).cast("int").alias("x"),
        F.pmod(F.xxhash64(value, F.lit(tag + 2)), F.lit(_RANGE)).cast("int").alias("y"),
        F.timestamp_millis(value).alias("ts"),
    )


def sides(spark: SparkSession, load: Load) -> tuple[DataFrame, DataFrame]:
    """Two streams with a watermark, as Spark's own join needs it to free state."""
    left, right = (source(spark, load, tag).withWatermark("ts", "0 seconds") for tag in (0, 1))
    return left, right


def ours(
    spark: SparkSession, load: Load, place: str, *, on: str | None = None, discard: bool = False,
    workers: int = 1,
) -> DataFrame:
    """The bridge's join; `discard` is the empty system."""
    left, right = sides(spark, load)
    options = checked(
        left, right, on=on or load.band, window=load.window, time="ts", workers=workers,
        routing=None, lateness=None, state_dir=f"{place}/state", select=["l.id", "r.id"],
    )
    return streaming_join(left, right, options, discard=discard)


def bucketed(spark: SparkSession, load: Load, times: int) -> DataFrame:
    """Spark's own join: equal buckets of `times` half bands, each left row in two or three."""
    left, right = sides(spark, load)
    size = load.width * times
    lo, hi = (F.floor((F.col("x") + step) / size) for step in (-load.width, load.width))
    spread = left.withColumn("b", F.explode(F.sequence(lo, hi))).alias("l")
    placed = right.withColumn("b", F.floor(F.col("x") / size)).alias("r")
    on = F.expr(f"l.b = r.b AND {load.band} AND {load.near}")
    return spread.join(placed, on).select("l.id", F.col("r.id").alias("r_id"))


def constant_key(spark: SparkSession, load: Load, on: str) -> DataFrame:
    """Spark's own join where nothing can be made equal but a constant."""
    left, right = (
        frame.withColumn("one", F.lit(1)).alias(name)
        for frame, name in zip(sides(spark, load), "lr", strict=True)
    )
    condition = F.expr(f"l.one = r.one AND {on} AND {load.near}")
    return left.join(right, condition).select("l.id", F.col("r.id").alias("r_id"))


@dataclass(frozen=True)
class Timed:
    """A query's micro-batches after the window was full.

    seconds       of each
    tuples_per_s  in the best of them
    state_bytes   that its state took in memory: for Spark's own joins what Spark says, for ours by
                  how much the worker daemon has grown since before the query, all in all
    """

    seconds: list[float]
    tuples_per_s: float
    state_bytes: int

    @property
    def median_s(self) -> float:
        return statistics.median(self.seconds)


def timed(
    make: Callable[[str], DataFrame], load: Load, measured: int, settings: dict[str, str],
    warm: int | None = None,
) -> Timed:
    """Run a query until the window is full (or `warm` micro-batches), then so many more."""
    place = tempfile.mkdtemp(prefix="watersmeet-bench-")
    first = -(-load.rows // load.batch) if warm is None else warm
    try:
        frame = make(place)
        spark = frame.sparkSession
        for name, value in settings.items():
            spark.conf.set(name, value)
        before = _daemon_bytes(spark.sparkContext.applicationId)
        query = (
            frame.writeStream.format("noop")
            .option("checkpointLocation", f"{place}/checkpoint").start()
        )
        while query.isActive and _done(query) < first + measured:
            time.sleep(0.02)
        if query.exception() is not None:
            raise RuntimeError(str(query.exception()))
        progress = query.recentProgress
        grown = _daemon_bytes(spark.sparkContext.applicationId) - before
        query.stop()
        return _summary(progress, first, measured, grown)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _done(query: Any) -> int:
    last = query.lastProgress
    return last.batchId + 1 if last else 0


def _summary(progress: Any, first: int, measured: int, grown: int) -> Timed:
    chosen = [one for one in progress if first <= one.batchId < first + measured]
    seconds = [one.durationMs["triggerExecution"] / 1000 for one in chosen]
    rates = [one.numInputRows / s for one, s in zip(chosen, seconds, strict=True)]
    stores = [one.memoryUsedBytes for one in chosen[-1].stateOperators]
    return Timed(seconds, max(rates), sum(stores) if stores else grown)


def _daemon_bytes(application: str) -> int:
    """What the worker daemons of this application hold for themselves, all of it."""
    held = 0
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "serve" in words and any(application in word for word in words):
            # Daemons of other applications end while this looks at them.
            with suppress(psutil.NoSuchProcess):
                memory = process.memory_info()
                held += memory.rss - memory.shared
    return held
