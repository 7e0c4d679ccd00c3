"""Launches sim/indexer_tb.py."""

import pytest

from hw.rtl.indexer import Indexer
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim

SMALL = dict(subwindow=64, partitions=8, lanes=2)


def test_indexer():
    settings = {"params": SMALL, "address_bits": 6}
    dut = Indexer(JoinParams(**SMALL), 6)
    text = simulate(dut, "sim.indexer_tb", name="indexer", settings=settings)
    assert "coverage indexer" in text
