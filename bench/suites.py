"""The suites of `watersmeet bench` by name, and what a result file holds."""

import importlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

__all__ = ["QUICK_RESULTS", "RESULTS", "SUITES", "Progress", "Suite", "machine", "run"]

RESULTS = Path(__file__).resolve().parent / "results"
#: Quick runs prove nothing: they never replace the kept results.
QUICK_RESULTS = RESULTS.parents[1] / "build" / "bench"

#: What a suite calls with a line for the person who waits.
Progress = Callable[[str], None]

_PACKAGES = (
    "numpy", "pyarrow", "numba", "pyopencl", "pocl-binary-distribution", "duckdb", "polars",
    "sortedcontainers", "BTrees", "pyspark",
)


@dataclass(frozen=True)
class Suite:
    """A module of bench with `run(progress, quick) -> dict`.

    `quick` is for sizes that need seconds, and prove nothing but that the suite works.
    """

    module: str
    about: str

    def __call__(self, progress: Progress, quick: bool = False) -> dict[str, Any]:
        result: dict[str, Any] = importlib.import_module(self.module).run(progress, quick)
        return result


SUITES = {
    "foundation": Suite(
        "bench.foundation", "the numpy backend beside re-sorting and DuckDB; overhead; memory"
    ),
    "engines": Suite(
        "bench.engines", "the OpenCL engines beside memory, numpy and the paper's own mode"
    ),
    "peers": Suite(
        "bench.peer_suite", "the whole pipeline beside DuckDB, Polars, trees and a nested loop"
    ),
    "structures": Suite(
        "bench.structures", "the papers' structures of a subwindow beside each other and DuckDB"
    ),
    "rtl": Suite(
        "bench.rtl_suite", "the gateware: tuples and probes a cycle, clocks, area, both mergers"
    ),
    "board": Suite(
        "bench.board_suite", "SplitJoin's trees, engines of many cores, the link, the bitstreams"
    ),
    "spark": Suite(
        "bench.spark_suite", "the join in Spark beside what Spark users do without it"
    ),
}


def run(name: str, folder: Path | None, progress: Progress, quick: bool = False) -> Path:
    """Run one suite and write <folder>/<name>.json; RESULTS or QUICK_RESULTS by default.

    A suite that can be drawn also gives <folder>/<name>.svg.
    """
    result = SUITES[name](progress, quick)
    folder = folder or (QUICK_RESULTS if quick else RESULTS)
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
