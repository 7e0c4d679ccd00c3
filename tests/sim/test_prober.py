"""Launches sim/prober_tb.py."""

import pytest

from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.probing_tops import ProberTop

pytestmark = pytest.mark.sim

PARAMS = {"subwindow": 64, "partitions": 4, "lanes": 4}  # partitions of 4 words


def test_prober():
    text = simulate(
        ProberTop(JoinParams(**PARAMS)), "sim.prober_tb", name="prober",
        settings={"params": PARAMS},
    )
    assert "coverage prober" in text
