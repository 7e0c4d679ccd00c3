"""make chaos: joins in Spark under random faults; the output must be that of a quiet run.

    python -m tests.spark_bridge.chaos [--schedules N] [--seed S] [--jobs J] [--master M]

A schedule gives each micro-batch of a query a fault or none. Schedule i of seed S is always the
same one: `--schedules 1 --first i --seed S` repeats it. One that fails is named, and the others
follow.
"""

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import psutil
import pyarrow as pa

from tests.spark_bridge.sparks import Folder

__all__ = ["BEFORE", "DRIVER", "AFTER", "Run", "Schedule", "make_streams", "run_schedule", "truth"]

#: What a task may do to itself and its daemon, before the worker has run the micro-batch ...
BEFORE = ("fail before", "crash before", "daemon before")
#: ... and after it; "daemon during" is after its first results.
AFTER = ("fail after", "crash after", "daemon during", "daemon after")
#: What the driver does with a micro-batch.
DRIVER = ("take", "twice", "sink fails", "stop", "all daemons while down")
#: What only a cluster can do: lose an executor, and run a slow task a second time beside the first.
EXECUTOR, SLOW_BEFORE, SLOW_AFTER = "executor", "slow before", "slow after"
BATCHES, ROWS = 6, 150
ON, WINDOW, LATENESS = "l.x BETWEEN r.x - 4 AND r.x + 4", "40 seconds", "20 seconds"


class Fault(Exception):
    """Made on purpose."""


