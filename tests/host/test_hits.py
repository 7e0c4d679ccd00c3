"""Records into runs, and runs into bounded chunks of pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.records import Runs
from hw.spec.tuples import NOT, RECORD
from tests.helpers import share


def records(*probes, negated=False):
    """Records of shape (probes, runs)."""
    made = np.array([[tuple(run) for run in runs] for runs in probes], RECORD)
    if negated:
        made["end"] |= NOT
    return made


def listed(runs):
    return list(zip(runs.probe.tolist(), runs.start.tolist(), runs.size.tolist(), strict=True))


def test_empty_runs_leave_no_trace():
    runs = Runs.of(records([(0, 2), (5, 5)], [(3, 3), (4, 9)], [(0, 0), (0, 0)]), 10)
    assert listed(runs) == [(0, 0, 2), (1, 4, 5)]


def test_not_means_what_lies_outside():
    runs = Runs.of(records([(2, 5)], [(0, 3)], [(8, 10)], [(4, 4)], [(0, 10)], negated=True), 10)
    positions = {probe: set() for probe in range(5)}
    for probe, start, size in listed(runs):
        positions[probe] |= set(range(start, start + size))
    assert positions == {
        0: {0, 1, 5, 6, 7, 8, 9}, 1: {3, 4, 5, 6, 7, 8, 9}, 2: set(range(8)), 3: set(range(10)),
        4: set(),
    }  # fmt: skip


def test_no_probes_have_no_runs():
    assert listed(Runs.of(np.empty((0, 1), RECORD), 10)) == []
    assert list(Runs.of(np.empty((0, 1), RECORD), 10).chunks(5)) == []


def test_only_the_wanted_probes_stay():
    runs = Runs.of(records([(0, 2)], [(1, 3)], [(2, 4)]), 10)
    assert listed(runs.only(np.array([True, False, True]))) == [(0, 0, 2), (2, 2, 2)]


@share(10)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=2),
        max_size=5,
    ),
    st.integers(1, 12),
)
def test_chunks_are_all_pairs_in_order_and_bounded(probes, most):
    probes = [[(min(run), max(run)) for run in runs] for runs in probes]
    made = records(*probes) if probes else np.empty((0, 2), RECORD)
    wanted = [
        (probe, position)
        for probe, runs in enumerate(probes)
        for start, end in runs
        for position in range(start, end)
    ]
    chunks = list(Runs.of(made, 10).chunks(most))
    found = [
        pair
        for probe, position in chunks
        for pair in zip(probe.tolist(), position.tolist(), strict=True)
    ]
    assert found == wanted
    assert all(0 < len(probe) <= most for probe, _ in chunks)
    assert len(chunks) == -(-len(wanted) // most)


@pytest.mark.parametrize("most", [1, 1 << 10, 1 << 18])
def test_a_run_longer_than_a_chunk_is_cut(most):
    runs = Runs.of(records([(5, 5 + 3 * most + 1)]), 1 << 30)
    sizes = [len(probe) for probe, _ in runs.chunks(most)]
    assert sizes == [most, most, most, 1]
