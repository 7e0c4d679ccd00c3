"""Launches sim/merger_tb.py."""

import pytest

from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("key_bits", [32])
def test_merger(key_bits):
    dut = Merger(tuple_layout(JoinParams(key_bits=key_bits)))
    text = simulate(dut, "sim.merger_tb", name="merger", settings={"key_bits": key_bits})
    assert "coverage merger" in text
