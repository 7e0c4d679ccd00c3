"""What can be done with a join's result, and what it tells about itself."""

import io
import json
import re
import urllib.error
import urllib.request

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from rich.console import Console

from spark_bridge import stream_join
from spark_bridge.digest import normalised
from spark_bridge.listener import Board, JoinListener
from spark_bridge.live_table import live_table
from spark_bridge.page import Page
from tests.helpers import run_join
from tests.spark_bridge.sparks import rows_of, same

pytestmark = [pytest.mark.spark, pytest.mark.opencl, pytest.mark.slow]

BAND = "l.x BETWEEN r.x - 3 AND r.x + 3"
CUTS = [40, 30, 50]


def readings(count, seed, spread=0):
    """id, x and a time that rises by a second a row, give or take."""
    rng = np.random.default_rng(seed)
    at = 1_700_000_000 + np.arange(count) + rng.integers(-spread, spread + 1, count)
    return pa.table({
        "id": np.arange(count), "x": rng.integers(0, 60, count),
        "ts": pa.array(at * 1_000_000).cast(pa.timestamp("us", "UTC")),
    })


@pytest.fixture
def streams(folder):
    for seed, name in enumerate(("left", "right", "third")):
        folder.write(name, readings(sum(CUTS), seed), CUTS)
    return folder


def expected(folder, on, *names):
    """Spark's batch join, the inputs called l, r and t."""
    frames = [folder.batch(name).alias(letter) for name, letter in zip(names, "lrt", strict=False)]
    joined = frames[0]
    for frame in frames[1:]:
        joined = joined.crossJoin(frame)
    return rows_of(joined.where(on).select(*[f"{letter}.id" for letter in "lrt"[: len(names)]]))


def test_a_stream_joins_itself(streams):
    one = streams.stream("left")
    pairs = stream_join(one, one, f"{BAND} AND l.id < r.id", "none", state_dir=streams.state,
                        select=["l.id", "r.id"])
    same(streams.results(pairs), expected(streams, f"{BAND} AND l.id < r.id", "left", "left"))


def test_one_join_may_be_asked_for_twice(streams):
    """Two calls that say the same: its rows come twice, and its metrics are told once."""
    board = Board()
    listener = JoinListener(board).attach(streams.spark)
    one, two = (
        stream_join(streams.stream("left"), streams.stream("right"), BAND, "rows 30", workers=2,
                    state_dir=streams.state, select=["l.id", "r.id"])
        for _ in range(2)
    )
    found = streams.results(one.union(two).union(one))
    streams.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(600_000)
    streams.spark.streams.removeListener(listener)
    wanted = run_join(BAND, "rows 30", *(readings(sum(CUTS), seed) for seed in range(2)),
                      [(cut, cut) for cut in CUTS])
    same(found, sorted([*wanted] * 3, key=repr))
    [state] = board.states()
    assert (state.tuples, state.pairs) == (2 * sum(CUTS), len(wanted))


def test_joins_that_only_look_the_same_are_refused(streams):
    """A plan says of a function no more than its name."""
    left = streams.stream("left")
    joins = [
        stream_join(
            left.withColumn("x", F.udf(lambda x, by=by: x + by, "long")("x")),
            streams.stream("right"), BAND, "rows 30", state_dir=streams.state,
            select=["l.id", "r.id"], backend="numpy")
        for by in (0, 40)
    ]
    with pytest.raises(Exception, match="was begun with other rows by a join that looks the same"):
        streams.run(joins[0].union(joins[1]))


def test_the_name_of_a_joins_state_is_the_same_in_its_next_life(streams, spark):
    """Also that of a join after a join; and it is another one for every other source."""
    def named(*frames):
        joined = stream_join(*frames, "l.x < r.x", "rows 3", state_dir=streams.state)
        return re.search(r"watersmeet_run_(\w+)", normalised(joined))[1], joined

    def chain():
        listed = streams.stream("left").withColumn("all", F.transform(F.array("x"), lambda x: -x))
        first = named(listed, streams.stream("right", files=2))
        second = named(first[1].select(F.col("l_x").alias("x")), streams.stream("third"))
        return first[0], second[0]

    life = chain()
    assert life[0] != life[1]
    spark.range(3).observe("else", F.count("*"))  # Spark numbers observations
    assert chain() == life
    rates = [spark.readStream.format("rate").option("rowsPerSecond", rate).load()
             for rate in (1, 2, 1)]
    names = [named(*[rate.withColumnRenamed("value", "x")] * 2)[0] for rate in rates]
    assert names[0] == names[2] != names[1]
    bare = [normalised(rate) for rate in rates]
    assert bare[0] == bare[2] != bare[1]


