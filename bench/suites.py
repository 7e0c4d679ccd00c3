"""The suites of `watersmeet bench` by name, and what a result file holds."""

import importlib
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

__all__ = ["RESULTS", "SUITES", "Progress", "Suite", "machine", "run"]

RESULTS = Path(__file__).resolve().parent / "results"

#: What a suite calls with a line for the person who waits.
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Suite:
    """A module of bench with `run(progress) -> dict`."""

    module: str
    about: str

    def __call__(self, progress: Progress) -> dict[str, Any]:
        result: dict[str, Any] = importlib.import_module(self.module).run(progress)
        return result


SUITES = {
    "foundation": Suite(
        "bench.foundation", "the numpy backend beside re-sorting and DuckDB; overhead; memory"
    ),
}


def run(name: str, folder: Path | None, progress: Progress) -> Path:
    """Run one suite and write <folder>/<name>.json; the committed results by default."""
    result = SUITES[name](progress)
    folder = folder or RESULTS
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    written = {"suite": name, "machine": machine(), "result": result}
    path.write_text(json.dumps(written, indent=2) + "\n")
    return path


def machine() -> dict[str, Any]:
    """What a reader must know to place the numbers."""
    packages = ("numpy", "pyarrow", "numba", "duckdb")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
