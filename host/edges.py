"""Sums over matches where windows cover a subwindow in part, without a look at single pairs.

Within a batch the windows' edges move by no more than the batch. What lies between all of them is
summed by prefix sums; only the few tuples that some probes see and others do not need a rank in
two dimensions.
"""

import numpy as np

from host.ranks import RankMatrix
from host.records import Runs

__all__ = ["sums_over_runs"]


def sums_over_runs(
    runs: Runs, rids: np.ndarray, first: np.ndarray, end: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """For each run, the sum of `weights` (by rid; None is 1 each) over its positions whose rid is
    in [first, end) of that run.
    """
    begin, stop = runs.start, runs.start + runs.size
    seen_by_all = (rids >= max(0, int(first.max()))) & (rids < int(end.min()))
    values = np.ones(len(rids), np.int64) if weights is None else weights[rids]
    before = np.concatenate([[0], np.cumsum(np.where(seen_by_all, values, 0))])
    total: np.ndarray = before[stop] - before[begin]
    seen_by_some = (rids >= max(0, int(first.min()))) & (rids < int(end.max())) & ~seen_by_all
    places = np.flatnonzero(seen_by_some)
    if not len(places):
        return total
    # Ranks in place of rids: the matrix is only as deep as there are such tuples.
    ordered = np.sort(rids[places])
    matrix = RankMatrix(np.searchsorted(ordered, rids[places]), values[places])
    low, high = np.searchsorted(places, begin), np.searchsorted(places, stop)
    total += matrix.below(low, high, np.searchsorted(ordered, end))
    total -= matrix.below(low, high, np.searchsorted(ordered, first))
    return total
