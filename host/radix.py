"""A batch's 32-bit keys sorted by their digits, compiled: for batches that are worth loading it."""

import numpy as np
from numba import njit

__all__ = ["radix_sorted"]

_BITS = 11
_DIGITS = 1 << _BITS
_PASSES = 3


def radix_sorted(keys: np.ndarray, offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets by (key, place), and their keys; int32 keys, offsets ascend and fit 31 bits."""
    count = len(keys)
    words = np.empty((2, count), np.uint64)
    order, ascending = np.empty(count, np.int64), np.empty(count, np.int32)
    _sort(keys, offsets, words[0], words[1], order, ascending)
    return order, ascending


@njit(cache=True, nogil=True)
def _sort(keys, offsets, here, there, order, ascending):  # type: ignore[no-untyped-def]
    """Least digit first, which keeps equal keys in the order that they came in."""
    mask, half = np.uint32(_DIGITS - 1), np.uint64(32)
    starts = np.zeros((_PASSES, _DIGITS), np.uint32)
    for n in range(len(keys)):
        # Negative keys sort before the others when their sign is turned round.
        key = np.uint32(keys[n]) ^ np.uint32(1 << 31)
        here[n] = np.uint64(key) << half | np.uint64(offsets[n])
        for digit in range(_PASSES):
            starts[digit, (key >> np.uint32(_BITS * digit)) & mask] += np.uint32(1)
    for digit in range(_PASSES):
        place = np.uint32(0)
        for value in range(_DIGITS):
            held = starts[digit, value]
            starts[digit, value] = place
            place += held
    for digit in range(_PASSES):
        shift = half + np.uint64(_BITS * digit)
        for n in range(len(here)):
            value = (here[n] >> shift) & np.uint64(mask)
            place = starts[digit, value]
            starts[digit, value] = place + np.uint32(1)
            there[np.uint64(place)] = here[n]
        here, there = there, here
    for n in range(len(here)):
        order[n] = here[n] & np.uint64(0xFFFF_FFFF)
        ascending[n] = np.int32(np.uint32(here[n] >> half) ^ np.uint32(1 << 31))
