"""Launches sim/probing_engine_tb.py."""

import re

import numpy as np
import pytest

from hw.spec import JoinParams, Side
from sim.elaborate import simulate
from sim.probing import PREDICATES, expected_records, records_by_search
from sim.probing_tops import ProbingTop

pytestmark = pytest.mark.sim

SMALL = {"subwindow": 64, "partitions": 8, "lanes": 4, "probers": 2}
#: A partition of one memory word: two ways of two probers each.
BY_WORD = {"subwindow": 64, "partitions": 16, "lanes": 4, "probers": 4}


@pytest.mark.parametrize(
    ("name", "params", "far"),
    [
        ("probing_engine", SMALL, False),
        ("probing_engine_by_word", BY_WORD, False),
        ("probing_engine_far", BY_WORD, True),
    ],
)
def test_probing_engine(name, params, far):
    dut = ProbingTop(JoinParams(**params), far=far)
    text = simulate(dut, "sim.probing_engine_tb", name=name, settings={"params": params})
    assert "coverage probing engine" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("far", "least"),
    [
        # A batch alone is mostly the time that filling and emptying the engine takes.
        (False, {"dense": 3.9, "sparse": 2.8, "alone": 1.0}),
        (True, {"dense": 3.8, "sparse": 2.1, "alone": 0.8}),
    ],
    ids=["near", "far"],
)
def test_eight_probers_keep_the_figures(far, least):
    params = {"subwindow": 1 << 16, "partitions": 1 << 14, "lanes": 4, "probers": 8}
    text = simulate(
        ProbingTop(JoinParams(**params), far=far), "sim.probing_engine_tb",
        name="probing_engine_8" + "_far" * far, settings={"params": params, "figures": True},
    )
    found = re.findall(r"figure probing engine, (\w+) .*? ([\d.]+) probes a cycle", text)
    assert len(found) == 6
    assert [each for each in found if float(each[1]) < least[each[0]]] == []


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("name", PREDICATES)
def test_the_fast_expectation_is_the_references(name, side):
    rng = np.random.default_rng(1)
    stored = np.sort(rng.integers(-9, 9, 30)).astype(np.int32)
    probes = np.arange(-14, 15, dtype=np.int32)
    fast = records_by_search(stored, probes, PREDICATES[name], side).tolist()
    assert fast == expected_records(stored, probes, PREDICATES[name], side)
