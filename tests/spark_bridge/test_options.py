"""Every option is checked on the driver, before a query starts, in one sentence that names it."""

import pytest
from pyspark.sql import functions as F

from host.errors import JoinError
from spark_bridge import explain, stream_join
from spark_bridge.batch import grid
from spark_bridge.options import checked
from tests.helpers import exactly

pytestmark = pytest.mark.spark

BAND = "l.x BETWEEN r.x - 1 AND r.x + 1"


@pytest.fixture(scope="module")
def frames(spark):
    """(two streams, two batch frames) with columns timestamp, value, x."""
    def shaped(frame):
        return frame.select("timestamp", "value", (F.col("value") * 1.5).alias("x"))

    stream = spark.readStream.format("rate").load()
    batch = spark.range(5).select(
        F.current_timestamp().alias("timestamp"), F.col("id").alias("value"))
    return (shaped(stream), shaped(stream)), (shaped(batch), shaped(batch))


@pytest.mark.parametrize(("options", "message"), [
    ({"state_dir": None},
     "a streaming join keeps its state on disk: name a directory that all workers reach with "
     "state_dir, or set spark.sql.streaming.checkpointLocation"),
    ({"state_dir": "hdfs://there/state"},
     "state_dir must be a path that every worker has mounted, not 'hdfs://there/state': hdfs is "
     "not a file system of the machine"),
    ({"workers": 0}, "workers must be a whole number from 1 on, not 0"),
    ({"workers": True}, "workers must be a whole number from 1 on, not True"),
    ({"workers": 2, "order": "strict"},
     "workers=2 is not possible with order='strict': use one worker"),
    ({"routing": "hash"},
     "routing 'hash' needs an equality like l.k = r.k in the condition: use 'round robin' or "
     "'random'"),
    ({"routing": "by hand", "workers": 3},
     "routing must be 'round robin', 'random', 'hash' or 'contrand:<groups>' with 1 to 3 groups, "
     "not 'by hand'"),
    ({"on": "l.value = r.value", "routing": "contrand:4", "workers": 3},
     "routing must be 'round robin', 'random', 'hash' or 'contrand:<groups>' with 1 to 3 groups, "
     "not 'contrand:4'"),
    ({"on": 7}, "on must be text, not 7"),
    ({"on": "l.valeu = r.x"}, "there is no column `l.valeu`: did you mean `l.value`?"),
    ({"window": "5 apples"}, None),
    ({"window": "5 minutes"},
     "the window '5 minutes' is of time: name the event-time column with time"),
    ({"window": "5 minutes", "time": "x"},
     "time column l.x is double, not a timestamp or a date: cast it"),
    ({"window": "5 minutes", "time": "timestamp", "lateness": "-1 second"},
     "lateness must not be negative, and '-1 second' is"),
    ({"lateness": "1 second"},
     "lateness goes with a time window, and the window is 'none': leave it out"),
    ({"backend": "abacus"},
     "backend must be one of auto, numpy, opencl, rtl, board, not 'abacus'"),
    ({"backend": "numpy", "device": "0"}, "backend numpy has no devices: leave out '0'"),
    ({"index": "heap"}, None),
    ({"emit": "sums"}, "emit must be one of pairs, counts, aggregate, not 'sums'"),
    ({"emit": "counts", "late": "keep"}, "late='keep' goes with emit='pairs', not with 'counts'"),
    ({"emit": "aggregate"}, "emit='aggregate' needs aggregates, like {'n': 'count(*)'}"),
    ({"select": ["l.z"]}, "select: left has no column 'z', it has timestamp, value, x"),
    ({"select": ["l.x", "l.x"]},
     "the result would have more than one column 'l_x': choose others"),
])
def test_a_wrong_option_is_named(frames, tmp_path, options, message):
    said = {"on": BAND, "window": "none", "state_dir": str(tmp_path)} | options
    with pytest.raises(JoinError, match=exactly(message) if message else None) as error:
        stream_join(*frames[0], **said)
    assert "\n" not in str(error.value)
    assert list(options)[-1] in str(error.value) or message


