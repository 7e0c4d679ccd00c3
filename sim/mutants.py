"""Mutation check: break each component in listed ways; its tests must kill every mutant.

    python -m sim.mutants [component ...] [--match TEXT]

The list is sim.mutant_list. The tests run on a copy of the tree, so that the checkout is never
broken; first of all they must pass on a copy that is whole.
"""

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.mutant_list import MUTANTS, TESTS

__all__ = ["survivors", "listed", "main"]

ROOT = Path(__file__).resolve().parents[1]
#: A mutant whose tests take this, and so many times what those of the whole component take, hangs.
PATIENCE_S, PATIENCE = 60, 10


def _copy(tree, mutant):
    """Put the packages that the tests need into `tree`, broken by the mutant."""
    for name in ("hw", "host", "sim", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    if mutant is not None:
        folder = tree / "hw"
        (folder / mutant.file).write_text(mutant.applied(folder))


def _killer(component, mutant=None, limit_s=None):
    """The test of the component that the mutant (or the whole component) fails; None if none.

    limit_s  of processor time, after which a mutant hangs: unlike a clock, it does not depend on
             what else the machine does
    """
    with tempfile.TemporaryDirectory(prefix="mutant-") as directory:
        tree = Path(directory)
        _copy(tree, mutant)
        environment = os.environ | {"PYTHONPATH": directory}
        for test in TESTS[component]:
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *test]
            if limit_s is not None:
                command = ["sh", "-c", 'ulimit -t "$0" && exec "$@"', str(limit_s), *command]
            done = subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, check=False, text=True
            )
            if done.returncode == -signal.SIGXCPU:
                return f"{test[0]}, which does not end"
            if done.returncode == 1:
                return re.search(r"(?m)^(?:FAILED|ERROR) (.*)", done.stdout)[1]
            if done.returncode != 0:
                raise RuntimeError(f"the tests did not run:\n{done.stdout[-2000:]}")
    return None


def patience(component):
    """Processor seconds that no test of the component needs; its tests must pass before that."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    killer = _killer(component)
    if killer is not None:
        raise RuntimeError(f"before anything is broken fails {killer}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int(PATIENCE_S + PATIENCE * (after.ru_utime - before.ru_utime))


def survivors(component, mutants, jobs=2, report=print):
    """Those mutants of a component that all of its tests let pass."""
    limit_s = patience(component)
    with ThreadPoolExecutor(jobs) as pool:
        killers = pool.map(lambda mutant: _killer(component, mutant, limit_s), mutants)
        living = []
        for mutant, killer in zip(mutants, killers, strict=True):
            fate = "SURVIVED" if killer is None else "killed  "
            report(f"{component:18} {fate} {mutant.breaks}: {killer}", flush=True)
            if killer is None:
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
