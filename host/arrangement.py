"""Arrangement: a column of a subwindow in the order of its positions, compiled.

Runs of positions are then copied as they are. An engine with an insertion tier keeps a subwindow as
two sorted arrays, and the tuples of the second arrived after those of the first: when the one is
merged into the other, their columns are merged along, which costs a fraction of taking every value
from where it arrived.
"""

import numpy as np
from numba import njit

from host.indexes.lanes import LANES, merged, ones, seen
from host.pages import empty_pages
from host.rowstore import Words
from host.run_columns import SLACK, write_taken

__all__ = ["Arrangement"]

_STEP = np.uint64(LANES)
_ONE = np.uint64(1)


class Arrangement:
    """A column of one subwindow by position, for as long as tuples come and after that."""

    def __init__(self, kind: np.dtype) -> None:
        self._values = self._spare = np.empty(0, kind)
        self._main = self._count = 0  # positions of the first array, and of both
        self._bound = np.uint32(0)  # rids of the first array are below it, those of the second not

    def values(self, rids: np.ndarray, main: int) -> np.ndarray | None:
        """The column with SLACK behind it; None where the subwindow is not as it was arranged.

        `rids` has the rid of each position, `main` of them in the first array. A subwindow only
        takes tuples, so that numbers tell whether it did.
        """
        known = self._count == len(rids) and self._main == main
        return self._values if known else None

    def follow(self, rids: np.ndarray, main: int, words: Words, base: int) -> np.ndarray:
        """The same after the tuples that came meanwhile; rid 0 is row `base` of `words`."""
        known = self.values(rids, main)
        if known is not None:
            return known
        count, kept = len(rids), 0
        if main == self._main:
            out, kept = self._roomy(count), main
        elif main == self._count:
            # What was in the second array then is in the first now, and nothing else.
            out, kept = _reserved(self._spare, count), main
            parts = self._values[: self._main], self._values[self._main :]
            _merge(rids[:main], self._bound, *parts, out)
            self._spare = self._values
        else:
            out = _reserved(self._values, count)
        if main == count:
            # It may take no more: then this is what is kept of it.
            out, self._spare = _fitted(out, count, kept), self._spare[:0].copy()
        write_taken(words.ring, words.place(base), rids[kept:], out[kept:])
        self._values, self._main, self._count = out, main, count
        self._bound = rids[main:].min() if main < count else np.uint32(0xFFFF_FFFF)
        return out

    def _roomy(self, count: int) -> np.ndarray:
        """Room for so many that begins with the first array."""
        out = _reserved(self._values, count)
        if out is not self._values:
            out[: self._main] = self._values[: self._main]
        return out


def _reserved(held: np.ndarray, count: int) -> np.ndarray:
    """The same room if it is enough, else more than enough: it is asked for again and again."""
    needed = count + SLACK
    return held if len(held) >= needed else empty_pages(needed + needed // 2, held.dtype)


def _fitted(out: np.ndarray, count: int, kept: int) -> np.ndarray:
    if len(out) == count + SLACK:
        return out
    fitted = empty_pages(count + SLACK, out.dtype)
    fitted[:kept] = out[:kept]
    return fitted


@njit(cache=True, nogil=True)
def _merge(rids, bound, main, tier, out):  # type: ignore[no-untyped-def]
    """Each position's value from the array that its rid was in; both keep their order."""
    position, old, new = np.uint64(0), np.uint64(0), np.uint64(0)
    while position + _STEP <= np.uint64(len(rids)):
        bits = seen(rids, position, np.uint32(0), bound)
        merged(out, position, main, old, tier, new, bits)
        count = ones(bits)
        old, new, position = old + count, new + _STEP - count, position + _STEP
    while position < np.uint64(len(rids)):
        if rids[position] < bound:
            out[position] = main[old]
            old += _ONE
        else:
            out[position] = tier[new]
            new += _ONE
        position += _ONE
