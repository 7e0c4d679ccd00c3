"""Launches sim/insertion_engine_tb.py."""

import pytest

from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.insertion_bench import InsertionBench

pytestmark = pytest.mark.sim

SMALL = dict(subwindow=256, partitions=16, insert_buffer=64, mergers=4, lanes=2)


@pytest.mark.parametrize(("design", "memory"), [("wide", "shared"), ("narrow", "slow")])
def test_insertion_engine(design, memory):
    dut = InsertionBench(JoinParams(**SMALL), design, memory)
    text = simulate(
        dut, "sim.insertion_engine_tb", name=f"insertion_{design}", settings={"params": SMALL}
    )
    assert "coverage insertion_engine" in text
