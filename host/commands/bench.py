"""watersmeet bench: runs suites of the bench package and keeps their results."""

import argparse
import importlib
import json
import sys
from pathlib import Path

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
        folder = Path(arguments.results) if arguments.results else None
        for name in _chosen(arguments.suite, list(suites.SUITES)):
            path = suites.run(name, folder, _say)
            print(json.dumps(json.loads(path.read_text())["result"], indent=2))
            _say(f"{name}: written to {path}")
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


def _chosen(asked: list[str], names: list[str]) -> list[str]:
    for name in asked:
        if name != "all" and name not in names:
            raise JoinError(f"there is no suite {name!r}: choose all or {', '.join(names)}")
    return names if "all" in asked else list(dict.fromkeys(asked))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
