"""A part of `make gates`: the synthesised merger passes tests of its bench."""

import re

import pytest

from hw.rtl.block_core import BlockCore
from hw.rtl.partitioner import PipelinedPartitioner
from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.gates import colliding, run_gates

pytestmark = pytest.mark.sim


def test_the_merger_as_a_netlist():
    text = run_gates("merger", only="a_reset_forgets_the_frame|stall_in=0.4/stall_out=0.9")
    passed = re.search(r"TESTS=(\d+) PASS=(\d+) FAIL=0", text)
    assert passed[1] == passed[2] == "6"


@pytest.mark.parametrize("own", [8, 512])
def test_a_core_reads_nothing_while_it_is_written(own, tmp_path, monkeypatch):
    """Of which its memories' NO_COLLISIONS assure synthesis; with levels of the index array that
    both sides of a search share, and with none.
    """
    monkeypatch.setattr(PipelinedPartitioner, "OWN", own)
    params = {
        "subwindow": 64, "partitions": 32, "lanes": 2, "probers": 2, "mergers": 2,
        "insert_buffer": 16,
    }
    path = colliding(BlockCore(JoinParams(**params)), "colliding_core", tmp_path)
    # Of eight ports of keys, four of rids, two and two of the index array's levels, and a batch's.
    assert path.read_text().count("{1'b1}") >= 2 * 17
    text = simulate(
        None, "sim.join_core_tb", name="colliding_core", settings={"params": params},
        sources=[path],
    )
    assert "coverage join core" in text
