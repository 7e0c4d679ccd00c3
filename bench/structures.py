"""The structures of a subwindow beside each other and beside others: suite `structures`."""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import choices, subwindows, two_predicates, window_joins
from bench.rounds import two_cores

__all__ = ["PARTS", "main", "run"]

#: Name of a part of the result -> what measures it.
PARTS: dict[str, Callable[[Callable[[str], None], bool], dict[str, Any]]] = {
    "subwindows": subwindows.run,
    "window_joins": window_joins.run,
    "choices": choices.run,
    "two_predicates": two_predicates.run,
}


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """All figures, case by case."""
    with two_cores():
        return {"quick": quick} | {name: part(progress, quick) for name, part in PARTS.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Measure some parts, or the chooser on some workloads, beside what a result file has."""
    from bench.pictures import draw
    from bench.suites import RESULTS, machine

    parser = argparse.ArgumentParser(prog="python -m bench.structures", description=__doc__)
    parser.add_argument("part", nargs="*", choices=[*PARTS, []])
    parser.add_argument("--workloads", type=int, nargs="+", default=[], help="by their numbers")
    parser.add_argument("--results", type=Path, default=RESULTS / "structures.json")
    said = parser.parse_args(argv)
    kept = json.loads(said.results.read_text()) if said.results.exists() else {"result": {}}
    result: dict[str, Any] = {"quick": False} | kept["result"]

    def progress(line: str) -> None:
        print(line, file=sys.stderr)

    with two_cores():
        result |= {name: PARTS[name](progress, False) for name in said.part}
        if said.workloads:
            result["choices"] = choices.measured(progress, said.workloads, result.get("choices"))
    written = {"suite": "structures", "machine": machine(), "result": result}
    said.results.write_text(json.dumps(written, indent=2) + "\n")
    if PARTS.keys() <= result.keys():
        draw("structures", result, said.results.with_suffix(".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
