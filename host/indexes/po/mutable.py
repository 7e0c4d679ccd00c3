"""The mutable part (SPO-Join 3.2): tuples since the last merge, and bit arrays over them.

Each predicate of a probe gives a bit array with a bit for each tuple, and their AND is the
answer. The paper finds the bits by a B+-tree for each field; so few tuples are compared sooner
than a tree is walked.
"""

import numpy as np
from numba import njit

from host.indexes.bits import first_one, ones
from host.indexes.po.order import Order
from host.indexes.po.part import Part
from host.two_keys import Rectangles, ascending

__all__ = ["Mutable"]

_ONE, _WORD = np.uint64(1), np.uint64(6)


class Mutable:
    """Tuples in the order of their arrival, at most `capacity` of them."""

    def __init__(self, capacity: int, tuples: np.dtype) -> None:
        self._keys = np.empty(capacity, tuples["key"])
        self._seconds = np.empty(capacity, tuples["second"])
        self._rids = np.empty(capacity, np.uint32)
        self._held = 0

    def __len__(self) -> int:
        return self._held

    def insert(self, tuples: np.ndarray) -> None:
        """Take tuples (host.two_keys) for which there is room."""
        end = self._held + len(tuples)
        for array, name in (
            (self._keys, "key"), (self._seconds, "second"), (self._rids, "rid")
        ):
            array[self._held : end] = tuples[name]
        self._held = end

    def bits(self, wanted: Rectangles) -> np.ndarray:
        """The AND of both predicates' bit arrays: uint64 of shape (rectangles, words)."""
        words = (self._held + 63) >> 6
        result = np.zeros((len(wanted), words), np.uint64)
        held = slice(self._held)
        _fill(self._keys[held], *wanted.first, result)
        both = np.zeros_like(result)
        _fill(self._seconds[held], *wanted.second, both)
        return result & both

    def counts(self, wanted: Rectangles) -> np.ndarray:
        """int64: tuples in each rectangle."""
        found: np.ndarray = _counts(self.bits(wanted))
        return found

    def pairs(self, wanted: Rectangles) -> tuple[np.ndarray, np.ndarray]:
        """(rectangle, rid) of every tuple in one."""
        bits = self.bits(wanted)
        which, slot = _list(bits, int(_counts(bits).sum()))
        return which, self._rids[slot]

    def as_part(self) -> Part:
        """The tuples as an immutable part (SPO-Join 3.3)."""
        held = slice(self._held)
        orders = []
        for keys in (self._keys[held], self._seconds[held]):
            order = ascending(keys)
            orders.append(Order(keys[order], self._rids[order]))
        return Part(*orders)

    def merge(self) -> Part:
        """All tuples as an immutable part; this one is empty then (Algorithm 1, step 5)."""
        part = self.as_part()
        self._held = 0
        return part

    def tuples(self) -> tuple[np.ndarray, np.ndarray]:
        """First keys and rids of all, in order of arrival."""
        return self._keys[: self._held].copy(), self._rids[: self._held].copy()


@njit(cache=True, nogil=True)
def _fill(keys, lo, hi, bits):  # type: ignore[no-untyped-def]
    """Set a bit for each key in each closed interval."""
    for n in range(len(lo)):
        for slot in range(np.uint64(len(keys))):
            inside = np.uint64(lo[n] <= keys[slot] <= hi[n])
            bits[n, slot >> _WORD] |= inside << (slot & np.uint64(63))


@njit(cache=True, nogil=True)
def _counts(bits):  # type: ignore[no-untyped-def]
    totals = np.zeros(len(bits), np.int64)
    for n in range(len(bits)):
        for word in bits[n]:
            totals[n] += np.int64(ones(word))
    return totals


@njit(cache=True, nogil=True)
def _list(bits, total):  # type: ignore[no-untyped-def]
    which, slot, put = np.empty(total, np.int64), np.empty(total, np.int64), 0
    for n in range(bits.shape[0]):
        for word in range(bits.shape[1]):
            rest = bits[n, word]
            while rest:
                which[put], slot[put] = n, (word << 6) + np.int64(first_one(rest))
                rest &= rest - _ONE
                put += 1
    return which, slot
