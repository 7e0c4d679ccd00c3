"""The command line: what it prints where, its exit codes, its errors word for word."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from host.__main__ import main
from host.commands import devices, selftest
from host.files import chunks, open_source
from hw.opencl.devices import Device, DeviceError, list_devices
from hw.spec import reference
from hw.spec.tuples import Side
from hw.spec.windows import parse_window
from tests.helpers import same_pairs

BAND = "l.x BETWEEN r.x - 5 AND r.x + 5"
SUMMARY = re.compile(
    r"[\d,]+ tuples in \([\d,]+ left, [\d,]+ right\), [\d,]+ pairs out, [\d,]+ late, "
    r"[\d.]+ s, [\d,]+ tuples/s\n"
)
TABLE_ROWS = (230, 190)


def table(rows, seed):
    rng = np.random.default_rng(seed)
    times = np.arange(rows) * 1_000_000 + rng.integers(0, 9, rows) * 1_000_000
    return pa.table(
        {
            "id": np.arange(rows),
            "x": rng.integers(0, 300, rows),
            "seen": rng.permutation(rows),
            "ts": pa.array(times).cast(pa.timestamp("us")),
        }
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """left.parquet and right.parquet in the current directory, in odd row groups."""
    monkeypatch.chdir(tmp_path)
    tables = [table(rows, seed) for seed, rows in enumerate(TABLE_ROWS)]
    for name, rows, group in zip(("left", "right"), tables, (17, 64), strict=True):
        pq.write_table(rows, f"{name}.parquet", row_group_size=group)
    return tables


def join(*more, on=BAND, window="rows 40,30", command="join"):
    return main([command, "left.parquet", "right.parquet", "--on", on, "--window", window, *more])


def ids(path):
    result = pa.concat_tables([open_source(path).schema.empty_table(), *read(path)])
    return list(zip(result["l_id"].to_pylist(), result["r_id"].to_pylist(), strict=True))


def read(path):
    return list(chunks(open_source(path), 1 << 16))


def expected(tables, window, arrival=None, lateness_us=None):
    """(l.id, r.id) of BAND by the reference; `arrival` names the column of the order."""
    if arrival:
        tables = [rows.take(np.argsort(rows[arrival].to_numpy(), kind="stable")) for rows in tables]
        places = sorted(
            (value, side, row)
            for side in Side
            for row, value in enumerate(tables[side][arrival].to_pylist())
        )
        order = [(side, row) for _, side, row in places]
    else:
        order = reference.interleaved(*(rows.num_rows for rows in tables))
    keys = [rows["x"].to_pylist() for rows in tables]
    times = tuple(rows["ts"].cast(pa.int64()).to_pylist() for rows in tables)
    found = reference.pairs(
        order, lambda left, right: abs(keys[0][left] - keys[1][right]) <= 5,
        parse_window(window), times, lateness_us,
    )
    names = [rows["id"].to_pylist() for rows in tables]
    return [(names[0][left], names[1][right]) for left, right in found]


@pytest.mark.parametrize("batch", [[], ["--batch", "1"], ["--batch", "50", "--workers", "3"]])
@pytest.mark.parametrize("window", ["rows 40,30", "rows 1", "none", "-5s..9s", "3 seconds"])
def test_joins_have_the_pairs_of_the_law(files, capsys, window, batch):
    timed = ["--time", "ts"] if "s." in window or "seconds" in window else []
    assert join("--output", "o.parquet", *timed, *batch, window=window) == 0
    pairs = expected(files, window)
    same_pairs(ids("o.parquet"), pairs)
    out, err = capsys.readouterr()
    assert out == ""
    assert SUMMARY.fullmatch(err)
    assert err.startswith(f"420 tuples in (230 left, 190 right), {len(pairs):,} pairs out, 0 late,")


@pytest.mark.parametrize("endings", [("csv", "arrow"), ("arrow", "csv")])
def test_formats_can_be_mixed(files, endings):
    for rows, name, ending in zip(files, ("l", "r"), endings, strict=True):
        if ending == "csv":
            csv.write_csv(rows, f"{name}.csv")
        else:
            with pa.ipc.new_stream(f"{name}.arrow", rows.schema) as writer:
                writer.write_table(rows, 13)
    paths = [f"l.{endings[0]}", f"r.{endings[1]}"]
    assert main(["join", *paths, "--on", BAND, "--window", "rows 9", "--output", "o.csv"]) == 0
    same_pairs(ids("o.csv"), expected(files, "rows 9"))


@pytest.mark.parametrize("column", ["seen", "ts", "id"])
@pytest.mark.parametrize("sizes", [TABLE_ROWS, (230, 3), (0, 190)])
def test_arrival_columns_give_the_order_whether_files_are_in_it_or_not(
    files, monkeypatch, column, sizes
):
    # Pieces of a few rows, so that the files are read in turns.
    monkeypatch.setattr("host.commands.join._rows_at_once", lambda batch: 16)
    tables = [rows.slice(0, size) for rows, size in zip(files, sizes, strict=True)]
    for rows, name in zip(tables, ("left", "right"), strict=True):
        pq.write_table(rows, f"{name}.parquet")
    assert join("--arrival", column, "--output", "o.parquet", window="rows 20,25") == 0
    same_pairs(ids("o.parquet"), expected(tables, "rows 20,25", arrival=column))


def test_rows_are_aligned_over_many_pieces(files, monkeypatch):
    monkeypatch.setattr("host.commands.join._rows_at_once", lambda batch: 16)
    assert join("--output", "o.parquet", window="rows 1") == 0
    same_pairs(ids("o.parquet"), expected(files, "rows 1"))


def test_counts_are_by_row_in_order_of_arrival(files):
    assert join("--emit", "counts", "--output", "o.csv", window="rows 20") == 0
    (counts,) = read("o.csv")
    order = reference.interleaved(*TABLE_ROWS)
    found = reference.match_counts(order, expected(files, "rows 20"))
    assert [tuple(row.values()) for row in counts.to_pylist()] == found


def test_late_rows_go_to_their_file_and_are_counted(files, capsys):
    more = ["--time", "ts", "--lateness", "2 seconds", "--late-output", "late.parquet"]
    assert join("--output", "o.parquet", *more, window="9 seconds") == 0
    lateness = 2_000_000
    same_pairs(ids("o.parquet"), expected(files, "9 seconds", lateness_us=lateness))
    times = tuple(rows["ts"].cast(pa.int64()).to_pylist() for rows in files)
    late = reference.late(reference.interleaved(*TABLE_ROWS), times, lateness)
    (rows,) = read("late.parquet")
    names = [f"{letter}_{name}" for letter in "lr" for name in ("id", "x", "seen", "ts")]
    assert rows.schema.names == ["side", "row", *names]
    assert {(row["side"], row["row"]) for row in rows.to_pylist()} == {
        (side.letter, row) for side, row in late
    }
    for row in rows.to_pylist():
        other = "r" if row["side"] == "l" else "l"
        assert row[f"{row['side']}_id"] == row["row"]
        assert row[f"{other}_id"] is None
    assert f" {len(late)} late, " in capsys.readouterr().err


def test_select_and_strict_order(files):
    assert join("--select", "r.id,l.id", "--order", "strict", "--output", "o.arrow") == 0
    assert open_source("o.arrow").schema.names == ["r_id", "l_id"]
    assert ids("o.arrow") == expected(files, "rows 40,30")


def test_without_output_the_first_rows_are_plain_text_in_a_pipe(files, capsys):
    assert join("--select", "l.id,l.ts,r.id", "--order", "strict") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "l_id  l_ts                 r_id"
    assert len(lines) == 22
    pairs = expected(files, "rows 40,30")
    assert lines[-1] == f"... and {len(pairs) - 20:,} more; --output FILE keeps them all"
    assert [tuple(map(int, line.split()[:: 3])) for line in lines[1:21]] == pairs[:20]
    assert lines[1].split()[1:3] == str(files[0]["ts"][pairs[0][0]].as_py()).split()
    assert SUMMARY.fullmatch(err)


def test_a_terminal_gets_a_drawn_table_and_a_progress_bar(files, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out, err = Terminal(), Terminal()
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        assert join("--select", "l.id,r.id", window="rows 2") == 0
    assert "─" in out.getvalue()
    assert "joining" in err.getvalue()
    assert err.getvalue().endswith(" tuples/s\n")


@pytest.mark.parametrize("sizes", [(0, 190), (230, 0), (0, 0)])
@pytest.mark.parametrize("window", ["rows 10", "none", "5 seconds"])
def test_files_without_rows_have_no_pairs(files, capsys, sizes, window):
    for rows, name, size in zip(files, ("left", "right"), sizes, strict=True):
        pq.write_table(rows.slice(0, size), f"{name}.parquet")
    assert join("--time", "ts", "--select", "l.id,r.x", window=window) == 0
    out, err = capsys.readouterr()
    assert out == "l_id  r_x\n"
    assert " 0 pairs out, " in err


def test_a_csv_without_rows_has_no_pairs(files, capsys):
    with open("empty.csv", "w") as file:
        file.write("id,x\n")
    arguments = ["join", "left.parquet", "empty.csv", "--on", BAND, "--window", "none"]
    assert main([*arguments, "--select", "l.id"]) == 0
    assert capsys.readouterr().out == "l_id\n"


def test_output_replaces_what_was_there(files):
    for window in ("rows 1", "rows 40"):
        assert join("--output", "o.parquet", window=window) == 0
        same_pairs(ids("o.parquet"), expected(files, window))
    assert sorted(os.listdir()) == ["left.parquet", "o.parquet", "right.parquet"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--batch", "0"], "argument --batch: '0' is not a whole number from 1 on"),
        (["--workers", "two"], "argument --workers: 'two' is not a whole number from 1 on"),
        (["--subwindow", "-1"], "argument --subwindow: '-1' is not a whole number from 1 on"),
        (["--linger", "-1"], "argument --linger: '-1' is not a number of seconds from 0 on"),
        (["--linger", "inf"], "argument --linger: 'inf' is not a number of seconds from 0 on"),
        (
            ["--order", "asc"],
            "argument --order: invalid choice: 'asc' (choose from 'none', 'outer', 'strict')",
        ),
        (
            ["--window", "soon"],
            "argument --window: 'soon' is not a duration: write it like '10 minutes'",
        ),
        (
            ["--window", "rows x"],
            "argument --window: 'rows x' is not a row window: write 'rows 1000' or "
            "'rows 1000,500'",
        ),
        (
            ["--window", "5 s"],
            "the window '5 s' is of time: add --time COL[,COL]",
        ),
        (
            ["--lateness", "5 s"],
            "--lateness goes with a time window, and the window is 'rows 40,30'",
        ),
        (
            ["--window", "9 s", "--time", "ts", "--lateness", "-5s"],
            "--lateness '-5s' is negative",
        ),
        (["--late", "keep"], "--late keep needs --late-output FILE"),
        (
            ["--late", "drop", "--late-output", "late.csv"],
            "--late drop leaves nothing for --late-output",
        ),
        (["--wat"], "unrecognized arguments: --wat"),
    ],
)
def test_bad_use_is_one_line_and_exit_code_2(files, capsys, more, sentence):
    assert join(*more) == 2
    help_of = "watersmeet" if "unrecognized" in sentence else "watersmeet join"
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"watersmeet: {sentence} ({help_of} --help shows how)\n")


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        ([], "the following arguments are required: COMMAND (watersmeet --help shows how)"),
        (
            ["join", "a.csv"],
            "the following arguments are required: RIGHT, --on, --window "
            "(watersmeet join --help shows how)",
        ),
        (
            ["fly"],
            "argument COMMAND: invalid choice: 'fly' (choose from 'join', 'explain', 'devices', "
            "'selftest', 'bench', 'flash', 'serve') (watersmeet --help shows how)",
        ),
    ],
)
def test_a_command_that_is_not_whole_is_bad_use(capsys, argv, sentence):
    assert main(argv) == 2
    assert capsys.readouterr().err == f"watersmeet: {sentence}\n"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--output", "o.xls"], "the ending of 'o.xls' tells no format: use .parquet, .pq, .arrow, "
         ".ipc, .feather, .csv or .csv.gz"),
        (["--output", ""], "the ending of '' tells no format: use .parquet, .pq, .arrow, "
         ".ipc, .feather, .csv or .csv.gz"),
        (["--output", "no/o.csv"],
         "--output 'no/o.csv' is in a directory that does not exist: make it first"),
        (["--output", "./left.parquet"],
         "--output './left.parquet' is the same file as LEFT: choose another name"),
        (["--output", "right.parquet"],
         "--output 'right.parquet' is the same file as RIGHT: choose another name"),
        (["--output", "o.csv", "--late-output", "o.csv"],
         "--late-output 'o.csv' is the same file as --output: choose another name"),
        (["--select", "l.idd"], "select: left has no column 'idd', did you mean 'id'?"),
        (["--time", "t,ts"], "time: left has no column 't', did you mean 'ts'?"),
        (["--backend", "numpy", "--device", "7"],
         "backend numpy has no devices: leave out '7'"),
        (["--backend", "numpy", "--params", "mergers=2"],
         "the sizes of backend numpy are its own: leave out 'mergers=2'"),
        (["--params", "mode=papers"],
         "params: mode must be tiered or paper, not 'papers'"),
        (["--params", "key_bits=64"],
         "params: an engine has no 'key_bits': choose of partitions, insert_buffer, bands, "
         "mergers, lanes, probers, cores, mode"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(files, capsys, more, sentence):
    before = sorted(os.listdir())
    assert join("--output", "o.csv", *more) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"watersmeet: {sentence}\n")
    assert sorted(os.listdir()) == before


def test_a_condition_that_cannot_be_run_is_one_line(files, capsys):
    for on in ("l.x = r.nothing", "l.x ==", "l.x = 'a", "x < 3", "l.ts < r.x", "SELECT 1"):
        assert join("--output", "o.csv", on=on) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert re.fullmatch(r"watersmeet: [^\n]+\n", err)
        assert "this should not happen" not in err
    assert sorted(os.listdir()) == ["left.parquet", "right.parquet"]


def test_a_missing_file_is_one_line(capsys):
    assert main(["join", "a.csv", "b.csv", "--on", BAND, "--window", "none"]) == 1
    assert capsys.readouterr().err == "watersmeet: there is no file 'a.csv': check its name\n"


def test_an_input_that_breaks_in_the_middle_leaves_nothing(files, capsys):
    schema = files[0].schema
    with pa.ipc.new_stream("left.arrow", schema) as writer:
        writer.write_table(files[0], 20)
    with open("left.arrow", "rb+") as file:
        file.truncate(os.path.getsize("left.arrow") // 2)
    arguments = ["join", "left.arrow", "right.parquet", "--on", BAND, "--window", "none"]
    assert main([*arguments, "--output", "o.parquet"]) == 1
    err = capsys.readouterr().err
    assert re.fullmatch(
        r"watersmeet: 'left.arrow' cannot be read as Arrow IPC \(.*\): "
        r"it is damaged or of another format\n",
        err,
    )
    assert sorted(os.listdir()) == ["left.arrow", "left.parquet", "right.parquet"]


def raising(error):
    def run(arguments):
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (KeyboardInterrupt(), 130, "watersmeet: interrupted, nothing was written\n"),
        (
            MemoryError(),
            1,
            "watersmeet: there is not enough memory: choose a smaller window or --batch\n",
        ),
        (
            TypeError("a\nb"),
            1,
            "watersmeet: this should not happen (TypeError: a b): please report it with what "
            "WATERSMEET_TRACEBACK=1 shows\n",
        ),
    ],
)
def test_what_nobody_foresaw_is_one_line_too(capsys, monkeypatch, error, code, line):
    monkeypatch.setattr(devices, "run", raising(error))
    assert main(["devices"]) == code
    assert capsys.readouterr().err == line


def test_a_traceback_shows_on_demand(monkeypatch):
    monkeypatch.setattr(devices, "run", raising(TypeError("why")))
    monkeypatch.setenv("WATERSMEET_TRACEBACK", "1")
    with pytest.raises(TypeError, match="why"):
        main(["devices"])


def test_help_names_every_option_and_command(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for command in ("join", "explain", "devices", "selftest", "bench", "flash", "serve"):
        assert re.search(rf"(?m)^ +{command} ", shown)
    assert main(["join", "--help"]) == 0
    shown = capsys.readouterr().out
    for option in (
        "on", "window", "time", "lateness", "arrival", "backend", "device", "index", "batch",
        "workers", "order", "emit", "select", "output", "linger", "late", "late-output",
        "subwindow",
    ):
        assert f"--{option} " in shown


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"watersmeet \d+\.\d+\.\d+\n", capsys.readouterr().out)


TITLES = ["BACKEND", "DEVICE", "NAME", "KIND", "UNITS", "MEMORY", "BANDWIDTH", "DRIVER"]


def listed(capsys):
    """The lines of `watersmeet devices` in cells; no cell has two spaces in a row."""
    assert main(["devices"]) == 0
    titles, *lines = capsys.readouterr().out.splitlines()
    assert titles.split() == TITLES
    return [re.split(r" {2,}", line) for line in lines]


@pytest.mark.opencl
def test_devices_are_listed_with_what_they_are_and_how_fast_their_memory_is(capsys):
    numpy, *opencl = listed(capsys)
    assert numpy[:2] == ["numpy", "-"] and numpy[-1].endswith("; always here")
    for line, device in zip(opencl, list_devices(), strict=True):
        assert line[:4] == ["opencl", str(device.number), device.name, device.kind]
        assert line[4:6] == [str(device.compute_units), f"{device.memory_bytes / 2**30:.1f} GiB"]
        assert re.fullmatch(r"\d+\.\d GB/s", line[6]) and float(line[6][:-5]) > 0
        assert line[7].startswith(device.platform)
        assert line[7].endswith(f"driver {device.driver}")


def test_devices_of_one_name_are_told_apart_and_a_failure_has_its_cure(capsys, monkeypatch):
    def seen(number, version, extensions=""):
        return Device(
            number, (number, 0), "Portable", version, "cpu-one", "3", "cpu", 1 << 30, 2,
            SimpleNamespace(extensions=extensions),
        )

    def measured(device):
        if device.number == 1:
            raise DeviceError(f"the OpenCL device {device} fails (out of order): choose another")
        return 12.34e9

    found = [seen(0, "PoCL 3.0"), seen(1, "PoCL 3.1  Debian"), seen(2, "1", "cl_intel_channels")]
    monkeypatch.setattr(devices, "list_devices", lambda: found)
    monkeypatch.setattr(devices, "measure_bandwidth", measured)
    about = ["2", "1.0 GiB"]
    assert listed(capsys)[1:] == [
        ["opencl", "0", "cpu-one", "cpu", *about, "12.3 GB/s", "Portable, PoCL 3.0, driver 3"],
        ["opencl", "1", "cpu-one", "cpu", *about, "fails",
         "the OpenCL device 1 = cpu-one (Portable, PoCL 3.1) fails (out of order): choose another"],
        ["opencl", "2", "cpu-one", "cpu, FPGA form", *about, "12.3 GB/s",
         "Portable, 1, driver 3"],
    ]
    monkeypatch.setattr(devices, "list_devices", list)
    (line,) = listed(capsys)[1:]
    assert line[-1] == (
        'there is no OpenCL device: install one with pip install "pyopencl[pocl]", or set '
        "OCL_ICD_VENDORS to the directory of your driver's .icd file"
    )


def test_selftest_passes_every_check(capsys):
    assert main(["selftest", "--backend", "numpy", "--workers", "3"]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == len(selftest.CHECKS) * len(selftest.WINDOWS)
    assert {line[:8] for line in lines} == {"ok      "}
    assert last == f"{len(lines)} of {len(lines)} checks passed"


def test_selftest_fails_when_an_answer_is_wrong(capsys, monkeypatch):
    wrong = selftest.Check("l.a = r.a", lambda p, q: p["a"] <= q["a"])
    refused = selftest.Check("l.a = r.b", lambda p, q: p["a"] == q["a"])
    monkeypatch.setattr(selftest, "CHECKS", (selftest.CHECKS[0], wrong, refused))
    monkeypatch.setattr(selftest, "WINDOWS", {"none": selftest.WINDOWS["none"]})
    assert main(["selftest"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok ")
    assert lines[1].startswith("FAILED  none")
    assert re.fullmatch(r" +[\d,]+ pairs instead of [\d,]+, or other ones", lines[2])
    assert lines[3].startswith("FAILED  none")
    assert lines[-1] == "1 of 3 checks passed"


def test_bench_lists_runs_and_keeps_suites(tmp_path, capsys, monkeypatch):
    from bench import suites

    def small(progress, quick):
        progress("half way")
        return {"ratio": 3.0 if quick else 2.0}

    small.about = "a small one"
    monkeypatch.setattr(suites, "SUITES", {"small": small})
    assert main(["bench"]) == 0
    assert capsys.readouterr().out == "small  a small one\n"
    assert main(["bench", "all", "--results", str(tmp_path / "r")]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"ratio": 2.0}
    assert err == f"half way\nsmall: written to {tmp_path}/r/small.json\n"
    kept = json.loads((tmp_path / "r" / "small.json").read_text())
    assert kept["suite"] == "small" and kept["result"] == {"ratio": 2.0}
    assert {"processor", "cores", "memory_gib", "packages"} <= kept["machine"].keys()
    monkeypatch.setattr(suites, "QUICK_RESULTS", tmp_path / "quick")
    assert main(["bench", "small", "--quick"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == {"ratio": 3.0}
    assert err == f"half way\nsmall: written to {tmp_path}/quick/small.json\n"
    assert main(["bench", "big"]) == 1
    assert capsys.readouterr().err == (
        "watersmeet: there is no suite 'big': choose all or small\n"
    )
    (tmp_path / "file").write_text("")
    assert main(["bench", "small", "--results", str(tmp_path / "file" / "r")]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"watersmeet: the results cannot be written (Not a directory: '{tmp_path}/file/r'): "
        "choose another directory with --results"
    )


def test_bench_on_a_terminal_shows_steps_with_their_times_and_figures(
    tmp_path, capsys, monkeypatch
):
    from bench import suites

    def small(progress, quick):
        progress("first [step]")
        progress("second step")
        kept = {"name": "kept", "ratio": 2.0, "at_least": 1.5, "holds": True}
        missed = {"name": "missed", "ratio": 2.0, "at_most": 1.5, "holds": False}
        return {"figures": [kept, missed], "free": {"name": "free", "ratio": 1234.0}}

    monkeypatch.setattr(suites, "SUITES", {"small": small})
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(["bench", "small", "--results", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines == [": kept 2 ≥ 1.5 holds", ": missed 2 ≤ 1.5 MISSED", "free: free 1,234"]
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", err)
    assert "small (1 of 1)" in plain
    assert re.search(r"0\.\d s  first \[step\]\s", plain)
    assert re.search(r"0\.\d s  second step\s", plain)


def test_bench_says_what_is_not_installed(capsys, monkeypatch):
    from bench import suites

    def needs(progress, quick):
        raise ModuleNotFoundError("No module named 'duckdb'", name="duckdb")

    monkeypatch.setattr(suites, "SUITES", {"small": needs})
    assert main(["bench", "small"]) == 1
    assert capsys.readouterr().err == (
        "watersmeet: the benchmarks need duckdb, which is not installed: "
        'install it with pip install "watersmeet[bench]"\n'
    )


# What only a process of its own can show.

WATERSMEET = os.path.join(os.path.dirname(sys.executable), "watersmeet")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_program_and_the_module_are_the_same(files):
    more = ["join", "left.parquet", "right.parquet", "--on", BAND, "--window", "rows 9"]
    runs = [run(WATERSMEET, *more), run(sys.executable, "-m", "host", *more)]
    assert [r.returncode for r in runs] == [0, 0]
    assert runs[0].stdout == runs[1].stdout != ""
    for r in runs:
        assert SUMMARY.fullmatch(r.stderr)  # and no progress bar
    assert run(WATERSMEET, "join").returncode == 2
    bad = run(WATERSMEET, "join", "none.csv", *more[2:])
    assert (bad.returncode, bad.stdout) == (1, "")
    assert bad.stderr == "watersmeet: there is no file 'none.csv': check its name\n"


def test_a_reader_who_leaves_early_causes_no_noise(files):
    reader, writer = os.pipe()
    os.close(reader)
    more = ["join", "left.parquet", "right.parquet", "--on", BAND, "--window", "rows 9"]
    ended = subprocess.run(
        [WATERSMEET, *more], stdout=writer, stderr=subprocess.PIPE, text=True, check=False,
        timeout=60,
    )
    os.close(writer)
    assert ended.returncode == 141
    assert SUMMARY.fullmatch(ended.stderr)


def test_a_stdout_that_is_full_is_one_line(files):
    more = ["join", "left.parquet", "right.parquet", "--on", BAND, "--window", "rows 9"]
    with open("/dev/full", "w") as full:
        ended = subprocess.run(
            [WATERSMEET, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False,
            timeout=60,
        )
    assert ended.returncode == 1
    summary, line = ended.stderr.splitlines()
    assert SUMMARY.fullmatch(summary + "\n")
    assert line == (
        "watersmeet: the system does not let it go on ([Errno 28] No space left on device): "
        "free what it lacks"
    )


@pytest.mark.parametrize(
    ("sent", "code", "says"),
    [
        (signal.SIGINT, 130, "watersmeet: interrupted, nothing was written\n"),
        (signal.SIGTERM, 143, ""),
    ],
)
def test_a_signal_leaves_no_output_file(files, sent, code, says):
    pq.write_table(pa.table({"x": np.zeros(30_000, np.int64)}), "zeros.parquet")
    more = ["join", "zeros.parquet", "zeros.parquet", "--on", "l.x = r.x", "--window", "none"]
    process = subprocess.Popen(
        [WATERSMEET, *more, "--output", "o.arrow"], stderr=subprocess.PIPE, text=True
    )
    before = set(os.listdir())
    deadline = time.monotonic() + 30
    while not any(name.endswith(".part") for name in os.listdir()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(sent)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (code, says)
    assert set(os.listdir()) == before - {n for n in before if n.endswith(".part")}
