"""A standalone cluster on the loopback, from the pip package, with accelerators as resources."""

import json
import os
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from spark_bridge.discover import main as discover
from tests.spark_bridge.chaos import make_streams, truth
from tests.spark_bridge.sparks import Folder

pytestmark = [pytest.mark.spark, pytest.mark.opencl, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SPARK_CLASS = Path(pyspark.__path__[0]) / "bin" / "spark-class"

#: The program that a user of a cluster writes; it prints the devices that tasks were given.
_PROGRAM = """
import sys
from tests.spark_bridge import chaos
from tests.spark_bridge.sparks import Folder, new_session
from spark_bridge import fpga_profile, stream_join
place, master = sys.argv[1:]
resources = {"spark.executor.resource.fpga.amount": "1", "spark.executor.cores": "1",
             "spark.executor.memory": "512m", "spark.cores.max": "2"}
with new_session(master, place, **resources) as spark:
    folder = Folder(spark, place)
    pairs = stream_join(folder.stream("left"), folder.stream("right"), chaos.ON, chaos.WINDOW,
                        time="ts", lateness=chaos.LATENESS, workers=2, select=["l.id", "r.id"],
                        state_dir=folder.state, profile=fpga_profile())
    folder.run(pairs)
    executors = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    print(len(executors) - 1, "executors")
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """A master and two workers, each with the devices that the shipped script discovers."""
    script = tmp_path / "discover"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m spark_bridge.discover\n")
    script.chmod(0o755)
    options = ("-Dspark.worker.resource.fpga.amount=1 "
               f"-Dspark.worker.resource.fpga.discoveryScript={script}")
    surroundings = {**os.environ, "SPARK_WORKER_OPTS": options, "PYTHONPATH": str(ROOT),
                    "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(tmp_path / "work")}
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    started = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port),
                "--webui-port", "0"]]
    started += [[f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--cores", "1", "--memory",
                 "1g", "--webui-port", "0", master]] * 2
    log = (tmp_path / "cluster.log").open("w")
    processes = []
    for command in started:
        processes.append(subprocess.Popen([str(SPARK_CLASS), *command], env=surroundings,
                                          cwd=tmp_path, stdout=log, stderr=log))
        while command is started[0] and not _answers(port):
            assert processes[0].poll() is None, (tmp_path / "cluster.log").read_text()
            time.sleep(0.1)
    yield master
    for process in reversed(processes):
        process.terminate()
        process.wait()
    log.close()


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_script_lists_devices_as_spark_wants_them(capsys):
    assert discover() == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "fpga" and found["addresses"][0] == "0"


def test_a_join_runs_on_a_standalone_cluster(spark, cluster, tmp_path):
    folder = Folder(spark, tmp_path)
    make_streams(folder)
    done = subprocess.run([sys.executable, "-c", _PROGRAM, str(tmp_path), cluster], cwd=ROOT,
                          env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "2 executors" in done.stdout
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert Counter((row[0], row[1]) for row in rows) == truth(folder)
