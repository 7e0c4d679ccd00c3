"""The suites run, in quick sizes; the peers find what the join finds; the page can be read."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bench import report, rtl_cycles, suites
from bench.feed import Feed
from bench.figures import figure
from bench.incremental import BTreesPeer, SortedListPeer
from bench.limits import bytes_a_tuple
from bench.nested_loop import NestedLoopPeer
from bench.peers import (
    DuckDBBuckets,
    DuckDBPairs,
    DuckDBPeer,
    DuckDBReadyBuckets,
    PolarsPairs,
    PolarsPeer,
    PolarsStreaming,
    PolarsStreamingPairs,
    ResortPeer,
)
from bench.pictures import draw
from bench.rounds import best_in_turn
from bench.workload import BandWorkload
from sim import pnr

PEERS = [
    ResortPeer, DuckDBPeer, DuckDBBuckets, DuckDBReadyBuckets, DuckDBPairs, PolarsPeer,
    PolarsStreaming, PolarsPairs, PolarsStreamingPairs, SortedListPeer, BTreesPeer, NestedLoopPeer,
]
#: The suite of Spark starts a session of its own: test_spark_suite runs it elsewhere.
HERE = [name for name in suites.SUITES if name != "spark"]
#: Suites whose every figure has a bound.
BOUNDED = ["engines", "peers"]


# How times are taken.


def test_jobs_take_turns_and_what_prepares_them_is_not_timed(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("bench.rounds.time.perf_counter", lambda: clock[0])
    order = []

    def job(name, *seconds):
        left = list(seconds)

        def prepare():
            clock[0] += 100
            order.append(name)
            return work

        def work():
            clock[0] += left.pop(0)

        return prepare

    assert best_in_turn(job("a", 3, 1, 2), job("b", 5, 6, 4), rounds=3) == [1, 4]
    assert order == ["a", "b"] * 3
    # A short job has as much time in its turn as a long one.
    order.clear()
    short, long = job("a", 3, 1, 2, 4, 4), job("b", 5, 6)
    assert best_in_turn(short, long, rounds=2, turn_s=5) == [1, 5]
    assert order == ["a", "a", "a", "b", "a", "a", "b"]


@pytest.mark.parametrize(
    ("bound", "holds"),
    [
        ({"at_least": 2.0}, True), ({"at_least": 2.1}, False),
        ({"at_most": 2.0}, True), ({"at_most": 1.9}, False), ({}, None),
    ],
)
def test_a_figure_says_whether_it_holds(bound, holds):
    assert figure("f", 2.0, **bound, rows=7) == (
        {"name": "f", "ratio": 2.0, "rows": 7, "holds": holds} | bound
    )


def test_the_limit_falls_with_the_window_and_with_sparser_batches():
    assert bytes_a_tuple(1 << 17, 1 << 15) < bytes_a_tuple(1 << 20, 1 << 15)
    # Two subwindows of 2**22: a line of each, half of one moved for each tier of 2**17.
    assert bytes_a_tuple(1 << 23, 1 << 15) == 2 * 64 + 8 * (1 << 21) / (1 << 17) + 8
    assert bytes_a_tuple(1 << 23, 1 << 20) < bytes_a_tuple(1 << 23, 1 << 15)


# The peers.


@pytest.fixture(scope="module")
def windows():
    """Windows with equal keys and both ends of the type, and what is asked of them."""
    workload = BandWorkload(1 << 13, matches=3, seed=5)
    sides = [workload.batch(workload.rows).column("x").to_numpy().copy() for _ in range(2)]
    limits = np.iinfo(np.int32)
    for keys in sides:
        keys[:100] = limits.min
        keys[100:200] = limits.max
        keys[200:300] = keys[300:400]
    return workload, sides


def _edges(workload, rows, window):
    """A batch with keys at both ends of the type, and at both ends of bands around the window's."""
    batch, limits = workload.batch(rows), np.iinfo(np.int32)
    keys = batch.column("x").to_numpy().copy()
    keys[:2], keys[2:4] = limits.min, limits.max
    for first, offset in ((4, workload.width), (54, -workload.width)):
        moved = window[400:450].astype(np.int64) + offset
        keys[first : first + 50] = np.clip(moved, limits.min, limits.max)
    return pa.record_batch([keys, batch.column("id")], schema=batch.schema)


