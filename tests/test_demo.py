"""make demo: it shows what it promises, and a wrong answer does not pass."""

import re

import pyarrow.parquet as pq
import pytest

from bench import demo


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "FOLDER", tmp_path / "demo")
    return tmp_path / "demo"


def test_the_demo_shows_the_plan_the_pairs_and_the_verdict(folder, capsys):
    assert demo.main() == 0
    out, err = capsys.readouterr()
    for shown in (
        "nycflights13, CC0",
        "$ watersmeet explain jfk.parquet lga.parquet --on ",
        "\non the device      ABS(l.delay - r.delay) <= 15\n",
        "$ watersmeet join jfk.parquet lga.parquet --on ",
        "\nl_departed           l_flight  l_dest  l_delay  r_departed           r_flight",
        "08 March (",
    ):
        assert shown in out
    verdict = out.splitlines()[-1]
    pairs = re.fullmatch(
        r"Verdict: RIGHT\. DuckDB finds the same ([\d,]+) pairs, no more and no fewer\.", verdict
    )
    assert pairs and f" {pairs[1]} pairs out, 0 late, " in err
    assert sorted(path.name for path in folder.iterdir()) == [
        "jfk.parquet", "lga.parquet", "pairs.parquet",
    ]


def test_a_pair_too_few_or_too_many_is_seen(folder, capsys, monkeypatch):
    def wrongly(arguments):
        code = right_way(arguments)
        if arguments[0] == "join":
            pairs = pq.read_table("pairs.parquet")
            # One is lost, another comes twice: as many as before.
            rows = [0, *range(pairs.num_rows - 1)]
            pq.write_table(pairs.take(rows), "pairs.parquet")
        return code

    right_way = demo.watersmeet
    monkeypatch.setattr(demo, "watersmeet", wrongly)
    assert demo.main() == 1
    assert re.fullmatch(
        r"Verdict: WRONG\. Of DuckDB's [\d,]+ pairs 1 are missing, and 1 others were found\.",
        capsys.readouterr().out.splitlines()[-1],
    )


def test_a_join_that_fails_ends_the_demo(folder, capsys, monkeypatch):
    monkeypatch.setattr(demo, "JOIN", [*demo.JOIN, "--select", "l.nothing"])
    assert demo.main() == 1
    assert capsys.readouterr().err.startswith("watersmeet: select: left has no column 'nothing'")
