"""A batch's 32-bit keys sorted by their digits, compiled: for batches that are worth loading it."""

import numpy as np
from numba import njit

__all__ = ["radix_sorted"]

_DIGITS = 1 << 11
_LOW = np.uint32(_DIGITS - 1)
_SIGN = np.uint32(1 << 31)
_NONE = np.empty(0, np.int64)


def radix_sorted(
    keys: np.ndarray, offsets: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets by (key, place), their keys, and both in one uint64, the offset above the key.

    int32 keys; offsets ascend and fit 32 bits, without them they are the places.
    """
    count = len(keys)
    order, ascending = np.empty(count, np.int64), np.empty(count, np.int32)
    tuples, spare = np.empty(count, np.uint64), np.empty(count, np.uint64)
    _sort(keys, _NONE if offsets is None else offsets, order, ascending, tuples, spare)
    return order, ascending, tuples


@njit(cache=True, nogil=True)
def _sort(keys, offsets, order, ascending, tuples, spare):  # type: ignore[no-untyped-def]
    """Digits of 11, 11 and 10 bits, the least first, which keeps equal keys as they came."""
    count, placed = np.uint64(len(keys)), len(offsets) < len(keys)
    starts = np.zeros((3, _DIGITS), np.uint32)
    for i in range(count):
        word = np.uint32(keys[i]) ^ _SIGN
        starts[0, word & _LOW] += np.uint32(1)
        starts[1, (word >> np.uint32(11)) & _LOW] += np.uint32(1)
        starts[2, word >> np.uint32(22)] += np.uint32(1)
    for digit in range(3):
        before = np.uint32(0)
        for value in range(_DIGITS):
            here = starts[digit, value]
            starts[digit, value] = before
            before += here
    for i in range(count):
        word = np.uint32(keys[i]) ^ _SIGN
        place = starts[0, word & _LOW]
        starts[0, word & _LOW] = place + np.uint32(1)
        offset = np.uint64(i) if placed else np.uint64(offsets[i])
        tuples[place] = (offset << np.uint64(32)) | np.uint64(word)
    for i in range(count):
        middle = np.uint32(tuples[i] >> np.uint64(11)) & _LOW
        place = starts[1, middle]
        starts[1, middle] = place + np.uint32(1)
        spare[place] = tuples[i]
    for i in range(count):
        both = spare[i]
        word = np.uint32(both)
        place = starts[2, word >> np.uint32(22)]
        starts[2, word >> np.uint32(22)] = place + np.uint32(1)
        tuples[place] = both ^ np.uint64(_SIGN)
        ascending[place] = np.int32(word ^ _SIGN)
        order[place] = np.int64(both >> np.uint64(32))
