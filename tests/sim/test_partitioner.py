"""Launches sim/partitioner_tb.py on both partitioners."""

import pytest

from hw.rtl.partitioner import PipelinedPartitioner
from hw.rtl.rebounding_partitioner import ReboundingPartitioner
from hw.spec import JoinParams
from sim.elaborate import simulate

pytestmark = pytest.mark.sim

PARAMS = {"subwindow": 64, "partitions": 16, "lanes": 4}


@pytest.mark.parametrize("kind", [PipelinedPartitioner, ReboundingPartitioner])
def test_partitioner(kind):
    name = kind.__name__.replace("Partitioner", "_partitioner").lower()
    text = simulate(
        kind(JoinParams(**PARAMS), 2), "sim.partitioner_tb", name=name,
        settings={"params": PARAMS, "arrays": 2, "name": name},
    )
    assert f"coverage {name}" in text
