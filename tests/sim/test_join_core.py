"""Launches sim/join_core_tb.py."""

import pytest

from hw.rtl.block_core import BlockCore
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


@pytest.mark.parametrize("hops", [0, 1])
def test_join_core_with_block_ram(hops):
    """Its main arrays in banks that the probers search in: a partition is a memory word."""
    sizes = PARAMS | {"partitions": 32}
    text = simulate(
        BlockCore(JoinParams(**sizes), hops=hops), "sim.join_core_tb",
        name=f"join_core_block_{hops}", settings={"params": sizes},
    )
    assert "coverage join core" in text
