"""Streams through Spark to a board, here a simulated one, and back."""

import subprocess
import sys

import pytest
from pyspark.sql import functions as F

from spark_bridge import stream_join
from spark_bridge.tasks import directory_of
from tests.spark_bridge.data import mixed_rows
from tests.spark_bridge.sparks import Folder, rows_of, same

pytestmark = [pytest.mark.spark, pytest.mark.sim, pytest.mark.slow]

#: A worker daemon that knows the simulated board's gateware by its manifest.
_SERVE = """
import sys
from pathlib import Path
import hw.bitstreams
from host.__main__ import main
hw.bitstreams.FOLDER = Path(sys.argv.pop(1))
sys.exit(main())
"""


@pytest.fixture
def port(spark):
    """The board's port, with the daemon that tasks of the session find beside it."""
    from sim.cosim import SimulatedBoard, build_board

    folder, digest = build_board()
    directory = directory_of(spark.sparkContext.applicationId)
    with SimulatedBoard(folder, digest) as board:
        command = [sys.executable, "-c", _SERVE, str(folder), "serve", "--backend", "board",
                   "--device", board.port, "--directory", directory]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
            assert daemon.stderr.readline().startswith(f"watersmeet: serving {directory}/board-")
            yield board.port
            daemon.terminate()


def test_pairs_from_a_board_are_those_of_sparks_batch_join(spark, port, tmp_path):
    folder = Folder(spark, tmp_path)
    folder.write("left", mixed_rows(80, 21), [30, 0, 50])
    folder.write("right", mixed_rows(70, 22), [20, 40, 10])
    left, right = (folder.batch(name).alias(name[0]) for name in ("left", "right"))
    near = "l.i BETWEEN r.i - 2 AND r.i + 2"
    within = "r.ts BETWEEN l.ts - INTERVAL 90 SECONDS AND l.ts + INTERVAL 90 SECONDS"
    joined = left.join(right, F.expr(f"{near} AND {within}"))
    expected = rows_of(joined.select("l.id", "r.id"))
    assert len(expected) > 10
    found = stream_join(
        folder.stream("left"), folder.stream("right"), near, "90 seconds", time="ts",
        select=["l.id", "r.id"], backend="board", device=port, state_dir=folder.state,
    )
    same(folder.results(found), expected)
