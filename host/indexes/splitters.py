"""The splitters of a RaP-Table, and how they follow the keys (PanJoin III-B1, Algorithm 1)."""

import numpy as np
from numba import njit

__all__ = ["adjusted", "even_splitters", "imbalance"]


def even_splitters(partitions: int, key_bits: int) -> np.ndarray:
    """P - 1 splitters that cut the type's range evenly: all that is known before the first key."""
    step = (1 << key_bits) // partitions
    lowest = -(1 << (key_bits - 1))
    return np.array([lowest + step * place - 1 for place in range(1, partitions)], np.int64)


def imbalance(counts: np.ndarray) -> float:
    """Mean absolute error of the partitions' sizes, as a share of the even size (Figure 10f)."""
    even = counts.sum() / len(counts)
    return float(np.abs(counts - even).mean() / even) if even else 0.0


@njit(cache=True, nogil=True)
def adjusted(count, least, largest, partitions):  # type: ignore[no-untyped-def]
    """New splitters from the three histograms of the subwindow before; O(P).

    Partition p takes the keys above splitter p - 1 up to splitter p. Algorithm 1 as it is meant:
    the print leaves out `+ min_i` (a splitter is a key of partition i, not a distance), and it
    begins with j = 0 where only bal_1 is known.
    """
    total = count.sum()
    splitters = np.empty(partitions - 1, np.int64)
    before, place, part = 0, 1, 0
    while place < partitions:
        balance = total * place / partitions  # bal_j
        while before + count[part] < balance or count[part] == 0:
            before += count[part]
            part += 1
        share = (balance - before) / count[part]
        # The distance of two keys may need all 64 bits: it is unsigned, and so is its share.
        width = np.uint64(largest[part]) - np.uint64(least[part])
        offset = width
        if share < 1.0:
            offset = min(np.uint64(np.float64(width) * share), width)
        splitters[place - 1] = np.int64(np.uint64(least[part]) + offset)
        place += 1
    return splitters