class Schedule:
    """Which fault each micro-batch has; plain, so that tasks can hold it."""

    def __init__(self, faults, workers, marks):
        self.faults, self.workers, self.marks = faults, workers, str(marks)

    @classmethod
    def random(cls, seed, number, marks):
        rng = np.random.default_rng([seed, number])
        every = ("none", *BEFORE, *AFTER, *DRIVER)
        return cls([str(one) for one in rng.choice(every, BATCHES)], int(rng.integers(1, 4)), marks)

    def first_time(self, name):
        """Whether this is the first call with that name, in whatever process."""
        try:
            os.close(os.open(f"{self.marks}/{name}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def due(self, faults):
        """The fault of this task's micro-batch, if it is one of these and is still to come."""
        from pyspark import TaskContext

        context = TaskContext.get()
        epoch = int(context.getLocalProperty("streaming.sql.batchId"))
        fault = self.faults[epoch] if epoch < len(self.faults) else "none"
        if fault not in faults:
            return None
        if self.first_time(f"{epoch} {fault}"):
            return fault
        if fault in (SLOW_BEFORE, SLOW_AFTER) and context.attemptNumber() > 0:
            self.first_time(f"{epoch} twin")
        return None

    def wait_for_twin(self):
        """A task that takes until Spark has begun it a second time: its twin overtakes it."""
        from pyspark import TaskContext

        epoch = TaskContext.get().getLocalProperty("streaming.sql.batchId")
        patience_s = 120
        while not os.path.exists(f"{self.marks}/{epoch} twin") and patience_s > 0:
            time.sleep(0.05)
            patience_s -= 0.05
        time.sleep(1)


def before(schedule):
    """A task of one of the inputs: what goes wrong before the worker is asked."""
    def task(batches):
        fault = schedule.due((*BEFORE, SLOW_BEFORE))
        if fault == SLOW_BEFORE:
            schedule.wait_for_twin()
        if fault == "fail before":
            raise Fault("a task fails before its worker ran")
        if fault == "crash before":
            os._exit(1)
        if fault == "daemon before":
            kill_daemons()
        yield from batches

    return task


def after(schedule):
    """A task on the results: what goes wrong once the worker has begun to answer."""
    def task(batches):
        fault = schedule.due((*AFTER, EXECUTOR, SLOW_AFTER))
        if fault == "daemon during":
            kill_daemons()
        if fault == EXECUTOR:
            next(one for one in psutil.Process().parents() if one.name() == "java").kill()
        yield from batches
        if fault == SLOW_AFTER:
            schedule.wait_for_twin()
        if fault == "daemon after":
            kill_daemons()
        if fault == "crash after":
            os._exit(1)
        if fault == "fail after":
            raise Fault("a task fails after its worker ran")

    return task


def kill_daemons():
    """SIGKILL for every worker daemon that serves the tests' application."""
    for process in daemons():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGKILL)
            process.wait(10)


def daemons():
    """Daemons that work for this process's tree of processes."""
    mine = os.environ["WATERSMEET_CHAOS"]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            words = process.cmdline()
            if "serve" in words and process.environ().get("WATERSMEET_CHAOS") == mine:
                found.append(process)
    return found


def make_streams(folder, seed=3):
    """Two streams whose rows are a little out of order, in files of a micro-batch each."""
    rng = np.random.default_rng(seed)
    count = BATCHES * ROWS
    for name in ("left", "right"):
        at = 1_700_000_000 + np.arange(count) // 10 + rng.integers(-5, 6, count)
        table = pa.table({
            "id": np.arange(count), "x": rng.integers(0, 400, count).astype(np.float64),
            "ts": pa.array(at * 1_000_000).cast(pa.timestamp("us", "UTC")),
        })
        folder.write(name, table, [ROWS] * BATCHES)


def truth(folder):
    """Spark's batch join of the same rows."""
    from pyspark.sql import functions as F

    left, right = folder.batch("left").alias("l"), folder.batch("right").alias("r")
    within = f"r.ts BETWEEN l.ts - INTERVAL {WINDOW} AND l.ts + INTERVAL {WINDOW}"
    rows = left.join(right, F.expr(f"({ON}) AND {within}")).select("l.id", "r.id").collect()
    return Counter((row[0], row[1]) for row in rows)


class Run:
    """A query under a schedule, started again until it is through."""

    def __init__(self, folder, schedule, name, **options):
        self.folder, self.schedule, self.name = folder, schedule, name
        # By default the engine whose daemon starts soonest.
        self.options = {"backend": "numpy", **options}
        self.got, self.starts = {}, 0

    def frame(self):
        from spark_bridge import stream_join

        left, right = self.folder.stream("left"), self.folder.stream("right")
        # So few rows are enough for a worker to begin while the rest is being made.
        with mock.patch("spark_bridge.streaming.AHEAD_ROWS", ROWS // 2):
            pairs = stream_join(
                left.mapInArrow(before(self.schedule), left.schema), right, ON, WINDOW, time="ts",
                lateness=LATENESS, workers=self.schedule.workers, select=["l.id", "r.id"],
                state_dir=self.folder.state, **self.options,
            )
        return pairs.mapInArrow(after(self.schedule), pairs.schema)

    def sink(self, batch, number):
        """An idempotent sink: a micro-batch that comes again replaces what it was."""
        fault = self.schedule.faults[number]
        if fault == "take":
            batch.take(1)
        rows = batch.collect()
        if fault == "twice":
            assert Counter(rows) == Counter(batch.collect())
        if fault == "sink fails" and self.schedule.first_time(f"{number} {fault}"):
            raise Fault("the sink fails after the join ran")
        self.got[number] = [(row[0], row[1]) for row in rows]

    def start(self):
        self.starts += 1
        writer = self.frame().writeStream.foreachBatch(self.sink)
        place = str(self.folder.path / f"{self.name}-checkpoint")
        return writer.option("checkpointLocation", place).trigger(availableNow=True).start()

    def finish(self):
        """Run to the end, whatever happens on the way; the pairs."""
        while self.starts < 3 * BATCHES:
            query = self.start()
            while query.isActive:
                self.interrupt(query)
                time.sleep(0.02)
            if query.exception() is None and len(self.got) == BATCHES:
                return Counter(pair for rows in self.got.values() for pair in rows)
        raise AssertionError(f"{self.starts} starts were not enough: {query.exception()}")

    def interrupt(self, query):
        for number, fault in enumerate(self.schedule.faults):
            if fault in ("stop", "all daemons while down") and number in self.got \
                    and self.schedule.first_time(f"{number} {fault}"):
                query.stop()
                if fault != "stop":
                    kill_daemons()


def run_schedule(folder, schedule, name, expected, **options):
    """AssertionError unless the output is exactly what is expected."""
    found = Run(folder, schedule, name, **options).finish()
    missing, extra = expected - found, found - expected
    assert not missing and not extra, (
        f"{schedule.faults} with {schedule.workers} workers: {missing.total()} pairs are missing, "
        f"{extra.total()} do not belong"
    )


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.spark_bridge.chaos")
    parser.add_argument("--schedules", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--master", default="local[2,4]")
    parser.add_argument("--jobs", type=int, default=1, help="sessions that share the schedules")
    parser.add_argument("--step", type=int, default=1, help="run each so manieth schedule only")
    said = parser.parse_args(argv)
    failed = _shared(said) if said.jobs > 1 else _run(said)
    if failed:
        print(f"chaos: {failed} schedules failed", flush=True)
    elif said.step == 1:
        print(f"chaos: {said.schedules} schedules gave the pairs of a quiet run", flush=True)
    return 1 if failed else 0


def _shared(said):
    """Sessions of their own, with daemons of their own; how many of them saw a failure."""
    count = min(said.jobs, said.schedules)
    command = [sys.executable, "-m", "tests.spark_bridge.chaos", "--master", said.master,
               "--seed", str(said.seed), "--step", str(count)]
    sessions = [
        subprocess.Popen([*command, "--first", str(said.first + number),
                          "--schedules", str(said.schedules - number)])
        for number in range(count)
    ]
    return sum(session.wait() != 0 for session in sessions)


def _run(said):
    """One schedule after the other in one session; how many failed."""
    os.environ["WATERSMEET_CHAOS"] = str(os.getpid())

    from tests.spark_bridge.sparks import new_session

    failed = 0
    settings = {"spark.python.daemon.module": "tests.spark_bridge.warm_workers"}
    with tempfile.TemporaryDirectory() as place, \
            new_session(said.master, place, **settings) as spark:
        folder = Folder(spark, place)
        make_streams(folder)
        expected = truth(folder)
        for number in range(said.first, said.first + said.schedules, said.step):
            marks = Path(place) / f"marks-{number}"
            marks.mkdir()
            schedule = Schedule.random(said.seed, number, marks)
            name = (f"chaos: seed {said.seed}, schedule {number}, {schedule.workers} workers, "
                    f"{', '.join(schedule.faults)}")
            begin = time.monotonic()
            try:
                run_schedule(folder, schedule, f"run-{number}", expected)
            except Exception as error:
                failed += 1
                print(f"{name}: FAILED: {error}", flush=True)
            else:
                print(f"{name}: {time.monotonic() - begin:.1f} s", flush=True)
            shutil.rmtree(folder.state, ignore_errors=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
