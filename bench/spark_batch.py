"""The join of batch DataFrames beside Spark's own: hand-made buckets and the nested loop."""

import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.figures import figure
from bench.rounds import best_in_turn
from spark_bridge import stream_join

__all__ = ["batch_figures"]

_RANGE = 1 << 30


def batch_figures(
    spark: SparkSession, progress: Callable[[str], None], quick: bool
) -> list[dict[str, Any]]:
    """Band joins and two inequalities, about one match a row."""
    large, small = (1 << 14, 1 << 11) if quick else (1_000_000, 100_000)
    progress(f"batch: {large:,} x {large:,} rows, a band, beside buckets")
    left, right = _rows(spark, large, 0), _rows(spark, large, 1)
    width = _RANGE // (2 * large)
    mine = _job(stream_join(left, right, _band(width), select=["l.id", "r.id"]))
    ways = [_job(_bucketed(left, right, width, times)) for times in (2, 4, 16)]
    seconds = best_in_turn(mine, *ways, rounds=1 if quick else 3)
    figures = [_figure(f"{large:,} x {large:,}, band, beside the best buckets", seconds[0],
                       min(seconds[1:]), 1.0)]
    left, right = _rows(spark, small, 0), _rows(spark, small, 1)
    far = int(_RANGE * (1 - (4 / small) ** 0.25))
    for name, on in (
        ("band", _band(_RANGE // (2 * small))),
        ("two inequalities", f"l.x < r.x - {far} AND l.y > r.y + {far}"),
    ):
        progress(f"batch: {small:,} x {small:,} rows, {name}, beside the nested loop")
        mine = _job(stream_join(left, right, on, select=["l.id", "r.id"]))
        ours_s = best_in_turn(mine, rounds=1 if quick else 3)[0]
        nested = left.alias("l").join(F.broadcast(right.alias("r")), F.expr(on))
        begin = time.perf_counter()
        _job(nested.select("l.id", F.col("r.id").alias("r_id")))()()
        figures.append(_figure(f"{small:,} x {small:,}, {name}, beside the nested loop", ours_s,
                               time.perf_counter() - begin, 50.0))
    return figures


def _figure(name: str, seconds: float, peer_seconds: float, at_least: float) -> dict[str, Any]:
    return figure(name, peer_seconds / seconds, at_least=at_least, seconds=seconds,
                  peer_seconds=peer_seconds)


def _rows(spark: SparkSession, count: int, tag: int) -> DataFrame:
    identity = F.col("id")
    columns = [
        F.pmod(F.xxhash64(identity, F.lit(tag + step)), F.lit(_RANGE)).cast("int").alias(name)
        for step, name in ((0, "x"), (2, "y"))
    ]
    return spark.range(count, numPartitions=2).select(identity, *columns)


def _band(width: int) -> str:
    return f"l.x BETWEEN r.x - {width} AND r.x + {width}"


def _bucketed(left: DataFrame, right: DataFrame, width: int, times: int) -> DataFrame:
    size = width * times
    lo, hi = (F.floor((F.col("x") + step) / size) for step in (-width, width))
    spread = left.withColumn("b", F.explode(F.sequence(lo, hi))).alias("l")
    placed = right.withColumn("b", F.floor(F.col("x") / size)).alias("r")
    on = F.expr(f"l.b = r.b AND {_band(width)}")
    return spread.join(placed, on).select("l.id", F.col("r.id").alias("r_id"))


def _job(frame: DataFrame) -> Callable[[], Callable[[], object]]:
    """All rows of a frame, computed and dropped."""
    return lambda: lambda: frame.write.format("noop").mode("overwrite").save()
