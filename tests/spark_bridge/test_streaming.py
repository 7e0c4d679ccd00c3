"""Streams through Spark: the results are those of Spark's own batch join of the same rows."""

import subprocess
import sys
from functools import reduce

import pytest
from pyspark.sql import functions as F

from host.service import WorkerClient
from spark_bridge import stream_join
from spark_bridge.tasks import directory_of
from tests.helpers import arrival_of, expected_pairs, null_safe, same_pairs
from tests.spark_bridge.data import mixed_rows
from tests.spark_bridge.sparks import Folder, rows_of, same

pytestmark = [pytest.mark.spark, pytest.mark.opencl, pytest.mark.sim, pytest.mark.slow]

LEFT, RIGHT = mixed_rows(260, 11), mixed_rows(230, 12)
#: Rows of the two streams in each micro-batch: two ways to cut the same streams.
SPLITS = {
    "four micro-batches": [(60, 10), (100, 0), (1, 120), (99, 100)],
    "two micro-batches": [(259, 115), (1, 115)],
}

#: name -> condition, window, and what else is asked for
CASES = {
    "band of doubles": ("l.f BETWEEN r.f - 2.5 AND r.f + 2.5", "90 seconds", {}),
    "band of doubles, two workers":
        ("l.f BETWEEN r.f - 2.5 AND r.f + 1.5", "90 seconds", {"workers": 2}),
    "decimals": ("ABS(l.d - r.d) <= 1.25", "none", {"backend": "numpy"}),
    "one inequality": ("l.i < r.i", "-10 seconds..20 seconds", {"workers": 2}),
    "two inequalities": ("l.i > r.i AND l.f < r.f", "60 seconds", {}),
    "equality and band":
        ("l.k = r.k AND l.i BETWEEN r.i - 9 AND r.i + 3", "none", {"workers": 2}),
    "not equal, random": ("l.day <> r.day", "5 seconds", {"workers": 2, "routing": "random"}),
    "several bands": ("l.i - r.i = 2 OR l.i - r.i = -4", "none", {}),
    "zoned times": ("l.ts >= r.ts + INTERVAL '2' SECOND AND l.ts <= r.ts + INTERVAL '9' SECOND",
                    "none", {"backend": "numpy"}),
    "plain times": ("l.n = r.n", "none", {"workers": 3, "routing": "contrand:2"}),
    "date of a zoned time": ("CAST(l.ts AS DATE) = r.day AND l.i = r.i", "none", {}),
    "one side only": ("l.i > 40 AND r.k = 'ab'", "30 seconds", {}),
    "band, gateware": ("l.i BETWEEN r.i - 2 AND r.i + 2", "20 seconds", {"backend": "rtl"}),
    "doubles, gateware, two workers": ("l.f > r.f", "10 seconds", {"backend": "rtl", "workers": 2}),
    "rows": ("l.i BETWEEN r.i - 3 AND r.i + 3", "rows 40,25", {}),
    "rows, two workers": ("l.i BETWEEN r.i - 3 AND r.i + 3", "rows 30,45", {"workers": 2}),
}
COLUMNS = ["id", "f", "d", "ts", "n", "k", "bag"]


@pytest.fixture(scope="module", params=SPLITS)
def cut(request):
    """How the streams are cut."""
    return SPLITS[request.param]


@pytest.fixture(scope="module")
def streams(spark, tmp_path_factory, cut):
    """The rows on disk, cut into micro-batches."""
    folder = Folder(spark, tmp_path_factory.mktemp("streams"))
    folder.write("left", LEFT, [left for left, _ in cut])
    folder.write("right", RIGHT, [right for _, right in cut])
    return folder


def joined(folder, on, window, options):
    time = "ts" if "second" in window else None
    select = [f"{side}.{name}" for side in "lr" for name in COLUMNS]
    return stream_join(
        folder.stream("left"), folder.stream("right"), on, window, time=time, select=select,
        state_dir=folder.state, **options,
    )


#: A worker daemon whose gateware is as small as can be.
_SERVE = """
import sys
from pathlib import Path
import host.backends.rtl_backend
from host.__main__ import main
cores = Path(sys.argv.pop(1))
host.backends.rtl_backend.library_directory = lambda: cores
sys.exit(main())
"""


@pytest.fixture(scope="module")
def gateware(spark, small_cores):
    """A standing daemon of the session, which tasks find in place of one of their own."""
    directory = directory_of(spark.sparkContext.applicationId)
    command = [sys.executable, "-c", _SERVE, str(small_cores), "serve", "--backend", "rtl",
               "--directory", directory]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        assert daemon.stderr.readline() == f"watersmeet: serving {directory}/rtl-default.sock\n"
        yield
        with WorkerClient.connect(backend="rtl", directory=directory, start=False) as client:
            joins = client.status()["joins"]
        daemon.terminate()
    assert len(joins) == 3 * len(SPLITS), "one worker and two, for each query"


@pytest.fixture(scope="module")
def found(streams, gateware):
    """The rows of every case: all of them are joins of one query."""
    tagged = [
        joined(streams, *case).select(F.lit(name).alias("case"), "*")
        for name, case in CASES.items()
    ]
    rows = streams.results(reduce(lambda a, b: a.unionByName(b), tagged))
    return {name: [row[1:] for row in rows if row[0] == name] for name in CASES}


def spark_join(folder, on, window):
    """Spark's batch join of the same rows."""
    lo, _, hi = window.partition("..")
    if "second" in window:
        lo, hi = (lo, hi) if hi else (f"-{lo}", lo)
        on = f"({on}) AND r.ts BETWEEN l.ts + INTERVAL {lo} AND l.ts + INTERVAL {hi}"
    left, right = folder.batch("left").alias("l"), folder.batch("right").alias("r")
    chosen = [F.col(f"{side}.{name}") for side in "lr" for name in COLUMNS]
    return rows_of(left.join(right, F.expr(on)).select(*chosen))


@pytest.mark.parametrize("name", [name for name in CASES if "rows" not in name])
def test_results_are_those_of_sparks_batch_join(streams, found, name):
    on, window, _ = CASES[name]
    expected = spark_join(streams, on, window)
    assert len(expected) > 10
    same(found[name], expected)


@pytest.mark.parametrize("name", ["rows", "rows, two workers"])
def test_row_windows_follow_the_order_of_arrival(found, cut, name):
    near = null_safe(lambda left, right: abs(left - right) <= 3)
    expected = expected_pairs(
        lambda left, right: near(left["i"], right["i"]), CASES[name][1], LEFT, RIGHT,
        arrival_of(cut),
    )
    assert len(expected) > 10
    same_pairs([(row[0], row[len(COLUMNS)]) for row in found[name]], expected)