def _expected(batch, window, width):
    """Matches by comparing everything with everything."""
    keys = batch.column("x").to_numpy().astype(np.int64)
    return int((np.abs(keys[:, None] - window.astype(np.int64)[None, :]) <= width).sum())


@pytest.mark.opencl
@pytest.mark.parametrize("make", PEERS, ids=lambda make: make.__name__)
def test_a_peer_finds_every_match(windows, make):
    workload, (left_window, right_window) = windows
    left, right = _edges(workload, 203, right_window), _edges(workload, 190, left_window)
    in_right = _expected(left, right_window, workload.width)
    in_left = _expected(right, left_window, workload.width)
    assert in_right > 400 and in_left > 400
    peer = make(workload, [left_window, right_window])
    try:
        assert peer.probe(left) == in_right
        assert peer.push(left, right) == in_right + in_left
    finally:
        peer.close()


@pytest.mark.parametrize("make", [SortedListPeer, BTreesPeer, ResortPeer])
def test_a_peer_that_is_kept_up_to_date_lets_the_oldest_go(windows, make):
    workload, (left_window, right_window) = windows
    first, second = workload.batch(300), workload.batch(300)
    peer = make(workload, [left_window, right_window])
    try:
        peer.push(first, second)
        moved = np.concatenate([right_window, second.column("x").to_numpy()])[300:]
        assert peer.probe(first) == _expected(first, moved, workload.width)
    finally:
        peer.close()


@pytest.mark.opencl
def test_the_nested_loop_wants_whole_tiles():
    with pytest.raises(ValueError, match=r"^windows must be multiples of 8192 rows$"):
        NestedLoopPeer(BandWorkload(100), [np.zeros(100, np.int32)] * 2)


@pytest.mark.opencl
def test_a_feed_probes_the_window_that_it_names():
    workload = BandWorkload(1 << 13, matches=5)
    feed = Feed(workload, 1 << 10, backend="opencl", emit="counts")
    left = workload.batch(200)
    assert feed.probe(left) == _expected(left, feed.windows[1], workload.width)
    feed.round()()
    assert feed.tuples == 2 * feed.pushes << 10
    assert feed.found == pytest.approx(5 * feed.tuples, rel=0.2)
    feed.close()


@pytest.mark.opencl
@pytest.mark.parametrize("subwindow", [None, 1 << 13, 1 << 15])
def test_a_short_round_finds_the_newest_subwindow_half_full(subwindow):
    feed = Feed(
        BandWorkload(1 << 15), 1 << 9, pushes=4, backend="opencl", emit="counts",
        subwindow=subwindow,
    )
    chain = feed.join.manager.chains[0]
    before = chain.newest.rows
    feed.round()()
    assert (before + chain.newest.rows) // 2 == chain.rows // 2
    feed.close()


