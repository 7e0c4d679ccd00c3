"""Offsets of a batch's bounds in a sorted array (SPO-Join's offset arrays, Algorithm 3).

The paper's listing compares by >= whatever the operator is, and starts over for every key that
lands at 0. Here a closed interval [lo, hi] has two offsets: the first place with a key of at
least lo, and the first with a key above hi. With duplicates these two differ, and so < and <=,
whose intervals differ, get the offsets that are theirs.
"""

import numpy as np
from numba import njit

__all__ = ["offsets"]

#: So many keys are walked over before the search goes on in larger steps.
_NEAR = 32


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
    place, count, one = np.uint64(0), np.uint64(len(keys)), np.uint64(1)
    for n in range(len(bound)):
        if len(beyond) and beyond[n]:
            found[n] = count
            continue
        if place == 0 or keys[place - one] < bound[n]:
            near = min(count, place + np.uint64(_NEAR))
            while place < near and keys[place] < bound[n]:
                place += one
            if place == near:
                place = _forward(keys, place, bound[n])
        else:
            place = _backward(keys, place - one, bound[n])
        found[n] = place


@njit(cache=True, nogil=True)
def _forward(keys, low, bound):  # type: ignore[no-untyped-def]
    """The same from `low` on, in steps that double (PanJoin's rebounding search)."""
    count, high, step = np.uint64(len(keys)), low, np.uint64(_NEAR)
    while high < count and keys[high] < bound:
        low = high + np.uint64(1)
        high = min(count, high + step)
        step += step
    return _search(keys, low, high, bound)


@njit(cache=True, nogil=True)
def _backward(keys, high, bound):  # type: ignore[no-untyped-def]
    """The same before `high`, whose key is not below the bound."""
    low, step = high, np.uint64(_NEAR)
    while low > 0 and not keys[low - np.uint64(1)] < bound:
        high = low - np.uint64(1)
        low -= min(low, step)
        step += step
    return _search(keys, low, high, bound)


@njit(cache=True, nogil=True)
def _search(keys, low, high, bound):  # type: ignore[no-untyped-def]
    """The same in [low, high]: what is before is below the bound, from `high` on nothing is."""
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if keys[middle] < bound:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low
