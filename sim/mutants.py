"""Mutation check: break each component in listed ways; its tests must kill every mutant.

    python -m sim.mutants [component ...]

A mutant is one replacement in the text of one file of hw/rtl (the lists are in sim.mutant_list).
The tests run on a copy of the tree, so that the checkout is never broken.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.mutant_list import MUTANTS, TESTS

__all__ = ["apply", "survivors", "main"]

ROOT = Path(__file__).resolve().parents[1]
#: A mutant that hangs its tests for so long is dead as well.
TIMEOUT_S = 900


def apply(mutant, tree):
    """Break the copy of hw/rtl in `tree`; the text must be there exactly once."""
    file, old, new, _ = mutant
    path = tree / "hw" / "rtl" / file
    text = path.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file} has {text.count(old)} times, not once: {old!r}")
    path.write_text(text.replace(old, new))


def _dies(component, mutant):
    """Whether a test of the component fails on the mutant."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        tree = Path(directory)
        for name in ("hw", "sim", "tests"):
            shutil.copytree(
                ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", tree)
        apply(mutant, tree)
        environment = os.environ | {"PYTHONPATH": directory}
        for test in TESTS[component]:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *test]
            try:
                done = subprocess.run(
                    command, cwd=tree, env=environment, capture_output=True, check=False,
                    timeout=TIMEOUT_S,
                )
            except subprocess.TimeoutExpired:
                return True
            if done.returncode == 1:
                return True
            if done.returncode != 0:
                raise RuntimeError(f"the tests did not run:\n{done.stdout.decode()[-2000:]}")
        return False


def survivors(component, jobs=2, report=print):
    """The mutants of a component that all of its tests let pass."""
    mutants = MUTANTS[component]
    with ThreadPoolExecutor(jobs) as pool:
        deaths = pool.map(lambda mutant: _dies(component, mutant), mutants)
        living = []
        for mutant, dead in zip(mutants, deaths, strict=True):
            report(f"{component:18} {'killed  ' if dead else 'SURVIVED'} {mutant[3]}", flush=True)
            if not dead:
                living.append(mutant)
    return living


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("components", nargs="*", help="all of them by default")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    options = parser.parse_args()
    living = 0
    for name in options.components or MUTANTS:
        found = survivors(name, options.jobs)
        living += len(found)
        total = len(MUTANTS[name])
        print(f"{name}: {total - len(found)} of {total} mutants killed", flush=True)
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
