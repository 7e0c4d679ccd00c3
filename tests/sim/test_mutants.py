"""The list of mutants is one that can be run: `make mutants` runs it."""

from pathlib import Path

import pytest

from sim.mutant_list import MUTANTS, TESTS
from sim.mutants import listed

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
