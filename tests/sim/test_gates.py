"""A part of `make gates`: the synthesised merger passes tests of its bench."""

import re

import pytest

from sim.gates import run_gates

pytestmark = pytest.mark.sim


def test_the_merger_as_a_netlist():
    text = run_gates("merger", only="a_reset_forgets_the_frame|stall_in=0.4/stall_out=0.9")
    passed = re.search(r"TESTS=(\d+) PASS=(\d+) FAIL=0", text)
    assert passed[1] == passed[2] == "6"