def test_joins_follow_joins_and_other_operators(streams):
    """Three ways, with a filter between and columns renamed."""
    first = stream_join(
        streams.stream("left"), streams.stream("right"), BAND, "20 seconds", time="ts",
        workers=2, state_dir=streams.state)
    between = first.where("l_x > 10").select(
        F.col("l_id").alias("a"), F.col("r_id").alias("b"), "l_x", F.col("l_ts").alias("ts"))
    both = stream_join(between, streams.stream("third"), "l.l_x = r.x", "20 seconds", time="ts",
                       state_dir=streams.state, select=["l.a", "l.b", "r.id"])
    on = (f"{BAND} AND r.ts BETWEEN l.ts - INTERVAL 20 SECONDS AND l.ts + INTERVAL 20 SECONDS "
          "AND l.x > 10 AND l.x = t.x "
          "AND t.ts BETWEEN l.ts - INTERVAL 20 SECONDS AND l.ts + INTERVAL 20 SECONDS")
    wanted = expected(streams, on, "left", "right", "third")
    assert len(wanted) > 20
    same(streams.results(both), wanted)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("asked", [
    {"emit": "counts"},
    {"emit": "aggregate", "aggregates": {
        "n": "count(*)", "total": "sum(r.x)", "least": "min(l.x)", "mean": "avg(r.x)"}},
], ids=["counts", "aggregates"])
def test_counts_and_aggregates_are_those_of_one_join(streams, workers, asked):
    found = streams.results(stream_join(
        streams.stream("left"), streams.stream("right"), BAND, "rows 30", workers=workers,
        state_dir=streams.state, **asked))
    tables = [readings(sum(CUTS), seed) for seed in range(2)]
    wanted = run_join(BAND, "rows 30", *tables, [(cut, cut) for cut in CUTS], **asked, select=None)
    same(found, wanted)


def test_late_rows_come_beside_the_pairs(streams):
    """In the last micro-batch all rows are older than the watermark allows."""
    for name in ("left", "right"):
        streams.write(name, readings(60, 9).slice(50), [10], first=len(CUTS))
    rows = stream_join(
        streams.stream("left").withWatermark("ts", "15 seconds"),
        streams.stream("right").withWatermark("ts", "15 seconds"), BAND, "10 seconds", time="ts",
        late="keep", workers=2, state_dir=streams.state, select=["l.id", "r.id", "l.ts"])
    found = streams.results(rows)
    assert rows.columns == ["l_id", "r_id", "l_ts", "late"]
    assert sorted((row[3], row[0], row[1]) for row in found if row[3]) == sorted(
        [("l", n, None) for n in range(50, 60)] + [("r", None, n) for n in range(50, 60)])
    for name in ("left", "right"):
        (streams.path / name / f"{len(CUTS):04}.parquet").unlink()
    on = f"{BAND} AND r.ts BETWEEN l.ts - INTERVAL 10 SECONDS AND l.ts + INTERVAL 10 SECONDS"
    same([row[:2] for row in found if not row[3]], expected(streams, on, "left", "right"))


def test_a_watermark_of_the_inputs_is_on_the_result(streams):
    """Windowed counts of the pairs, in append mode: none of their rows is late for Spark."""
    pairs = stream_join(
        streams.stream("left").withWatermark("ts", "1 second"),
        streams.stream("right").withWatermark("ts", "1 second"), BAND, "20 seconds", time="ts",
        state_dir=streams.state, select=["l.id", "r.id", "l.ts", "r.ts"])
    counts = pairs.groupBy(F.window("l_ts", "10 seconds")).count()
    query = streams.run(counts.select("window.start", "count"))
    dropped = [operator.numRowsDroppedByWatermark for progress in query.recentProgress
               for operator in progress.stateOperators]
    assert dropped and set(dropped) == {0}
    found = rows_of(streams.batch("out"))
    on = f"{BAND} AND r.ts BETWEEN l.ts - INTERVAL 20 SECONDS AND l.ts + INTERVAL 20 SECONDS"
    left, right = streams.batch("left").alias("l"), streams.batch("right").alias("r")
    wanted = left.join(right, F.expr(on)).groupBy(F.window("l.ts", "10 seconds")).count()
    everything = rows_of(wanted.select("window.start", "count"))
    assert len(found) > 3 and {*found} < {*everything}


def test_progress_is_observed_listed_and_served(streams):
    board = Board()
    listener = JoinListener(board).attach(streams.spark)
    shown = Console(file=io.StringIO(), width=200, force_terminal=True)
    with live_table(streams.spark, shown), Page(board) as page:
        query = streams.run(stream_join(
            streams.stream("left"), streams.stream("right"), BAND, "rows 30", workers=2,
            state_dir=streams.state))
        streams.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(600_000)
        served = json.loads(urllib.request.urlopen(page.url + "joins.json").read())
        html = urllib.request.urlopen(page.url).read().decode()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(page.url + "../secret")
    streams.spark.streams.removeListener(listener)
    pairs = streams.batch("out").count()
    [state] = served
    assert state["query"] == str(query.id)
    assert (state["tuples"], state["pairs"], state["late"]) == (2 * sum(CUTS), pairs, 0)
    assert state["batch"] == len(CUTS) - 1 and state["workers"] == 2
    assert state["window"][0] >= 30 and state["window"][1] >= 30
    assert state["state_bytes"] > 0 and state["device_s"] > 0 and state["tuples_per_s"] > 0
    assert board.states()[0].state == "ended"
    # The page asks for nothing from elsewhere, and for every field that it shows.
    assert not re.search(r"(src|href)=", html) and 'fetch("joins.json")' in html
    assert {*re.findall(r"join\.(\w+)", html)} <= state.keys() | {"join"}
    assert f"{pairs:,}" in shown.file.getvalue()
