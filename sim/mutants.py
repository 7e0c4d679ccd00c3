"""Mutation check: break each component in listed ways; its tests must kill every mutant.

    python -m sim.mutants [component ...] [--match TEXT]

The list is sim.mutant_list. The tests run on a copy of the tree, so that the checkout is never
broken; before they judge a mutant they must pass on a copy that is whole. What the unit tests
kill needs no proof: each run of a component's tests sees only what lives after those before it.
"""

import argparse
import importlib.util
import multiprocessing
import os
import queue
import re
import resource
import shutil
import signal
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sim.mutant_list import MUTANTS, TESTS

__all__ = ["Tree", "survivors", "listed", "main"]

ROOT = Path(__file__).resolve().parents[1]
#: What the tests need of it.
PACKAGES = ("hw", "host", "sim", "tests")
#: A mutant whose tests take this, and so many times what those of the whole component take, hangs.
PATIENCE_S, PATIENCE = 20, 5
#: What tests import and no mutant changes is imported once, not for each mutant.
PRELOADED = ["pytest", "hypothesis", "numpy", "amaranth.sim", "amaranth.back.rtlil"]
#: How pytest runs: it need not mind that Hypothesis is there already.
QUIETLY = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported"]


class Tree:
    """A copy of the packages in `folder`, in which one mutant at a time is tested."""

    def __init__(self, folder: Path):
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__")
        for name in PACKAGES:
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", folder)

    def killer(self, tests, mutant, limit_s):
        """The test that a mutant fails; None if it passes them all.

        tests    arguments of pytest
        limit_s  of processor time, after which a mutant hangs: unlike a clock, it does not depend
                 on what else the machine does
        """
        whole = (self.folder / "hw" / mutant.file).read_text()
        self._write(mutant.file, mutant.applied(self.folder / "hw"))
        try:
            return self._failed(tests, limit_s)
        finally:
            self._write(mutant.file, whole)

    def patience(self, tests):
        """Processor seconds that the tests never need; they must pass while nothing is broken."""
        failed = self._failed(tests)
        if failed is not None:
            raise RuntimeError(f"before anything is broken fails {failed}")
        return int(PATIENCE_S + PATIENCE * float((self.folder / "seconds").read_text()))

    def _write(self, file, text):
        path = self.folder / "hw" / file
        path.write_text(text)
        # A text as long as the one before, of the same second, would not be compiled again.
        Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)

    def _failed(self, tests, limit_s=None):
        context = multiprocessing.get_context("forkserver")
        process = context.Process(target=_test, args=(self.folder, tests, limit_s))
        process.start()
        process.join()
        if process.exitcode == -signal.SIGXCPU:
            return f"{tests[0]}, which does not end"
        if process.exitcode == 0:
            return None
        said = (self.folder / "said").read_text()
        failed = re.search(r"(?m)^(?:FAILED|ERROR) (.*)", said)
        if process.exitcode != 1 or failed is None:
            raise RuntimeError(f"the tests did not run:\n{said[-2000:]}")
        return failed[1]


def _test(folder, tests, limit_s):
    """In a process of its own: run tests on the packages in `folder`; ends as pytest ends.

    The files `said` and `seconds` have what pytest says and how long it worked.
    """
    import pytest

    with open(folder / "said", "w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    if limit_s is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s + 10))
    for name in [name for name in sys.modules if name.partition(".")[0] in PACKAGES]:
        del sys.modules[name]
    sys.dont_write_bytecode = False  # what the mutant leaves alone is compiled once
    os.chdir(folder)
    os.environ["PYTHONPATH"] = sys.path[0] = str(folder)
    result = pytest.main([*QUIETLY, *tests])
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    (folder / "seconds").write_text(str(sum(each.ru_utime for each in used)))
    sys.exit(int(result))


def survivors(component, mutants, jobs=2, report=print):
    """Those mutants of a component that all of its tests let pass."""
    multiprocessing.get_context("forkserver").set_forkserver_preload(PRELOADED)
    living = list(mutants)
    with tempfile.TemporaryDirectory(prefix="mutants-") as directory, ThreadPoolExecutor(
        jobs
    ) as pool:
        trees = queue.SimpleQueue()
        for number in range(jobs):
            trees.put(Tree(Path(directory) / str(number)))
        for tests in TESTS[component]:
            living = _living(component, living, tests, trees, pool, report) if living else []
    for mutant in living:
        report(f"{component:18} SURVIVED {mutant.breaks}", flush=True)
    return living


def _living(component, mutants, tests, trees, pool, report):
    """Those mutants that pass these tests."""
    tree = trees.get()
    limit_s = tree.patience(tests)
    trees.put(tree)

    def killer(mutant):
        tree = trees.get()
        try:
            return tree.killer(tests, mutant, limit_s)
        finally:
            trees.put(tree)

    living = []
    for mutant, test in zip(mutants, pool.map(killer, mutants), strict=True):
        if test is None:
            living.append(mutant)
        else:
            report(f"{component:18} killed   {mutant.breaks}: {test}", flush=True)
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
