"""Tuples in the order of one of their keys."""

from dataclasses import dataclass

import numpy as np
from numba import njit

__all__ = ["Order"]


@dataclass(frozen=True)
class Order:
    """Keys that ascend, and the rid of each."""

    keys: np.ndarray
    rids: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def merged(self, newer: "Order") -> "Order":
        """Both in one order; equal keys of this one come first."""
        keys = np.empty(len(self) + len(newer), self.keys.dtype)
        rids = np.empty(len(keys), np.uint32)
        _merge(self.keys, self.rids, newer.keys, newer.rids, keys, rids)
        return Order(keys, rids)

    def only(self, begin: int, end: int) -> "Order":
        """Those with a rid in [begin, end)."""
        chosen = (self.rids >= begin) & (self.rids < end)
        return Order(self.keys[chosen], self.rids[chosen])


@njit(cache=True, nogil=True)
def _merge(keys, rids, more, more_rids, into, into_rids):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    i, j = np.uint64(0), np.uint64(0)
    ends = np.uint64(len(keys)), np.uint64(len(more))
    for n in range(np.uint64(len(into))):
        if j == ends[1] or (i < ends[0] and keys[i] <= more[j]):
            into[n], into_rids[n] = keys[i], rids[i]
            i += one
        else:
            into[n], into_rids[n] = more[j], more_rids[j]
            j += one
