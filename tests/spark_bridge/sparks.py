"""Streams of files whose micro-batches a test decides, run through Spark to their end."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

__all__ = ["Folder", "new_session", "rows_of", "same"]

_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "Europe/Berlin",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    # Sessions of a minute: the JVM's second compiler would take longer than it saves.
    "spark.driver.extraJavaOptions": _SHORT_LIVED,
    "spark.executor.extraJavaOptions": _SHORT_LIVED,
    "spark.sql.streaming.checkpointFileManagerClass":
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager",
}


@contextmanager
def new_session(master, home, **settings):
    """A Spark session of a few settings that make it small, quiet and quick."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(master).appName("watersmeet tests")
    for name, value in {**_SETTINGS, "spark.sql.warehouse.dir": str(home), **settings}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


class Folder:
    """Two streams as Parquet files, one file of each to a micro-batch."""

    def __init__(self, spark, path):
        self.spark, self.path = spark, Path(path)

    @property
    def state(self):
        return str(self.path / "state")

    def write(self, name, table, cuts, first=0):
        """Cut a table into files of those row counts, numbered from `first`."""
        done = 0
        place = self.path / name
        place.mkdir(exist_ok=True)
        for number, rows in enumerate(cuts, first):
            path = place / f"{number:04}.parquet"
            pq.write_table(table.slice(done, rows), path)
            os.utime(path, (number, number))  # Spark takes the oldest first
            done += rows
        assert done == table.num_rows

    def stream(self, name, files=1):
        """A streaming frame that takes that many files for a micro-batch, in their order."""
        place = str(self.path / name)
        schema = self.spark.read.parquet(place).schema
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
        return reader.option("latestFirst", "false").parquet(place)

    def batch(self, name):
        return self.spark.read.parquet(str(self.path / name))

    def run(self, frame, name="out"):
        """Run a query over all that is there; the query, ended."""
        query = self.start(frame, name)
        query.awaitTermination()
        return query

    def start(self, frame, name="out", **trigger):
        return (
            frame.writeStream.format("parquet")
            .option("checkpointLocation", str(self.path / f"{name}-checkpoint"))
            .trigger(**(trigger or {"availableNow": True}))
            .start(str(self.path / name))
        )

    def results(self, frame, name="out"):
        """The rows that a query over all that is there gives, sorted."""
        self.run(frame, name)
        return rows_of(self.spark.read.parquet(str(self.path / name)))


def rows_of(frame):
    """The rows of a frame as plain tuples, in an order that does not depend on theirs."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def same(found, expected):
    """Compare two lists of rows and say what is missing."""
    from tests.helpers import same_pairs

    same_pairs(map(repr, found), map(repr, expected))
