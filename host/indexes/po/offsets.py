"""Offsets of a batch's bounds in a sorted array (SPO-Join's offset arrays, Algorithm 3).

The paper's listing compares by >= whatever the operator is, and starts over for every key that
lands at 0. Here a closed interval [lo, hi] has two offsets: the first place with a key of at
least lo, and the first with a key above hi. With duplicates these two differ, and so < and <=,
whose intervals differ, get the offsets that are theirs.
"""

import numpy as np
from numba import njit

from host.indexes.bits import ones
from host.indexes.lanes import LANES, below

__all__ = ["offsets"]

#: The first step of a search that goes on in larger ones.
_NEAR = 16


def offsets(keys: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run [first, end) of the ascending `keys` in each closed interval; empty if lo > hi.

    Bounds that ascend or descend cost little, others a binary search each.
    """
    first = np.empty(len(lo), np.uint32)
    end = np.empty(len(lo), np.uint32)
    _seek_all(keys, lo, hi, np.iinfo(keys.dtype).max, first, end)
    return first, end


@njit(cache=True, nogil=True)
def _seek_all(keys, lo, hi, largest, first, end):  # type: ignore[no-untyped-def]
    """Both ends in one walk: the two searches wait for their keys at the same time."""
    at = to = np.uint64(0)
    for n in range(len(lo)):
        at = _seek(keys, at, lo[n])
        # A key is above hi if it is at least hi + 1; above the largest there is none.
        stop = np.uint64(len(keys))
        if hi[n] != largest:
            stop = to = _seek(keys, to, hi[n] + 1)
        first[n], end[n] = at, max(at, stop)


@njit(cache=True, nogil=True)
def _seek(keys, place, bound):  # type: ignore[no-untyped-def]
    """First place with a key of at least `bound`, sooner if it is near `place`."""
    one, lanes = np.uint64(1), np.uint64(LANES)
    if place > 0 and not keys[place - one] < bound:
        return _backward(keys, place - one, bound)
    more = near = lanes + lanes
    if place + near <= np.uint64(len(keys)):
        # Two blocks at once: whether the second is needed cannot be foreseen.
        more = ones(below(keys, place, bound)) + ones(below(keys, place + lanes, bound))
        place += more
    return _forward(keys, place, bound) if more == near else place


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