# The suites.


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Every suite without Spark, run in its quick sizes."""
    folder = tmp_path_factory.mktemp("results")
    told = []
    for name in HERE:
        assert suites.run(name, folder, told.append, quick=True) == folder / f"{name}.json"
    assert len(told) > 20
    return folder


def _read(folder, name):
    return json.loads((folder / f"{name}.json").read_text())


def _figures(found):
    if isinstance(found, dict):
        if "ratio" in found:
            yield found
        found = list(found.values())
    if isinstance(found, list):
        for one in found:
            yield from _figures(one)


@pytest.mark.slow
@pytest.mark.opencl
@pytest.mark.parametrize("name", BOUNDED)
def test_a_suite_gives_figures_with_their_bounds(results, name):
    kept = _read(results, name)
    assert kept["suite"] == name and kept["result"]["quick"] is True
    assert {"processor", "cores", "memory_gib", "device", "packages"} <= kept["machine"].keys()
    assert kept["result"]["threads"] == 2 and kept["result"]["copy_bytes_per_s"] > 0
    figures = list(_figures(kept["result"]))
    assert len(figures) >= 10
    for one in figures:
        assert one["ratio"] > 0 and isinstance(one["holds"], bool)
        assert ("at_least" in one) != ("at_most" in one)


@pytest.mark.slow
@pytest.mark.opencl
def test_the_peers_of_the_suite_agree_with_the_join(results):
    found = _read(results, "peers")["result"]["settings"]
    assert [len(setting["figures"]) for setting in found] == [3, 8, 3]
    for setting in found:
        assert setting["limit_tuples_per_s"] > 0
        for one in setting["figures"]:
            assert one["agrees"] is True, one["name"]
            assert one["ratio"] == one["tuples_per_s"] / one["peer_tuples_per_s"]
            whole = one["peer_measured_tuples"] == 2 * setting["batch"]
            assert one["peer_scaled"] is not whole
    scaled = [one["name"] for setting in found for one in setting["figures"] if one["peer_scaled"]]
    assert scaled == ["nested loop, compiled"]


@pytest.mark.slow
@pytest.mark.opencl
def test_the_engines_suite_has_every_part(results):
    found = _read(results, "engines")["result"]
    assert all(one["agrees"] is True for one in found["paper"])
    # The join's own choice, and the paper's: all of the window in one.
    assert [one["rows"] // one["subwindow"] for one in found["paper"]] == [2, 1]
    assert [one["how"] for one in found["insertion"]] == ["at once", "by the tier"] * 2
    assert len(found["probe"]) == len(found["overhead"]) == 2
    assert [one["name"].split()[0] for one in found["matches"]] == ["count", "sum"]
    for one in found["matches"]:
        assert one["matches"] == pytest.approx(100, rel=0.1)
    points = found["growth"]["points"]
    assert len(points) == 3
    assert all(point["limit_tuples_per_s"] > point["tuples_per_s"] > 0 for point in points)


@pytest.mark.slow
@pytest.mark.sim
def test_the_rtl_suite_has_every_part(results):
    found = _read(results, "rtl")["result"]
    assert found["figures"][0]["name"] == "merger: tuples a cycle" and found["figures"][0]["holds"]
    assert {"merger: MHz", "wide_merger_4: MHz"} <= {one["name"] for one in found["figures"]}
    assert found["library"]["cycles"] > 100 and found["library"]["holds"] is None


def test_insertion_designs_are_compared_by_what_their_clocks_make_of_their_cycles(
    tmp_path, monkeypatch
):
    names = rtl_cycles.DESIGNS.values()
    assert {f"{name}_block" for name in names} <= rtl_cycles.SUITE.keys()
    assert set(names) <= pnr.DESIGNS.keys()
    clocks = dict(zip(names, (140.0, 70.0, 110.0), strict=False))  # the last one is not routed
    routed = [{"design": name, "luts": 9, "mhz": mhz} for name, mhz in clocks.items()]
    monkeypatch.setattr(rtl_cycles, "ROUTED", tmp_path / "pnr.json")
    (tmp_path / "pnr.json").write_text(json.dumps({"results": routed}))
    kinds = {"uniform": {"tuples_a_cycle": 4.0}, "equal": {"tuples_a_cycle": 3.5}}
    table = rtl_cycles.side_by_side({f"{name}_block": kinds for name in names})
    assert [one["tuples_a_cycle"] for one in table.values()] == [3.5] * 4
    rates = [one.get("tuples_a_second") for one in table.values()]
    assert rates == [490_000_000, 245_000_000, 385_000_000, None]


@pytest.mark.slow
@pytest.mark.opencl
def test_the_foundations_suite_has_every_part(results):
    found = _read(results, "foundation")["result"]
    assert found["quick"] is True and len(found["overhead"]) == 2
    for one in (*found["resort"], found["duckdb"]):
        assert one["ratio"] == one["peer_seconds"] / one["seconds"] > 0
    assert found["memory"]["peak_bytes"] > found["memory"]["live_bytes"] == 2 * 8 * (1 << 17)


# The page.


class _Page(HTMLParser):
    """Tags that are open, text, and whatever is fetched from elsewhere."""

    EMPTY = ("meta", "br", "hr", "img", "link", "input")

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text, self.fetched = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.fetched += [
            value for name, value in attributes
            if name in ("src", "href", "xlink:href") and not value.startswith("#")
        ]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def _parsed(text):
    page = _Page()
    page.feed(text)
    page.close()
    assert page.open == []
    return page


@pytest.mark.slow
@pytest.mark.opencl
def test_the_page_shows_every_suite_and_needs_nothing_else(results, capsys):
    assert report.main(["--results", str(results)]) == 0
    assert capsys.readouterr().out == f"written to {results / 'report.html'}\n"
    page = _parsed((results / "report.html").read_text())
    text = " ".join(" ".join(page.text).split())
    assert page.seen.count("section") == page.seen.count("figure") == len(HERE)
    assert "script" not in page.seen and "link" not in page.seen and page.fetched == []
    for words in ("BTrees, incremental", "scaled from", "same matches", "paper-faithful mode",
                  "quick sizes", "OpenCL device", "memory limit"):
        assert words in text, words
    assert "missed" not in text and text.count("quick run") == len(HERE)


def test_a_result_of_another_suite_is_shown_by_its_ratios(tmp_path):
    kept = {
        "suite": "other <one>", "machine": suites.machine(),
        "result": {
            "a": [{"rows": 1 << 20, "seconds": 0.5, "peer_seconds": 2.0, "ratio": 4.0}],
            "b": {"name": "fast", "ratio": 1234.5, "at_least": 1000, "holds": True},
            "c": {"name": "slow", "ratio": 7.0, "at_most": 6, "holds": False},
            "batch": 7,
        },
    }
    (tmp_path / "other.json").write_text(json.dumps(kept))
    page = _parsed(report.render(tmp_path))
    text = " ".join(" ".join(page.text).split())
    assert "other <one>" in text
    assert re.search(r"1,048,576 rows a side 500 ms 2 s 4 ", text)
    assert re.search(r"fast 1,234 ≥ 1000 holds", text)
    assert re.search(r"slow 7 ≤ 6 missed", text)
    assert "1 of 2" in text


def test_without_results_there_is_no_page(tmp_path, capsys):
    (tmp_path / "pnr.json").write_text('{"device": "no suite", "results": []}')
    assert report.main(["--results", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"report: there are no results in {tmp_path}: run make bench first\n"
    )
    assert [path.name for path in Path(tmp_path).iterdir()] == ["pnr.json"]


def test_the_numpy_backends_suite_has_a_picture_and_a_table(tmp_path):
    one = {"rows": 1 << 20, "seconds": 0.1, "peer_seconds": 1.0, "tuples_per_s": 6e5, "ratio": 10.0}
    result = {
        "batch": 1 << 15, "resort": [one, one], "duckdb": one,
        "overhead": [{"rows": 1 << 20, "push_s": 0.2, "engine_s": 0.1, "overhead_ratio": 1.0}],
        "memory": {"rows": 1 << 23, "live_bytes": 1 << 27, "peak_bytes": 1 << 28, "ratio": 2.0},
    }
    kept = {"suite": "foundation", "machine": suites.machine(), "result": result}
    (tmp_path / "foundation.json").write_text(json.dumps(kept))
    draw("foundation", result, tmp_path / "foundation.svg")
    page = _parsed(report.render(tmp_path))
    assert page.seen.count("figure") == 1
    text = " ".join(" ".join(page.text).split())
    group = "Beside re-sorting the window for each batch"
    assert f"{group} 1,048,576 rows a side 100 ms 1 s 10 " in text
    assert "none asked" in text


@pytest.mark.slow
@pytest.mark.opencl
def test_two_predicates_find_what_duckdb_and_the_paper_find(results):
    found = list(_figures(_read(results, "structures")["result"]["two_predicates"]))
    assert len(found) == 7 and all(one["agrees"] is True for one in found)
    assert all("at_least" in one and one["holds"] is not None for one in found)
