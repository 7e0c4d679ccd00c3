"""host.explain: the plan in words, and `watersmeet explain`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.errors import BackendUnavailable, ConditionError
from host.explain import as_json, as_text, duration, explain
from host.options import JoinOptions

SCHEMA = pa.schema([("id", pa.int64()), ("x", pa.int32()), ("ts", pa.timestamp("us"))])


def plan(window, on="ABS(l.x - r.x) <= 3", **more):
    return dict(explain(JoinOptions(on=on, window=window, left=SCHEMA, right=SCHEMA, **more)))


@pytest.mark.parametrize(
    ("us", "text"),
    [
        (0, "0 seconds"),
        (1, "1 microsecond"),
        (-5_000, "-5 milliseconds"),
        (1_500_000, "1,500 milliseconds"),
        (600_000_000, "10 minutes"),
        (5_400_000_000, "90 minutes"),
        (3_600_000_000, "1 hour"),
        (172_800_000_000, "2 days"),
    ],
)
def test_a_duration_is_a_whole_number_of_its_largest_unit(us, text):
    assert duration(us) == text


def test_a_row_window_tells_its_subwindows():
    lines = plan("rows 1000000,100")
    assert lines["window"] == "the last 1,000,000 left and 100 right rows"
    assert lines["subwindows"] == (
        "left: 500,000 rows, at most 3 at a time; right: 8,192 rows, at most 2 at a time"
    )
    assert lines["state"] == "the window's rows are kept; the oldest subwindow expires whole"
    assert plan("rows 1000000", backend="numpy")["subwindows"] == (
        "each side: 250,000 rows, at most 5 at a time"
    )
    assert plan("rows 100", subwindow=30)["subwindows"] == (
        "each side: 30 rows, at most 5 at a time"
    )


def test_a_time_window_tells_what_is_kept():
    lines = plan("-5 minutes..1 hour", time="ts")
    assert lines["window"] == "-5 minutes <= r.ts - l.ts <= 1 hour"
    assert lines["state"] == "without a lateness all state is kept and no tuple is late"
    assert plan("9 s", time="ts", lateness="2 minutes")["state"] == (
        "freed by the watermarks: newest time of each stream minus 2 minutes; "
        "late tuples are dropped and counted"
    )
    assert plan("9 s", time="ts", lateness="0 s", late="keep")["state"] == (
        "freed by the watermarks: newest time of each stream minus 0 seconds; "
        "late tuples are kept for the side output"
    )


def test_no_window_tells_that_everything_is_kept():
    lines = plan("none")
    assert lines["window"] == "none: every tuple meets the other stream's whole history"
    assert lines["state"] == "full history is kept"
    assert lines["subwindows"] == (
        "each side: 262,144 rows, growing with the history; none ever expires"
    )


def test_the_condition_is_split_into_its_parts():
    lines = plan("none", on="ABS(l.x - r.x) <= 3 AND l.id > 7 AND (l.id + r.id) % 2 = 0")
    assert lines["on the device"] == "ABS(l.x - r.x) <= 3"
    assert lines["one-sided filters"] == "l.id > 7"
    assert lines["residual"] == "(l.id + r.id) % 2 = 0"
    assert lines["key width"] == "32 bits"


def test_engines_batches_and_results_are_told():
    lines = plan("none")
    assert lines["workers"] == "1, which holds every subwindow"
    assert lines["backend"].endswith("the best of this version that is here (auto)")
    assert lines["index"] == (
        "bisort at first: 262,144 rows, batches of about 32,768, 0 matches a tuple: opencl merges "
        "large batches; decided again with each subwindow (auto)"
    )
    assert plan("none", backend="opencl")["index"] == "bisort, which opencl has (auto)"
    assert plan("rows 9", subwindow=9)["index"] == (
        "loop at first: 9 rows, batches of about 32,768, 0 matches a tuple: so few are looked at "
        "one by one; decided again with each subwindow (auto)"
    )
    assert lines["batches"] == "32,768 tuples of a stream at most"
    assert lines["result"] == "pairs in no particular order: l_id, l_x, l_ts, r_id, r_x, r_ts"
    lines = plan(
        "none", workers=3, backend="numpy", index="bisort", batch=100, linger=0.5,
        order="outer", select=["l.id", "r.x"],
    )
    assert lines["workers"] == "3, to which subwindows are dealt in turn (round robin)"
    assert lines["backend"] == "numpy, as asked for"
    assert lines["index"] == "bisort, as asked for"
    assert lines["batches"] == "100 tuples of a stream at most, or after 0.5 s"
    assert lines["result"] == "pairs in the order of the tuples that complete them: l_id, r_x"
    assert plan("none", order="strict", select="l.id")["result"] == (
        "pairs in order of arrival of both partners: l_id"
    )
    assert plan("none", emit="counts")["result"] == (
        "counts: one row for each tuple, in order of arrival: side, row, matches"
    )


@pytest.mark.parametrize("params", ["mode=paper,bands=2", {"mode": "paper", "bands": 2}])
def test_the_sizes_of_the_engine_are_told(params):
    lines = plan("none", backend="opencl", params=params)
    assert lines["backend"] == "opencl, as asked for, with mode=paper,bands=2"


def test_explain_refuses_what_the_join_would_refuse():
    with pytest.raises(ConditionError):
        plan("none", on="l.nothing = r.x")
    with pytest.raises(BackendUnavailable):
        plan("none", backend="numpy", device="7")


def test_text_is_aligned_and_repeated_labels_are_a_list():
    lines = [("a", "1"), ("long", "2"), ("a", "3")]
    assert as_text(lines) == "a     1\nlong  2\na     3"
    assert as_json(lines) == {"a": ["1", "3"], "long": "2"}


def test_the_command_reads_only_schemas(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("l", "r"):
        pq.write_table(SCHEMA.empty_table(), f"{name}.parquet")
    arguments = ["explain", "l.parquet", "r.parquet", "--on", "l.x < r.x", "--window", "rows 5"]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\nwindow             the last 5 left and 5 right rows\n" in out
    assert main([*arguments, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["window"] == "the last 5 left and 5 right rows"
    assert shown["on the device"] == "l.x < r.x"
    assert main([*arguments, "--select", "l.y"]) == 1
    assert capsys.readouterr().err.startswith("watersmeet: select: left has no column 'y'")
