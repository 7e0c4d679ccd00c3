"""Launches sim/wide_merger_tb.py."""

import pytest

from hw.rtl.layouts import tuple_layout
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_wide_merger(lanes):
    dut = WideMerger(tuple_layout(JoinParams()), lanes)
    name = f"wide_merger_{lanes}"
    assert f"coverage {name}" in simulate(
        dut, "sim.wide_merger_tb", name=name, settings={"lanes": lanes}
    )
