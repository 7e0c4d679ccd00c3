"""Launches sim/splitter_tb.py."""

import pytest

from hw.rtl.splitter import Splitter
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim

SMALL = dict(subwindow=256, partitions=16, insert_buffer=64, mergers=4, lanes=4)


def test_splitter():
    settings = {"params": SMALL, "address_bits": 7, "batch_bits": 4}
    dut = Splitter(JoinParams(**SMALL), 7, 4)
    text = simulate(dut, "sim.splitter_tb", name="splitter", settings=settings)
    assert "coverage splitter" in text
