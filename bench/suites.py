"""The suites of `watersmeet bench` by name, and what a result file holds.

    python -m bench.suites [--quick] [--results DIR] SUITE ...
"""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

__all__ = ["RESULTS", "SUITES", "Progress", "Suite", "machine", "main", "run"]

RESULTS = Path(__file__).resolve().parent / "results"

#: What a suite calls with a line for the person who waits.
Progress = Callable[[str], None]

_PACKAGES = (
    "numpy", "pyarrow", "numba", "pyopencl", "pocl-binary-distribution", "duckdb", "polars",
    "sortedcontainers", "BTrees",
)


@dataclass(frozen=True)
class Suite:
    """A module of bench with `run(progress) -> dict`.

    has_quick  whether `run` takes `quick`: sizes that need seconds, and prove nothing but that
               the suite works
    """

    module: str
    about: str
    has_quick: bool = True

    def __call__(self, progress: Progress, quick: bool = False) -> dict[str, Any]:
        if quick and not self.has_quick:
            raise ValueError(f"{self.module} has no quick size")
        options = {"quick": True} if quick else {}
        result: dict[str, Any] = importlib.import_module(self.module).run(progress, **options)
        return result


SUITES = {
    "foundation": Suite(
        "bench.foundation", "the numpy backend beside re-sorting and DuckDB; overhead; memory",
        has_quick=False,
    ),
    "engines": Suite(
        "bench.engines", "the OpenCL engines beside memory, numpy and the paper's own mode"
    ),
    "peers": Suite(
        "bench.peer_suite", "the whole pipeline beside DuckDB, Polars, trees and a nested loop"
    ),
}


def run(name: str, folder: Path | None, progress: Progress, quick: bool = False) -> Path:
    """Run one suite and write <folder>/<name>.json; the committed results by default.

    A suite that can be drawn also gives <folder>/<name>.svg.
    """
    suite = SUITES[name]
    result = suite(progress, quick=True) if quick else suite(progress)
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    written = {"suite": name, "machine": machine(), "result": result}
    path.write_text(json.dumps(written, indent=2) + "\n")
    _draw(name, result, folder)
    return path


def _draw(name: str, result: dict[str, Any], folder: Path) -> None:
    from bench.pictures import PICTURES, draw

    if name in PICTURES:
        draw(name, result, folder / f"{name}.svg")


def machine() -> dict[str, Any]:
    """What a reader must know to place the numbers."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "device": _device(),
        "python": platform.python_version(),
        "packages": _packages(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _device() -> str | None:
    """The OpenCL device that is used where none is named."""
    from hw.opencl.devices import DeviceError, choose

    try:
        device = choose()
    except DeviceError:
        return None
    return f"{device.name} ({device.platform}, {device.version.split('  ')[0]})"


def _packages() -> dict[str, str]:
    """Versions of those that are installed."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run suites without the rest of the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.suites", description=__doc__)
    parser.add_argument("suite", nargs="+", choices=SUITES)
    parser.add_argument("--quick", action="store_true", help="small sizes: seconds, no figures")
    parser.add_argument("--results", type=Path, metavar="DIR", help="where results go")
    arguments = parser.parse_args(argv)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    for name in arguments.suite:
        path = run(name, arguments.results, say, arguments.quick)
        say(f"{name}: written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
