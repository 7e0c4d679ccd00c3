"""Launches sim/distribution_tree_tb.py."""

import pytest

from hw.rtl.distribution_tree import DistributionTree
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


def test_distribution_tree():
    text = simulate(
        DistributionTree(16, 5, 2), "sim.distribution_tree_tb", name="distribution_tree",
        settings={"leaves": 5},
    )
    assert "coverage distribution tree" in text
