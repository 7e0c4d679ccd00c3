"""Launches sim/partitioner_tb.py on all partitioners."""

from functools import partial

import pytest

from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.rebounding_partitioner import ReboundingPartitioner
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim

PARAMS = {"subwindow": 64, "partitions": 16, "lanes": 4}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("pipelined_partitioner", PipelinedPartitioner),
        ("far_partitioner", partial(PipelinedPartitioner, far=True)),
        ("rebounding_partitioner", ReboundingPartitioner),
    ],
)
def test_partitioner(name, kind, monkeypatch):
    monkeypatch.setattr(PipelinedPartitioner, "QUICK", 2)  # levels of both kinds
    text = simulate(
        kind(JoinParams(**PARAMS), 2), "sim.partitioner_tb", name=name,
        settings={"params": PARAMS, "arrays": 2, "name": name},
    )
    assert f"coverage {name}" in text
