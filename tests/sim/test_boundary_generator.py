"""Launches sim/boundary_generator_tb.py."""

import pytest

from hw.rtl.boundary_generator import BoundaryGenerator
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim


@pytest.mark.parametrize(("key_bits", "far"), [(32, False), (64, False), (32, True)])
def test_boundary_generator(key_bits, far):
    text = simulate(
        BoundaryGenerator(JoinParams(key_bits=key_bits), far=far), "sim.boundary_generator_tb",
        name=f"boundary_generator_{key_bits}" + "_far" * far, settings={"key_bits": key_bits},
    )
    assert "coverage boundary generator" in text
