"""A standalone cluster on the loopback, from the pip package: its faults, resources, shipping."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyspark
import pytest

from spark_bridge.discover import main as discover
from tests.spark_bridge.chaos import EXECUTOR, SLOW_AFTER, SLOW_BEFORE, make_streams, truth
from tests.spark_bridge.sparks import Folder

pytestmark = [pytest.mark.spark, pytest.mark.opencl, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
SPARK_CLASS = Path(pyspark.__path__[0]) / "bin" / "spark-class"

#: What every program of these asks of the cluster: two executors of a core each.
_SIZES = {"spark.executor.cores": "1", "spark.executor.memory": "512m", "spark.cores.max": "2"}

#: Faults that only a cluster knows, with accelerators as resources. Tasks that take long get twins.
_FAULTS = """
import os, sys, time
from spark_bridge import fpga_profile
from tests.spark_bridge import chaos
from tests.spark_bridge.sparks import Folder, new_session
place, master, root, faults = *sys.argv[1:4], sys.argv[4:]
settings = {
    "spark.executorEnv.PYTHONPATH": root, "spark.executorEnv.WATERSMEET_CHAOS": str(os.getpid()),
    "spark.executor.resource.fpga.amount": "1",
    "spark.speculation": "true", "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.5", "spark.speculation.minTaskRuntime": "2s",
}
with new_session(master, place, **settings, **SIZES) as spark:
    folder = Folder(spark, place)
    schedule = chaos.Schedule(faults, 2, place + "/marks")
    chaos.run_schedule(folder, schedule, "faults", chaos.truth(folder), backend="auto",
                       profile=fpga_profile())
    for _ in range(600):  # the last fault ended an executor: another comes in its place
        executors = len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1
        if executors == 2:
            break
        time.sleep(0.1)
    print(executors, "executors")
"""

#: Executors have the packages from an archive and from nowhere else in front of it.
_SHIPPED = """
import sys
import psutil
from tests.spark_bridge import chaos
from tests.spark_bridge.sparks import Folder, new_session
from spark_bridge import stream_join
place, master, archive = sys.argv[1:]
shipped = {"spark.archives": archive + "#watersmeet", "spark.executorEnv.PYTHONPATH": "watersmeet"}
with new_session(master, place, **shipped, **SIZES) as spark:
    folder = Folder(spark, place)
    pairs = stream_join(folder.stream("left"), folder.stream("right"), chaos.ON, chaos.WINDOW,
                        time="ts", lateness=chaos.LATENESS, workers=2, select=["l.id", "r.id"],
                        state_dir=folder.state)
    folder.run(pairs)
    where = spark.sparkContext.parallelize(range(2), 2).map(lambda _: __import__("host").__file__)
    print("host is", *{*where.collect()})
    application = spark.sparkContext.applicationId
    for words in (one.info["cmdline"] or [] for one in psutil.process_iter(["cmdline"])):
        if "serve" in words and any(application in word for word in words):
            print("a daemon has", next(word for word in words if word.startswith("[")))
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A master and two workers on hosts of their own, with the devices that the script discovers.

    Spark runs no twin on the host that has the task already.
    """
    place = tmp_path_factory.mktemp("cluster")
    script = place / "discover"
    script.write_text("#!/bin/sh\n"
                      f"PYTHONPATH={ROOT} exec {sys.executable} -m spark_bridge.discover\n")
    script.chmod(0o755)
    options = ("-Dspark.worker.resource.fpga.amount=1 "
               f"-Dspark.worker.resource.fpga.discoveryScript={script}")
    surroundings = {**os.environ, "SPARK_WORKER_OPTS": options, "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_WORKER_DIR": str(place / "work")}
    surroundings.pop("PYTHONPATH", None)
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    started = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port),
                "--webui-port", "0"]]
    started += [[f"{deploy}.worker.Worker", "--host", f"127.0.0.{n}", "--cores", "1", "--memory",
                 "1g", "--webui-port", "0", master] for n in (1, 2)]
    log = (place / "cluster.log").open("w")
    processes = []
    for command in started:
        processes.append(subprocess.Popen([str(SPARK_CLASS), *command], env=surroundings,
                                          cwd=place, stdout=log, stderr=log))
        while command is started[0] and not _answers(port):
            assert processes[0].poll() is None, (place / "cluster.log").read_text()
            time.sleep(0.1)
    yield master
    for process in reversed(processes):
        process.terminate()
        process.wait()
    log.close()


@pytest.fixture
def streams(spark, tmp_path):
    folder = Folder(spark, tmp_path)
    make_streams(folder)
    return folder


def _answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_the_script_lists_devices_as_spark_wants_them(capsys):
    assert discover() == 0
    found = json.loads(capsys.readouterr().out)
    assert found["name"] == "fpga" and found["addresses"][0] == "0"


def run(program, *arguments):
    """What a program of the cluster's user prints."""
    done = subprocess.run([sys.executable, "-c", f"SIZES = {_SIZES}\n{program}", *arguments],
                          cwd=ROOT, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_executors_that_die_and_speculative_twins_do_not_change_the_output(streams, cluster):
    faults = ["none", SLOW_BEFORE, EXECUTOR, SLOW_AFTER, "daemon during", EXECUTOR]
    marks = streams.path / "marks"
    marks.mkdir()
    said = run(_FAULTS, str(streams.path), cluster, str(ROOT), *faults)
    assert "2 executors" in said
    happened = {path.name for path in marks.iterdir()}
    assert happened == {f"{n} {fault}" for n, fault in enumerate(faults) if fault != "none"} | {
        "1 twin", "3 twin"}


def test_a_wheel_ships_as_an_archive(streams, cluster, tmp_path):
    shipped = wheel(tmp_path)
    said = run(_SHIPPED, str(streams.path), cluster, str(shipped))
    places = re.search(r"^host is (.*)$", said, re.MULTILINE)[1].split()
    assert all(place.endswith("/watersmeet/host/__init__.py") for place in places), said
    assert not any(place.startswith(str(ROOT)) for place in places)
    daemons = [json.loads(line) for line in re.findall(r"^a daemon has (.*)$", said, re.MULTILINE)]
    assert daemons
    for paths in daemons:
        [shipped_to] = [path for path in paths if path.endswith("/watersmeet")]
        assert str(ROOT) not in paths[: paths.index(shipped_to)]
    rows = streams.batch("out").collect()
    assert Counter((row[0], row[1]) for row in rows) == truth(streams)


def wheel(place):
    """The packages as a wheel, under a name by which Spark unpacks it; the checkout stays clean."""
    source = place / "source"
    for name in ("host", "hw", "sim", "spark_bridge", "bench"):
        shutil.copytree(ROOT / name, source / name,
                        ignore=shutil.ignore_patterns("__pycache__", "results"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
             "--no-index", "-w", str(place), str(source)]
    subprocess.run(build, check=True, capture_output=True)
    [made] = place.glob("watersmeet-*.whl")
    return made.rename(place / "watersmeet.zip")
