"""The list of mutants is one that can be run: `make mutants` runs it."""

from pathlib import Path

import pytest

from sim.mutant import Mutant
from sim.mutant_list import MUTANTS, TESTS
from sim.mutants import Tree, listed

ROOT = Path(__file__).resolve().parents[2]


def test_every_component_has_mutants_and_tests():
    assert MUTANTS.keys() == TESTS.keys()
    assert {name: len(mutants) for name, mutants in MUTANTS.items() if len(mutants) < 20} == {}
    for runs in TESTS.values():
        assert [run[0] for run in runs if not (ROOT / run[0]).exists()] == []


@pytest.mark.parametrize("component", MUTANTS)
def test_every_mutant_changes_the_sources(component):
    for mutant in MUTANTS[component]:
        compile(mutant.applied(ROOT / "hw"), mutant.file, "exec")


def test_the_documents_list_every_mutant():
    """Made anew by `python -m sim.mutants --list > docs/mutants.md`."""
    assert (ROOT / "docs" / "mutants.md").read_text() == listed()


def test_what_breaks_a_component_is_noticed_and_what_does_not_is_not(tmp_path):
    """In one tree, one after the other: each mutant is gone before the next one comes."""
    tree = Tree(tmp_path / "tree")
    tests = ["tests/rtl/test_merger.py", "-k", "two_frames or equal_keys"]
    limit_s = tree.patience(tests)
    breaks = Mutant("rtl/merger.py", "main.end) <= order_of", "main.end) >= order_of", "order")
    # As long as the text before: only the order of two names is another one.
    does_not = Mutant("rtl/merger.py", "take_main.eq(main_first | ends)",
                      "take_main.eq(ends | main_first)", "nothing")
    for _ in range(2):
        assert tree.killer(tests, breaks, limit_s).startswith("tests/rtl/test_merger.py::")
        assert tree.killer(tests, does_not, limit_s) is None
    hangs = Mutant("rtl/merger.py", "ends = main.end & batch.end", "while True: pass", "time")
    assert tree.killer(tests, hangs, 3) == "tests/rtl/test_merger.py, which does not end"
    with pytest.raises(RuntimeError, match="before anything is broken fails tests/"):
        (tree.folder / "hw" / breaks.file).write_text(breaks.applied(ROOT / "hw"))
        tree.patience(tests)
