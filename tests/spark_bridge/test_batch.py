"""The join of batch DataFrames: what Spark's own gives, over one task or a grid of them."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from spark_bridge import stream_join
from spark_bridge.batch import _gathered
from spark_bridge.columns import Layout
from tests.helpers import arrival_of, expected_pairs, null_safe, same_pairs
from tests.spark_bridge.data import mixed_rows
from tests.spark_bridge.sparks import rows_of, same

pytestmark = [pytest.mark.spark, pytest.mark.opencl]

LEFT, RIGHT = mixed_rows(150, 21), mixed_rows(170, 22)
COLUMNS = ["id", "f", "d", "ts", "n", "k", "bag"]


@pytest.fixture(scope="module")
def frames(spark, tmp_path_factory):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", 40)
    place = tmp_path_factory.mktemp("batch")
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, place / f"{name}.parquet")
    yield tuple(spark.read.parquet(str(place / f"{name}.parquet")) for name in ("left", "right"))
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


#: What Python workers do when they start: take gateware that is as small as can be.
_AT_START = """
from pathlib import Path
import host.backends.rtl_backend
host.backends.rtl_backend.library_directory = lambda: Path({!r})
"""


@pytest.fixture
def gateware(spark, small_cores, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(_AT_START.format(str(small_cores)))
    spark.sparkContext.environment["PYTHONPATH"] = str(tmp_path)
    yield
    del spark.sparkContext.environment["PYTHONPATH"]


def test_gateware_gives_the_pairs_of_sparks_join(frames, gateware):
    found = stream_join(*frames, "l.i BETWEEN r.i - 2 AND r.i + 2", workers=2, backend="rtl",
                        select=["l.id", "r.id"])
    left, right = frames[0].alias("l"), frames[1].alias("r")
    expected = left.join(right, F.expr("l.i BETWEEN r.i - 2 AND r.i + 2"))
    same(rows_of(found), rows_of(expected.select("l.id", "r.id")))


@pytest.mark.parametrize(("on", "window", "workers", "backend"), [
    ("l.f BETWEEN r.f - 1.5 AND r.f + 1.5", "none", None, "opencl"),
    ("l.i > r.i AND l.d < r.d", "none", 4, "numpy"),
    ("l.k = r.k AND l.ts <= r.ts", "100 seconds", 3, "numpy"),
])
def test_pairs_are_those_of_sparks_join(frames, on, window, workers, backend):
    found = stream_join(*frames, on, window, time=None if window == "none" else "ts",
                        workers=workers, backend=backend,
                        select=[f"{s}.{c}" for s in "lr" for c in COLUMNS])
    left, right = frames[0].alias("l"), frames[1].alias("r")
    if window != "none":
        on += f" AND r.ts BETWEEN l.ts - INTERVAL {window} AND l.ts + INTERVAL {window}"
    expected = left.join(right, F.expr(on)).select(*[f"{s}.{c}" for s in "lr" for c in COLUMNS])
    same(rows_of(found), rows_of(expected))
    assert found.schema == expected.select(
        *[F.col(f"{s}.{c}").alias(f"{s}_{c}") for s in "lr" for c in COLUMNS]).schema


def test_empty_frames_have_no_pairs(frames):
    nothing = frames[0].limit(0)
    for pair in ((nothing, frames[1]), (nothing, nothing)):
        assert stream_join(*pair, "l.i < r.i", workers=2, backend="numpy").collect() == []


def test_row_windows_take_the_rows_in_their_order(frames):
    found = stream_join(*frames, "l.i < r.i", "rows 20", select=["l.id", "r.id"], backend="numpy")
    less = null_safe(lambda left, right: left < right)
    expected = expected_pairs(lambda left, right: less(left["i"], right["i"]), "rows 20", LEFT,
                              RIGHT, arrival_of([(150, 170)]))
    same_pairs([tuple(row) for row in found.collect()], expected)


@pytest.mark.parametrize("at_once", [False, True])
def test_rows_are_joined_in_pieces_where_their_order_does_not_count(monkeypatch, at_once):
    monkeypatch.setattr("spark_bridge.batch._BATCH", 5)
    own = pa.schema([("a", pa.int64())])
    batches = [pa.record_batch({"side": pa.array([side] * 3, pa.int8()), "c0": range(at, at + 3)})
               for side, at in ((0, 0), (0, 3), (0, 6), (1, 10), (1, 13))]
    pieces = [[table["a"].to_pylist() for table in piece]
              for piece in _gathered(iter(batches), Layout((own, own), ((0,), (0,))), 1, at_once)]
    for side, rows in ((0, range(9)), (1, range(10, 16))):
        assert [row for piece in pieces for row in piece[side]] == [*rows]
    assert len(pieces) == (1 if at_once else 3)
