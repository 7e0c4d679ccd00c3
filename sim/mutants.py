"""Mutation check: break each component in listed ways; its tests must kill every mutant.

    python -m sim.mutants [component ...] [--match TEXT]

The list is sim.mutant_list. The tests run on a copy of the tree, so that the checkout is never
broken; first of all they must pass on a copy that is whole.
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

__all__ = ["survivors", "listed", "main"]

ROOT = Path(__file__).resolve().parents[1]
#: A mutant that hangs its tests for so long is dead as well.
TIMEOUT_S = 900


def _dies(component, mutant=None):
    """Whether a test of the component fails on the mutant, or on the whole component."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        tree = Path(directory)
        for name in ("hw", "sim", "tests"):
            shutil.copytree(
                ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(ROOT / "pyproject.toml", tree)
        folder = tree / "hw" / "rtl"
        if mutant is not None:
            (folder / mutant.file).write_text(mutant.applied(folder))
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


def survivors(component, mutants, jobs=2, report=print):
    """Those mutants of a component that all of its tests let pass."""
    if _dies(component):
        raise RuntimeError(f"the tests of {component} fail before anything is broken")
    with ThreadPoolExecutor(jobs) as pool:
        deaths = pool.map(lambda mutant: _dies(component, mutant), mutants)
        living = []
        for mutant, dead in zip(mutants, deaths, strict=True):
            fate = "killed  " if dead else "SURVIVED"
            report(f"{component:18} {fate} {mutant.breaks}", flush=True)
            if not dead:
                living.append(mutant)
    return living


def listed():
    """The list as a Markdown page."""
    lines = ["# Mutants of the gateware", "",
             "Made by `python -m sim.mutants --list`; `make mutants` runs them, and the tests of "
             "each component must kill all of its own."]
    for component, mutants in MUTANTS.items():
        tests = " and ".join(f"`{' '.join(test)}`" for test in TESTS[component])
        lines += ["", f"## {component}: {len(mutants)}", "", f"Killed by {tests}.", ""]
        for mutant in mutants:
            old, new = (" ".join(text.split()) or "(nothing)" for text in (mutant.old, mutant.new))
            lines.append(f"* {mutant.breaks}: `{old}` becomes `{new}` in {mutant.file}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("components", nargs="*", help="all of them by default")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--match", default="", help="only mutants whose description has this text")
    parser.add_argument("--list", action="store_true", help="print the list and break nothing")
    options = parser.parse_args()
    if options.list:
        print(listed(), end="")
        return 0
    living = 0
    for name in options.components or MUTANTS:
        chosen = [mutant for mutant in MUTANTS[name] if options.match in mutant.breaks]
        found = survivors(name, chosen, options.jobs)
        living += len(found)
        print(f"{name}: {len(chosen) - len(found)} of {len(chosen)} mutants killed", flush=True)
    return 1 if living else 0


if __name__ == "__main__":
    sys.exit(main())
