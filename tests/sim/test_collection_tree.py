"""Launches sim/collection_tree_tb.py."""

import pytest

from hw.rtl.collection_tree import CollectionTree
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


def test_collection_tree():
    text = simulate(
        CollectionTree(16, 5, 2), "sim.collection_tree_tb", name="collection_tree",
        settings={"leaves": 5},
    )
    assert "coverage collection tree" in text
