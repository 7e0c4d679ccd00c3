"""PanJoin step 2, preprocessing: the tuples of a batch by key."""

from typing import NamedTuple

import numpy as np

__all__ = ["Sorted", "sorted_by_key"]

#: Words of which the upper half is a key and the lower half an offset.
_HALF, _LOWER = np.uint64(32), np.uint64(0xFFFF_FFFF)

#: Tuples from which on compiled code is worth its loading.
_LARGE_BATCH = 1 << 13


class Sorted(NamedTuple):
    """Tuples by (key, arrival).

    order   int64 offset of each in the batch
    keys    ascending
    tuples  both in one uint64, the offset above a key of 32 bits; None where nobody made it
    """

    order: np.ndarray
    keys: np.ndarray
    tuples: np.ndarray | None = None


def sorted_by_key(keys: np.ndarray, matchable: np.ndarray | None = None) -> Sorted:
    """The matchable tuples; without `matchable` all are."""
    narrow = keys.dtype.itemsize == 4 and len(keys) < 1 << 31
    offsets = None
    if matchable is not None and not matchable.all():
        offsets = np.flatnonzero(matchable)
    keys = keys if offsets is None else keys[offsets]
    if narrow and len(keys) >= _LARGE_BATCH:
        from host.radix import radix_sorted

        return Sorted(*radix_sorted(keys, offsets))
    offsets = np.arange(len(keys)) if offsets is None else offsets
    if narrow:
        # One sort of packed words is several times faster than an argsort.
        packed = keys.astype(np.int64)
        packed <<= 32
        packed |= offsets
        packed.sort()
        halves = packed.view(np.int32).reshape(len(packed), 2)[:, ::-1].copy()
        tuples = halves.reshape(-1).view(np.uint64)
        return Sorted(halves[:, 1].astype(np.int64), halves[:, 0].copy(), tuples)
    least, largest = (int(keys.min()), int(keys.max())) if len(keys) else (0, 0)
    if keys.dtype.itemsize == 8 and largest - least < 1 << 32:
        words = ((keys - least).view(np.uint64) << _HALF) | offsets.view(np.uint64)
        words.sort()
        return Sorted((words & _LOWER).view(np.int64), (words >> _HALF).view(np.int64) + least)
    order = np.argsort(keys, kind="stable")
    return Sorted(offsets[order], keys[order])
