"""arrival_ranks and list_pairs beside what numpy and a double loop say."""

import numpy as np
import pytest

from host.arrival_ranks import arrival_ranks
from host.run_columns import list_pairs

SIDES = {"left": False, "right": True}


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("seed", range(20))
def test_ranks_are_numpys_in_whatever_order_places_arrive(seed, side):
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(-50, 50, random.integers(1, 80)))
    count = int(random.integers(1, 60))
    order = random.permutation(count + int(random.integers(0, 5)))[:count]
    places = random.integers(-60, 60, count)
    if seed % 2:
        places[np.argsort(order)] = np.sort(places)
    found = arrival_ranks(times, places, order, SIDES[side])
    assert found.tolist() == np.searchsorted(times, places, side).tolist()


@pytest.mark.parametrize("partly", [False, True])
@pytest.mark.parametrize("stored", [0, 1, 9])
def test_pairs_are_listed_run_by_run(stored, partly):
    """Empty runs at the very end of the array, too; of partly seen ones what each probe sees."""
    random = np.random.default_rng(stored)
    probes, runs = 30, 2
    records = np.sort(random.integers(0, stored + 1, (probes * runs, 2))).astype(np.uint32)
    rids = random.permutation(stored).astype(np.uint32)
    first, rows = (random.integers(0, 6, probes).astype(np.uint32) for _ in range(2))
    most = int((records[:, 1] - records[:, 0]).sum())
    found = list_pairs(records, runs, rids, first, rows, partly, most)
    expected = [
        (number // runs, rid)
        for number, (start, end) in enumerate(records.tolist())
        for rid in rids[start:end].tolist()
        if not partly or 0 <= rid - int(first[number // runs]) < rows[number // runs]
    ]
    assert [*zip(*(part.tolist() for part in found), strict=True)] == expected