@pytest.mark.parametrize(("options", "message"), [
    ({"window": "rows 10", "workers": 2},
     "workers=2 is not possible with window='rows 10' on batch DataFrames: use one worker"),
    ({"emit": "counts", "workers": 2},
     "workers=2 is not possible with emit='counts' on batch DataFrames: use one worker"),
])
def test_batch_frames_have_no_order_of_arrival_over_tasks(frames, options, message):
    with pytest.raises(JoinError, match=exactly(message)):
        stream_join(*frames[1], BAND, **options)


def test_frames_must_be_of_a_kind(frames, tmp_path):
    (stream, _), (batch, _) = frames
    with pytest.raises(JoinError, match=exactly(
        "right is a stream and left is not: read both with readStream, or join them with Spark's "
        "own stream-static join"
    )):
        stream_join(batch, stream, BAND)
    with pytest.raises(JoinError, match=exactly("right must be a DataFrame, not str")):
        stream_join(stream, "quotes", BAND)


def test_a_frame_of_spark_connect_is_refused(frames):
    """By the module of its class: the class itself needs packages that nothing else here does."""
    remote = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(JoinError, match=exactly(
        "left is a DataFrame of Spark Connect, whose plan cannot be read from here: call "
        "stream_join in a program that has the driver (a classic session)"
    )):
        stream_join(remote, frames[0][1], BAND)


def test_a_column_that_arrow_cannot_carry_is_named(frames, spark):
    months = spark.range(1).select(F.expr("INTERVAL 1 MONTH AS age"), F.lit(1.0).alias("x"))
    with pytest.raises(JoinError, match=exactly(
        "right column 'age' is interval month, which Arrow cannot carry: cast it or drop it"
    )):
        stream_join(frames[1][0], months, BAND)


def test_explain_shows_what_runs_where(frames, tmp_path):
    streams, batches = frames
    text = explain(*streams, BAND, "10 minutes", time="timestamp", workers=3,
                   state_dir=str(tmp_path / "state"))
    for line in (
        f"on the device      {BAND}",
        "state              without a lateness all state is kept and no tuple is late",
        "workers            3 tasks of a micro-batch; tuples are dealt by round robin",
        f"state on disk      {tmp_path}/state",
    ):
        assert line in text.splitlines()
    assert "workers            6 tasks in a grid: a left row goes to 2 of them, a right row to 3" \
        in explain(*batches, BAND, workers=6).splitlines()
    with pytest.raises(TypeError, match=exactly("stream_join has no option 'wrokers'")):
        explain(*batches, BAND, wrokers=6)


@pytest.mark.parametrize(("said", "left", "right"), [
    ({"select": ["l.value"]}, ["value", "x"], ["x"]),
    ({"window": "1 minute", "time": "timestamp", "select": ["r.x"]},
     ["timestamp", "x"], ["timestamp", "x"]),
    ({"on": "l.value > 3", "emit": "counts"}, ["value"], ["timestamp"]),
    ({"emit": "aggregate", "aggregates": {"n": "sum(r.value)"}}, ["x"], ["value", "x"]),
    ({}, ["timestamp", "value", "x"], ["timestamp", "value", "x"]),
])
def test_only_the_columns_that_a_join_looks_at_are_asked_for(frames, tmp_path, said, left, right):
    every = {"on": BAND, "window": "none", "workers": None, "routing": None, "lateness": None}
    for pair in frames:
        options = checked(*pair, **{**every, "state_dir": str(tmp_path), **said}).join
        assert (options.left.names, options.right.names) == (left, right)


def test_a_watermark_gives_the_lateness(frames, tmp_path):
    late = [frame.withWatermark("timestamp", f"{n} minutes")
            for n, frame in enumerate(frames[0], 2)]
    text = explain(*late, BAND, "10 minutes", time="timestamp", state_dir=str(tmp_path))
    assert "newest time of each stream minus 3 minutes" in text


@pytest.mark.parametrize(("workers", "shape"), [(1, (1, 1)), (2, (2, 1)), (5, (5, 1)),
                                                (6, (3, 2)), (16, (4, 4))])
def test_the_grid_is_as_square_as_it_can_be(workers, shape):
    assert grid(workers) == shape
