"""A two-dimensional grid of positions: strips of the first order, each sorted by the second.

A band that is about as wide as a strip meets two or three of them, and in each a binary search
gives the run of its second predicate; only there the first one is compared. Strips have equal
numbers of tuples, not equal widths of keys: dense and empty regions, and floats, whose distances
are not those of their keys, all come out alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit

from host.indexes.po.runs import Bounds

__all__ = ["Strips"]


@dataclass(frozen=True)
class Strips:
    """Strip n has the positions from n << shift on; in it, `seconds` ascend.

    positions  in the first order
    seconds    the same tuple's position in the second order
    """

    shift: int
    positions: np.ndarray
    seconds: np.ndarray

    @staticmethod
    def of(permutation: np.ndarray, shift: int) -> "Strips":
        """Of the permutation, which gives the first position of each second one."""
        positions, seconds = np.empty_like(permutation), np.empty_like(permutation)
        _build(permutation, np.uint64(shift), positions, seconds)
        return Strips(shift, positions, seconds)

    def cost(self, runs: Bounds) -> tuple[int, int]:
        """Strips that these rectangles meet, and tuples that are looked at in them."""
        first, end, low, high = runs
        met, seen = _cost(np.uint64(self.shift), self.seconds, first, end, low, high)
        return int(met), int(seen)

    def counts(self, runs: Bounds, totals: np.ndarray) -> None:
        """Add to `totals` the tuples in each rectangle."""
        first, end, low, high = runs
        shift = np.uint64(self.shift)
        _count(shift, self.positions, self.seconds, first, end, low, high, totals)

    def sums(
        self, runs: Bounds, totals: np.ndarray, weights: np.ndarray
    ) -> None:
        """The same for sums of `weights`, int64 by first position."""
        first, end, low, high = runs
        shift = np.uint64(self.shift)
        _sum(shift, self.positions, self.seconds, first, end, low, high, totals, weights)

    def listed(
        self, runs: Bounds, most: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(rectangle, first position) of every tuple in one, in arrays of at most `most`."""
        state = np.array([0, -1], np.int64)
        first, end, low, high = runs
        shift = np.uint64(self.shift)
        while state[0] < len(first):
            which, position = np.empty(most, np.int64), np.empty(most, np.uint32)
            held = _list(
                shift, self.positions, self.seconds, first, end, low, high, state, which, position
            )
            yield which[:held], position[:held]

    def _check(self, permutation: np.ndarray) -> None:
        """Assert that each tuple is in its strip, and the strips in order; for tests."""
        assert (permutation[self.seconds] == self.positions).all()
        strips = self.positions >> np.uint32(self.shift)
        assert (strips == np.arange(len(strips)) >> self.shift).all()
        rises = self.seconds[1:] > self.seconds[:-1]
        assert (rises | (strips[1:] != strips[:-1])).all()


@njit(cache=True, nogil=True)
def _build(permutation, shift, positions, seconds):  # type: ignore[no-untyped-def]
    count = np.uint64(len(permutation))
    cursor = np.empty((count >> shift) + np.uint64(1), np.uint64)
    for strip in range(np.uint64(len(cursor))):
        cursor[strip] = strip << shift
    for second in range(count):
        position = np.uint64(permutation[second])
        place = cursor[position >> shift]
        cursor[position >> shift] = place + np.uint64(1)
        positions[place] = position
        seconds[place] = second


@njit(cache=True, nogil=True)
def _bound(seconds, begin, stop, second):  # type: ignore[no-untyped-def]
    """First place in [begin, stop) with a second of at least `second`."""
    one = np.uint64(1)
    count = stop - begin
    while count > 0:
        half = count >> one
        # Arithmetic instead of a branch: which way a search goes cannot be predicted.
        before = np.uint64(seconds[begin + half] < second)
        begin += (half + one) * before
        count = half + (count - half - half - one) * before
    return begin


@njit(cache=True, nogil=True)
def _cost(shift, seconds, first, end, low, high):  # type: ignore[no-untyped-def]
    count, one = np.uint64(len(seconds)), np.uint64(1)
    met, seen = 0, 0
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            stop = min(count, (strip + one) << shift)
            begin = _bound(seconds, strip << shift, stop, low[n])
            met += 1
            seen += _bound(seconds, begin, stop, high[n]) - begin
    return met, seen


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    shift, positions, seconds, first, end, low, high, totals
):
    count, one = np.uint64(len(seconds)), np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        total = 0
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            stop = min(count, (strip + one) << shift)
            place = _bound(seconds, strip << shift, stop, low[n])
            while place < stop and seconds[place] < high[n]:
                total += first[n] <= positions[place] < end[n]
                place += one
        totals[n] += total


@njit(cache=True, nogil=True)
def _sum(  # type: ignore[no-untyped-def]
    shift, positions, seconds, first, end, low, high, totals, weights
):
    count, one = np.uint64(len(seconds)), np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            stop = min(count, (strip + one) << shift)
            place = _bound(seconds, strip << shift, stop, low[n])
            while place < stop and seconds[place] < high[n]:
                if first[n] <= positions[place] < end[n]:
                    totals[n] += weights[positions[place]]
                place += one


@njit(cache=True, nogil=True)
def _list(  # type: ignore[no-untyped-def]
    shift, positions, seconds, first, end, low, high, state, which, position
):
    """Go on at `state` (rectangle, place) until the arrays are full; how many were put."""
    count, one = np.uint64(len(seconds)), np.uint64(1)
    n, begun, put = state[0], state[1], 0
    while n < len(first):
        if first[n] < end[n] and low[n] < high[n]:
            strip = np.uint64(begun if begun >= 0 else first[n]) >> shift
            last = (end[n] - one) >> shift
            while strip <= last:
                stop = min(count, (strip + one) << shift)
                if begun >= 0:
                    place, begun = np.uint64(begun), -1
                else:
                    place = _bound(seconds, strip << shift, stop, low[n])
                while place < stop and seconds[place] < high[n]:
                    if first[n] <= positions[place] < end[n]:
                        if put == len(which):
                            state[0], state[1] = n, place
                            return put
                        which[put] = n
                        position[put] = positions[place]
                        put += 1
                    place += one
                strip += one
        n += 1
    state[0], state[1] = n, -1
    return put
