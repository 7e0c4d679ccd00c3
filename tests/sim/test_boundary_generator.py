"""Launches sim/boundary_generator_tb.py."""

import pytest

from hw.rtl.boundary_generator import BoundaryGenerator
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


@pytest.mark.parametrize("key_bits", [32, 64])
def test_boundary_generator(key_bits):
    text = simulate(
        BoundaryGenerator(JoinParams(key_bits=key_bits)), "sim.boundary_generator_tb",
        name=f"boundary_generator_{key_bits}", settings={"key_bits": key_bits},
    )
    assert "coverage boundary generator" in text
