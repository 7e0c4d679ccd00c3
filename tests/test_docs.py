"""README and docs: every example runs, and prints what they say."""

import contextlib
import doctest
import importlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from host.__main__ import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(kind):
    """(page:line, text) of the blocks of a kind; all of them are meant to run."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for block in BLOCK.finditer(text):
            if block[1] == kind:
                line = text.count("\n", 0, block.start()) + 1
                found.append(pytest.param(block[2], id=f"{page.name}:{line}"))
    return found


@pytest.fixture
def examples(tmp_path, monkeypatch):
    """A copy of docs/examples as the current directory."""
    monkeypatch.chdir(shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples"))


def of_spark(spark):
    """The Python examples that start Spark, or the others."""
    return [one for one in blocks("python") if ("SparkSession" in one.values[0]) == spark]


@pytest.mark.parametrize("code", of_spark(False))
def test_a_python_example_runs_as_printed(code, examples):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "example", "exec"), {"__name__": "__main__"})
    assert out.getvalue()


@pytest.mark.spark
@pytest.mark.opencl
@pytest.mark.slow
@pytest.mark.parametrize("code", of_spark(True))
def test_a_spark_example_finds_what_the_command_line_finds(code, examples):
    """In a process of its own, as a reader would run it."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [tuple(cells.split("|")[1:-1]) for cells in done.stdout.splitlines() if "|" in cells]
    found = [tuple(float(cell) for cell in row) for row in rows[1:]]
    line = "watersmeet join bids.csv asks.csv --on 'ABS(l.price - r.price) <= 0.25' " \
        "--window '10 seconds' --time ts --select l.id,r.id,l.price,r.price"
    expected = [tuple(map(float, row.split())) for row in output_of(line).splitlines()[1:]]
    assert sorted(found) == sorted(expected) and len(found) == 9


@pytest.mark.parametrize("text", blocks("console"))
def test_a_console_example_prints_what_it_says(text, examples):
    commands = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert commands.pop(0) == ""
    for command in commands:
        line, _, shown = command.partition("\n")
        assert_like(output_of(line), shown)


def output_of(line):
    """What a command prints on stdout; the few that the pages use."""
    words = shlex.split(line)
    if words[0] == "cat":
        return Path(words[1]).read_text()
    if words[0] == "cd":
        return ""
    assert words[0] == "watersmeet"
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words[1:])
    assert code == 0, err.getvalue()
    return out.getvalue()


def assert_like(printed, shown):
    """Compare line by line; '...' in `shown` stands for anything, also for several lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in shown.splitlines()
    )
    assert re.fullmatch(pattern, printed), f"printed:\n{printed}\nshown:\n{shown}"


def test_every_option_of_join_has_an_example():
    from host.__main__ import _parser

    usage = (ROOT / "docs" / "usage.md").read_text()
    tried = " ".join(block[2] for block in BLOCK.finditer(usage) if block[1] == "console")
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        _parser().parse_args(["join", "--help"])
    options = set(re.findall(r"--[a-z-]+", shown.getvalue())) - {"--help"}
    # numpy has no devices, and the others depend on the machine.
    missing = {option for option in options if f" {option} " not in tried}
    assert missing == {"--device"}
    assert "`--device D`" in usage


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def modules_with_examples():
    paths = [*(ROOT / "host").rglob("*.py"), *(ROOT / "hw" / "spec").rglob("*.py")]
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in sorted(paths)
        if ">>> " in path.read_text()
    ]


def test_examples_in_docstrings_hold():
    for name in modules_with_examples():
        assert doctest.testmod(importlib.import_module(name)).failed == 0, name
