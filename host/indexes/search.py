"""Searches in ascending arrays, compiled; the arrays' elements are int64."""

from host.indexes.compiling import compiled

__all__ = ["lower_bound", "rebound", "upper_bound"]


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
