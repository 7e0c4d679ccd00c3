"""How many of a stretch of numbers lie below a bound, and what goes with them: a wavelet matrix.

The structure of "The wavelet matrix" (Information Systems 47, 2015), for a batch of questions at
once. One bit of the numbers is looked at on each level, so a question costs the logarithm of
what there is, however long the stretch is.
"""

import numpy as np
from numba import njit

__all__ = ["RankMatrix"]


class RankMatrix:
    """Over `numbers`, each of 0 to len - 1 once, and int64 `weights` that go with them."""

    def __init__(self, numbers: np.ndarray, weights: np.ndarray) -> None:
        self._count = len(numbers)
        levels = max(1, (self._count - 1).bit_length())
        words = np.ascontiguousarray(numbers, np.uint32)
        values = np.ascontiguousarray(weights, np.int64)
        self._zeros, self._sums = _build(words, values, levels)

    def below(self, begin: np.ndarray, end: np.ndarray, bound: np.ndarray) -> np.ndarray:
        """Weights of the numbers below `bound` at the places [begin, end), for each question."""
        clipped = np.clip(bound, 0, self._count)
        return _below(self._zeros, self._sums, begin, end, clipped)


@njit(cache=True, nogil=True)
def _build(numbers, weights, levels):  # type: ignore[no-untyped-def]
    """For each level, zeros before each place, and sums of weights in the order of that level."""
    count = len(numbers)
    zeros = np.zeros((levels, count + 1), np.uint32)
    sums = np.zeros((levels + 1, count + 1), np.int64)
    for place in range(count):
        sums[0, place + 1] = sums[0, place] + weights[place]
    for level in range(levels):
        shift = levels - 1 - level
        for place in range(count):
            bit = (numbers[place] >> shift) & 1
            zeros[level, place + 1] = zeros[level, place] + (1 - bit)
        # Numbers with a zero go before those with a one, both in their order.
        next_zero, next_one = 0, zeros[level, count]
        moved_numbers, moved_weights = np.empty_like(numbers), np.empty_like(weights)
        for place in range(count):
            if (numbers[place] >> shift) & 1:
                moved_numbers[next_one], moved_weights[next_one] = numbers[place], weights[place]
                next_one += 1
            else:
                moved_numbers[next_zero], moved_weights[next_zero] = numbers[place], weights[place]
                next_zero += 1
        numbers, weights = moved_numbers, moved_weights
        for place in range(count):
            sums[level + 1, place + 1] = sums[level + 1, place] + weights[place]
    return zeros, sums


@njit(cache=True, nogil=True)
def _below(zeros, sums, begin, end, bound):  # type: ignore[no-untyped-def]
    levels, count = zeros.shape[0], zeros.shape[1] - 1
    result = np.zeros(len(begin), np.int64)
    for question in range(len(begin)):
        low, high, limit = begin[question], end[question], bound[question]
        if limit >= count:
            result[question] = sums[0, high] - sums[0, low]
            continue
        if limit <= 0:
            continue
        total = 0
        for level in range(levels):
            low_zeros, high_zeros = np.int64(zeros[level, low]), np.int64(zeros[level, high])
            if (limit >> (levels - 1 - level)) & 1:
                # All that have a zero here are below; go on among those with a one.
                total += sums[level + 1, high_zeros] - sums[level + 1, low_zeros]
                ones = np.int64(zeros[level, count])
                low, high = ones + low - low_zeros, ones + high - high_zeros
            else:
                low, high = low_zeros, high_zeros
        result[question] = total
    return result
