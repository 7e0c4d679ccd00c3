"""Offsets of a batch's bounds in a sorted array (SPO-Join's offset arrays, Algorithm 3).

The paper's listing compares by >= whatever the operator is, and starts over for every key that
lands at 0. Here a closed interval [lo, hi] has two offsets: the first place with a key of at
least lo, and the first with a key above hi. With duplicates these two differ, and so < and <=,
whose intervals differ, get the offsets that are theirs.
"""

import numpy as np
from numba import njit

__all__ = ["offsets"]

#: So many keys are compared one by one, without a branch that cannot be predicted.
_NEAR = 16


def offsets(keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run [first, end) of the ascending `keys` in each closed interval; empty if lo > hi.

    Bounds that ascend or descend cost little, others a binary search each.
    """
    first = np.empty(len(lo), np.uint32)
    end = np.empty(len(lo), np.uint32)
    largest = np.iinfo(keys.dtype).max
    # A key is above hi if it is at least hi + 1; above the largest there is none.
    _seek_all(keys, lo, np.zeros(0, np.bool_), first)
    _seek_all(keys, hi + keys.dtype.type(1), hi == largest, end)
    return first, np.maximum(first, end)


@njit(cache=True, nogil=True)
def _seek_all(keys, bound, beyond, found):  # type: ignore[no-untyped-def]
    """First place with a key of at least each bound; none at all where it lies `beyond`."""
    place = np.uint64(0)
    for n in range(len(bound)):
        if len(beyond) and beyond[n]:
            found[n] = len(keys)
        else:
            place = _seek(keys, place, bound[n])
            found[n] = place


@njit(cache=True, nogil=True)
def _seek(keys, start, bound):  # type: ignore[no-untyped-def]
    """First place with a key of at least `bound`, from near `start`."""
    count, one, step = np.uint64(len(keys)), np.uint64(1), np.uint64(_NEAR)
    # Everything before `low` is below the bound, everything from `high` on is not.
    low = high = start
    while high < count and keys[high] < bound:
        low = high + one
        high = min(count, high + step)
        step += step
    if low == start:
        step = np.uint64(_NEAR)
        while low > 0:
            low -= min(low, step)
            if keys[low] < bound:
                break
            high = low
            step += step
    while high - low > _NEAR:
        middle = (low + high) >> one
        if keys[middle] < bound:
            low = middle + one
        else:
            high = middle
    below = np.uint64(0)
    for place in range(low, high):
        below += np.uint64(keys[place] < bound)
    return low + below
