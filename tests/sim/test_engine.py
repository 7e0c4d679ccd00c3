"""Launches sim/punctuator_tb.py and sim/engine_tb.py."""

import pytest

from hw.rtl.engine import Engine
from hw.rtl.nested_loop_core import NestedLoopCore
from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.punctuation_top import PunctuationTop

pytestmark = pytest.mark.sim

PARAMS = {
    "subwindow": 16, "partitions": 8, "lanes": 2, "probers": 2, "mergers": 2, "insert_buffer": 16,
    "bands": 1,
}


def test_punctuator_and_combiner():
    sizes = PARAMS | {"cores": 2}
    text = simulate(
        PunctuationTop(JoinParams(**sizes)), "sim.punctuator_tb", name="punctuator",
        settings={"params": sizes},
    )
    assert "coverage punctuator" in text


@pytest.mark.parametrize("cores", [4])
def test_engine(cores):
    sizes = PARAMS | {"cores": cores, "bands": 4}
    params = JoinParams(**sizes)
    engine = Engine(params, lambda: NestedLoopCore(params), fan_out=2)
    text = simulate(engine, "sim.engine_tb", name="engine", settings={"params": sizes})
    assert "coverage engine" in text
