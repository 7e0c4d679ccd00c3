"""Whatever fails, and whenever: the output is that of a run without failures, or a clear error."""

import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from spark_bridge import stream_join
from tests.spark_bridge import chaos
from tests.spark_bridge.chaos import Schedule, kill_daemons, make_streams, run_schedule, truth
from tests.spark_bridge.sparks import Folder

pytestmark = [pytest.mark.spark, pytest.mark.opencl, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def streams(spark, tmp_path_factory):
    folder = Folder(spark, tmp_path_factory.mktemp("faults"))
    make_streams(folder)
    return folder


@pytest.fixture(scope="module")
def expected(streams):
    """The pairs of Spark's batch join of all rows."""
    pairs = truth(streams)
    assert pairs.total() > 1000
    return pairs


@pytest.mark.parametrize(("workers", "faults"), [
    (1, ["fail before", "fail after", "crash before", "crash after", "daemon before", "take"]),
    (2, ["crash before", "fail after", "daemon before", "daemon during", "take", "twice"]),
    (2, ["none", "sink fails", "stop", "all daemons while down", "daemon after", "daemon during"]),
], ids=["one worker", "two workers", "restarts"])
def test_faults_do_not_change_the_output(streams, expected, tmp_path, workers, faults):
    run_schedule(streams, Schedule(faults, workers, tmp_path), tmp_path.name, expected)
    happened = {path.name.split(" ", 1)[1] for path in tmp_path.iterdir()}
    assert happened == {*faults} - {"none", "take", "twice"}


def test_a_truncated_state_file_is_an_error_that_names_it(streams, tmp_path):
    run = chaos.Run(streams, Schedule(["none"] * 3 + ["stop", "none", "none"], 1, tmp_path),
                    tmp_path.name)
    query = run.start()
    while query.isActive:
        run.interrupt(query)
        time.sleep(0.02)
    assert query.exception() is None
    kill_daemons()
    parts = sorted(Path(streams.state, str(query.id)).glob("*/spool/*/*.arrow"))
    os.truncate(parts[-1], parts[-1].stat().st_size // 2)
    query = run.start()
    with pytest.raises(Exception, match=re.escape(f"the state file {parts[-1]} is damaged")):
        query.awaitTermination()
    assert len(run.got) < chaos.BATCHES


def test_a_join_that_was_changed_is_refused_after_a_restart(streams, tmp_path):
    """The rows of the changed join's past are not there: nothing may be made of the rest."""
    run = chaos.Run(streams, Schedule(["none", "none", "stop", "none", "none", "none"], 1,
                                      tmp_path), tmp_path.name)
    query = run.start()
    while query.isActive:
        run.interrupt(query)
        time.sleep(0.02)
    run.frame = lambda: stream_join(
        streams.stream("left"), streams.stream("right"), "l.x < r.x", chaos.WINDOW, time="ts",
        select=["l.id", "r.id"], state_dir=streams.state)
    query = run.start()
    with pytest.raises(Exception, match="EpochError"):
        query.awaitTermination()


#: Runs a query of the file sink until it ends; an argument makes it slow enough to be killed.
_DRIVER = """
import sys, time
from tests.spark_bridge import chaos
from tests.spark_bridge.sparks import Folder, new_session
place, slow = sys.argv[1], len(sys.argv) > 2
with new_session("local[2]", place) as spark:
    folder = Folder(spark, place)
    run = chaos.Run(folder, chaos.Schedule(["none"] * chaos.BATCHES, 2, place), "driver")
    query = folder.start(run.frame())
    while query.isActive:
        time.sleep(0.05)
        if slow and len(query.recentProgress) >= 2:
            print("two micro-batches are done", flush=True)
            time.sleep(60)
    query.awaitTermination()
"""


def test_a_driver_that_is_killed_leaves_a_query_that_can_go_on(spark, expected, tmp_path):
    folder = Folder(spark, tmp_path)
    make_streams(folder)
    command = [sys.executable, "-c", _DRIVER, str(tmp_path)]
    driver = subprocess.Popen([*command, "slow"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    assert driver.stdout.readline() == "two micro-batches are done\n"
    for process in [*psutil.Process(driver.pid).children(recursive=True), driver]:
        process.kill()
    driver.stdout.close()
    driver.wait()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter((row[0], row[1]) for row in rows) == expected
