"""PO-Join as the paper has it, one tuple at a time: the baseline.

A fresh bit array for each tuple, filled over the run of the second predicate through the
permutation array, then scanned over the run of the first (section 3.4, steps 1 to 5).
"""

import numpy as np
from numba import njit

from host.indexes.bits import ones
from host.indexes.po.runs import Bounds

__all__ = ["per_tuple_counts"]


def per_tuple_counts(permutation: np.ndarray, runs: Bounds) -> np.ndarray:
    """int64: tuples in each rectangle (first, end, second first, second end)."""
    found: np.ndarray = _count(permutation, *runs)
    return found


@njit(cache=True, nogil=True)
def _count(permutation, first, end, low, high):  # type: ignore[no-untyped-def]
    one, rest, word_shift = np.uint64(1), np.uint64(63), np.uint64(6)
    bits = np.empty((len(permutation) >> 6) + 1, np.uint64)
    totals = np.zeros(len(first), np.int64)
    for n in range(len(first)):
        bits[:] = 0
        for second in range(low[n], high[n]):
            place = np.uint64(permutation[second])
            bits[place >> word_shift] |= one << (place & rest)
        if first[n] >= end[n]:
            continue
        begin, last = np.uint64(first[n]), np.uint64(end[n]) - one
        word, stop = begin >> word_shift, last >> word_shift
        bits[word] &= ~np.uint64(0) << (begin & rest)
        bits[stop] &= ~np.uint64(0) >> (rest - (last & rest))
        for n_word in range(word, stop + one):
            totals[n] += np.int64(ones(bits[n_word]))
    return totals
