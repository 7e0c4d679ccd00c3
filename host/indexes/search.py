"""Searches in ascending arrays, compiled; the arrays' elements are int64."""

import numpy as np

from host.indexes.bits import ones
from host.indexes.compiling import compiled
from host.indexes.lanes import LANES, below

__all__ = ["keys_below", "lower_bound", "near_bound", "rebound", "upper_bound"]


@compiled
def lower_bound(keys, first, stop, key):  # type: ignore[no-untyped-def]
    """First place in [first, stop) whose key is at least `key`; `stop` if there is none."""
    count = stop - first
    while count > 0:
        half = count >> 1
        # Arithmetic instead of a branch: which way a search goes cannot be predicted.
        below = keys[first + half] < key
        first += (half + 1) * below
        count = half + (count - 2 * half - 1) * below
    return first


@compiled
def near_bound(keys, first, stop, key):  # type: ignore[no-untyped-def]
    """lower_bound, the last few keys compared at once.

    The array must have LANES elements from any place before `stop` on.
    """
    count = stop - first
    while count > LANES:
        half = count >> 1
        less = keys[first + half] < key
        first += (half + 1) * less
        count = half + (count - 2 * half - 1) * less
    return first + keys_below(keys, first, count, key)


@compiled
def keys_below(keys, first, count, key):  # type: ignore[no-untyped-def]
    """How many of the `count` keys from `first` on are less than `key`; of LANES at most."""
    if count <= 0:
        return 0
    known = (np.uint64(1) << np.uint64(min(count, LANES))) - np.uint64(1)
    return np.int64(ones(below(keys, first, key) & known))


@compiled
def upper_bound(keys, first, stop, key):  # type: ignore[no-untyped-def]
    """First place in [first, stop) whose key is greater than `key`; `stop` if there is none."""
    count = stop - first
    while count > 0:
        half = count >> 1
        below = keys[first + half] <= key
        first += (half + 1) * below
        count = half + (count - 2 * half - 1) * below
    return first


@compiled
def rebound(keys, first, start, stop, key):  # type: ignore[no-untyped-def]
    """lower_bound in [first, stop), by PanJoin's rebounding binary search (III-E).

    Forward from `start` in steps that double, then back by halves: near the place of the key
    before, where the keys of a batch ascend, and right wherever it is.
    """
    if start > first and keys[start - 1] >= key:
        return lower_bound(keys, first, start - 1, key)
    step = 1
    while start + step <= stop and keys[start + step - 1] < key:
        start += step
        step += step
    return lower_bound(keys, start, min(start + step, stop), key)
