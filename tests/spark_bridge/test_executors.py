"""Executors that die and tasks that have twins, on a cluster of two processes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]

#: Two executors, each a process of its own, one of which is killed twice; and twins of slow tasks.
_CLUSTER = """
import os, sys, time
import psutil
from tests.spark_bridge import chaos
from tests.spark_bridge.sparks import Folder, new_session
place = sys.argv[1]
os.environ["WATERSMEET_CHAOS"] = str(os.getpid())
speculation = {
    "spark.speculation": "true", "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.3", "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.multiplier": "1.1", "spark.executor.memory": "512m",
}

class Cluster(chaos.Schedule):
    def due(self, faults):
        from pyspark import TaskContext
        fault = super().due((*faults, "executor", "slow"))
        if fault == "executor":
            jvm = next(one for one in psutil.Process().parents() if one.name() == "java")
            jvm.kill()
            time.sleep(5)
        if fault == "slow":
            time.sleep(4)
        twin = TaskContext.get().attemptNumber() > 0
        if twin:
            open(f"{self.marks}/again {TaskContext.get().taskAttemptId()}", "w").close()
        return fault if fault in faults else None

with new_session("local-cluster[2,1,1024]", place, **speculation) as spark:
    folder = Folder(spark, place)
    chaos.make_streams(folder)
    expected = chaos.truth(folder)
    marks = os.path.join(place, "marks")
    os.mkdir(marks)
    faults = ["none", "executor", "slow", "daemon during", "executor", "slow"]
    chaos.run_schedule(folder, Cluster(faults, 2, marks), "cluster", expected)
    print(len([name for name in os.listdir(marks) if name.startswith("again")]), "attempts more")
"""


def test_executors_that_die_and_speculative_twins_do_not_change_the_output(tmp_path):
    script = tmp_path / "cluster.py"
    script.write_text(_CLUSTER)
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    again = re.search(r"^(\d+) attempts more$", done.stdout, re.MULTILINE)
    assert again and int(again[1]) >= 1
