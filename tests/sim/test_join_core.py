"""Launches sim/join_core_tb.py."""

import pytest

from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.simulated_core import SimulatedCore

pytestmark = pytest.mark.sim

PARAMS = {
    "subwindow": 64, "partitions": 8, "lanes": 2, "probers": 2, "mergers": 2, "insert_buffer": 16,
}


@pytest.mark.parametrize("design", ["wide", "narrow"])
def test_join_core(design):
    core = SimulatedCore(JoinParams(**PARAMS), design=design)
    text = simulate(
        core, "sim.join_core_tb", name=f"join_core_{design}", settings={"params": PARAMS}
    )
    assert "coverage join core" in text
