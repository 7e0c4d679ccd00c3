"""watersmeet bench: runs suites of the bench package and keeps their results."""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from host.errors import JoinError

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Run the named suites; without a name list them."""
    try:
        # bench stands above host: it is found by name, and only when it is asked for.
        suites = importlib.import_module("bench.suites")
        if not arguments.suite:
            for name, suite in suites.SUITES.items():
                print(f"{name}  {suite.about}")
            return 0
        _run_all(suites, arguments)
        return 0
    except ModuleNotFoundError as error:
        raise JoinError(
            f"the benchmarks need {error.name}, which is not installed: "
            'install it with pip install "watersmeet[bench]"'
        ) from error
    except OSError as error:
        raise JoinError(
            f"the results cannot be written ({error.strerror}: {error.filename!r}): "
            "choose another directory with --results"
        ) from error


def _run_all(suites: Any, arguments: argparse.Namespace) -> None:
    folder = Path(arguments.results) if arguments.results else None
    names = _chosen(arguments.suite, list(suites.SUITES))
    for number, name in enumerate(names, 1):
        with _steps(f"{name} ({number} of {len(names)})") as step:
            path = suites.run(name, folder, step, arguments.quick)
        _show(json.loads(path.read_text())["result"])
        print(f"{name}: written to {path}", file=sys.stderr, flush=True)


def _chosen(asked: list[str], names: list[str]) -> list[str]:
    for name in asked:
        if name != "all" and name not in names:
            raise JoinError(f"there is no suite {name!r}: choose all or {', '.join(names)}")
    return names if "all" in asked else list(dict.fromkeys(asked))


def _show(result: dict[str, Any]) -> None:
    """A result for whoever reads stdout: figures for a person, JSON for a program."""
    if not sys.stdout.isatty():
        print(json.dumps(result, indent=2), flush=True)
        return
    rows = list(importlib.import_module("bench.report").rows(result))
    names = [f"{row.group}: {row.name}" for row in rows]
    width = max(map(len, names), default=0)
    for name, row in zip(names, rows, strict=True):
        verdict = {True: "holds", False: "MISSED", None: ""}[row.holds]
        print(f"{name:{width}}  {row.ratio:>8}  {row.asked:8}  {verdict}".rstrip(), flush=True)


@contextmanager
def _steps(suite: str) -> Iterator[Callable[[str], None]]:
    """Shows on stderr what a suite is doing: lines, and on a terminal a clock that runs.

    Yields what is called with a line as each step begins.
    """
    if not sys.stderr.isatty():
        yield lambda text: print(text, file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(), TextColumn("{task.fields[suite]}"), TimeElapsedColumn(),
        TextColumn("{task.description}"), console=Console(stderr=True), transient=True,
        refresh_per_second=1,  # what is measured must not notice
    )
    with bar:
        task = bar.add_task("", total=None, suite=suite)
        begun: list[tuple[str, float]] = []

        def step(text: str) -> None:
            now = time.monotonic()
            if begun:
                before, since = begun.pop()
                bar.print(f"{now - since:7.1f} s  {before}", highlight=False, markup=False)
            begun.append((text, now))
            bar.update(task, description=text)

        yield step
        step("")
