"""The suite `spark` in its quick size: every figure is there, with a bound and a picture."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GROUPS = {"buckets": 2, "inequalities": 2, "empty": 2, "latency": 2, "batch": 3}


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.opencl
def test_the_spark_suite_has_every_figure(tmp_path):
    command = [sys.executable, "-m", "host", "bench", "spark", "--quick", "--results", tmp_path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "spark.json").read_text())["result"]
    assert {name: len(found[name]) for name in GROUPS} == GROUPS
    for one in [*(one for name in GROUPS for one in found[name]), found["recovery"]]:
        assert one["ratio"] > 0 and isinstance(one["holds"], bool), one
        assert ("at_least" in one) != ("at_most" in one)
    assert len(found["recovery"]["points"]) == 2
    assert (tmp_path / "spark.svg").stat().st_size > 1000
