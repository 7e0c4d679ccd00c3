"""Counts of rectangles for few probes: a table of how many tuples lie below each corner.

The bit arrays cost a walk over all stored tuples for each batch, however small it is. The table
is made once for tuples that do not change any more: a corner is an entry of it and two strips,
which are compared one by one.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from host.indexes.po.runs import Bounds

__all__ = ["CornerTable"]

#: Rows and columns at most: the table must not be larger than the tuples.
_MOST_BLOCKS = 1 << 10
_SMALLEST_SHIFT = 6


@dataclass(frozen=True)
class CornerTable:
    """below[i, j]: tuples before block i of the first order and before block j of the second."""

    shift: int
    below: np.ndarray

    @staticmethod
    def of(permutation: np.ndarray) -> "CornerTable":
        blocks = max(1, len(permutation) // _MOST_BLOCKS)
        shift = max(_SMALLEST_SHIFT, (blocks - 1).bit_length())
        return CornerTable(shift, _build(permutation, np.uint64(shift)))

    def counts(
        self, permutation: np.ndarray, inverse: np.ndarray, runs: Bounds,
        totals: np.ndarray,
    ) -> None:
        """Add to `totals` the tuples in each rectangle."""
        first, end, low, high = runs
        shift = np.uint64(self.shift)
        _count(self.below, shift, permutation, inverse, first, end, low, high, totals)


@njit(cache=True, nogil=True)
def _build(permutation, shift):  # type: ignore[no-untyped-def]
    size = (len(permutation) >> np.int64(shift)) + 2
    below = np.zeros((size, size), np.int32)
    for second in range(np.uint64(len(permutation))):
        below[(permutation[second] >> shift) + 1, (second >> shift) + np.uint64(1)] += 1
    for i in range(1, size):
        row = 0
        for j in range(size):
            row += below[i, j]
            below[i, j] = row + below[i - 1, j]
    return below


@njit(cache=True, nogil=True)
def _corner(below, shift, permutation, inverse, first, second):  # type: ignore[no-untyped-def]
    """Tuples with a first position below `first` and a second one below `second`."""
    i, j = first >> shift, second >> shift
    edge, total = i << shift, np.int64(below[i, j])
    wanted, known = np.uint32(second), np.uint32(edge)
    for place in range(edge, first):
        total += np.int64(inverse[place] < wanted)
    for place in range(j << shift, second):
        total += np.int64(permutation[place] < known)
    return total


@njit(cache=True, nogil=True)
def _below(below, shift, permutation, inverse, first, end, second):  # type: ignore[no-untyped-def]
    """Tuples with a first position in [first, end) and a second one below `second`."""
    count = np.uint64(len(permutation))
    if second == 0:
        return np.int64(0)
    if second == count:
        return np.int64(end) - np.int64(first)
    above = np.int64(second)
    if end < count:
        above = _corner(below, shift, permutation, inverse, end, second)
    if first > 0:
        above -= _corner(below, shift, permutation, inverse, first, second)
    return above


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    below, shift, permutation, inverse, first, end, low, high, totals
):
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        begin, stop = np.uint64(first[n]), np.uint64(end[n])
        for sign, second in ((1, high[n]), (-1, low[n])):
            totals[n] += sign * _below(
                below, shift, permutation, inverse, begin, stop, np.uint64(second)
            )
