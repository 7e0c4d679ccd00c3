"""A two-dimensional grid of positions: strips of the first order, each sorted by the second.

A band that is about as wide as a strip meets two or three of them, and in each a binary search
gives the run of its second predicate; only there the first one is compared. Strips have equal
numbers of tuples, not equal widths of keys: dense and empty regions, and floats, whose distances
are not those of their keys, all come out alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from host.indexes.po.runs import Bounds

__all__ = ["Strips"]

#: A bucket should have 1 << 3 tuples of a strip.
_BUCKET_SHIFT = 3
#: So many are walked over rather than searched.
_WALK = 16


@dataclass(frozen=True)
class Strips:
    """Strip n has the positions from n << shift on; in it, `seconds` ascend.

    positions  in the first order
    seconds    the same tuple's position in the second order
    starts     shape (strips, buckets + 1): where each bucket of second positions begins
    width      a bucket has 1 << width second positions
    """

    shift: int
    positions: np.ndarray
    seconds: np.ndarray
    starts: np.ndarray
    width: int

    @staticmethod
    def of(permutation: np.ndarray, shift: int) -> "Strips":
        """Of the permutation, which gives the first position of each second one."""
        positions, seconds = np.empty_like(permutation), np.empty_like(permutation)
        strips = (len(permutation) >> shift) + 1
        # Some tuples of a strip to a bucket, where both orders have nothing to do with each other.
        width = max(0, len(permutation).bit_length() - max(0, shift - _BUCKET_SHIFT))
        starts = np.empty((strips, (len(permutation) >> width) + 2), np.uint32)
        _build(permutation, np.uint64(shift), np.uint64(width), positions, seconds, starts)
        return Strips(shift, positions, seconds, starts, width)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return (
            np.uint64(self.shift), np.uint64(self.width), self.positions, self.seconds, self.starts
        )

    def cost(self, runs: Bounds) -> tuple[int, int]:
        """Strips that these rectangles meet, and tuples that are looked at in them."""
        met, seen = _cost(*self._arrays, *runs)  # type: ignore[call-arg]
        return int(met), int(seen)

    def counts(self, runs: Bounds, totals: np.ndarray) -> None:
        """Add to `totals` the tuples in each rectangle."""
        _count(*self._arrays, *runs, totals)  # type: ignore[call-arg]

    def sums(
        self, runs: Bounds, totals: np.ndarray, weights: np.ndarray
    ) -> None:
        """The same for sums of `weights`, int64 by first position."""
        _sum(*self._arrays, *runs, totals, weights)  # type: ignore[call-arg]

    def listed(
        self, runs: Bounds, most: int, probe: np.ndarray, rids: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, rid) of every tuple in a rectangle, in arrays of at most `most`.

        `probe` is of each rectangle, `rids` of each first position.
        """
        state = np.array([0, -1], np.int64)
        while state[0] < len(probe):
            which, found = np.empty(most, np.int64), np.empty(most, np.uint32)
            held = _list(  # type: ignore[call-arg]
                *self._arrays, *runs, probe, rids, state, which, found
            )
            yield which[:held], found[:held]

    def _check(self, permutation: np.ndarray) -> None:
        """Assert that each tuple is in its strip, and the strips in order; for tests."""
        assert (permutation[self.seconds] == self.positions).all()
        strips = self.positions >> np.uint32(self.shift)
        assert (strips == np.arange(len(strips)) >> self.shift).all()
        rises = self.seconds[1:] > self.seconds[:-1]
        assert (rises | (strips[1:] != strips[:-1])).all()
        for strip, bounds in enumerate(self.starts):
            own = self.seconds[strip << self.shift : (strip + 1) << self.shift]
            edges = np.arange(len(bounds)) << self.width
            assert (bounds == (strip << self.shift) + np.searchsorted(own, edges)).all()


@njit(cache=True, nogil=True)
def _build(permutation, shift, width, positions, seconds, starts):  # type: ignore[no-untyped-def]
    count, one = np.uint64(len(permutation)), np.uint64(1)
    strips, buckets = np.uint64(starts.shape[0]), np.uint64(starts.shape[1])
    cursor = np.empty(strips, np.uint64)
    for strip in range(strips):
        cursor[strip] = strip << shift
    for bucket in range(buckets):
        # Second positions ascend, so that every strip is filled up to where the bucket begins.
        for strip in range(strips):
            starts[strip, bucket] = cursor[strip]
        for second in range(min(count, bucket << width), min(count, (bucket + one) << width)):
            position = np.uint64(permutation[second])
            place = cursor[position >> shift]
            cursor[position >> shift] = place + one
            positions[place] = position
            seconds[place] = second


@njit(cache=True, nogil=True)
def _from(seconds, starts, width, strip, second):  # type: ignore[no-untyped-def]
    """First place of the strip with a second position of at least `second`."""
    one, bucket = np.uint64(1), np.uint64(second) >> width
    low, high = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, bucket + one])
    while high - low > _WALK:
        middle = (low + high) >> one
        if seconds[middle] < second:
            low = middle + one
        else:
            high = middle
    while low < high and seconds[low] < second:
        low += one
    return low


@njit(cache=True, nogil=True)
def _cost(  # type: ignore[no-untyped-def]
    shift, width, positions, seconds, starts, first, end, low, high
):
    one = np.uint64(1)
    met, seen = 0, 0
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            begin = _from(seconds, starts, width, strip, low[n])
            met += 1
            seen += _from(seconds, starts, width, strip, high[n]) - begin
    return met, seen


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    shift, width, positions, seconds, starts, first, end, low, high, totals
):
    count, one = np.uint64(len(seconds)), np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        total = 0
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            stop = min(count, (strip + one) << shift)
            place = _from(seconds, starts, width, strip, low[n])
            while place < stop and seconds[place] < high[n]:
                total += first[n] <= positions[place] < end[n]
                place += one
        totals[n] += total


@njit(cache=True, nogil=True)
def _sum(  # type: ignore[no-untyped-def]
    shift, width, positions, seconds, starts, first, end, low, high, totals, weights
):
    count, one = np.uint64(len(seconds)), np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n] or low[n] >= high[n]:
            continue
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            stop = min(count, (strip + one) << shift)
            place = _from(seconds, starts, width, strip, low[n])
            while place < stop and seconds[place] < high[n]:
                if first[n] <= positions[place] < end[n]:
                    totals[n] += weights[positions[place]]
                place += one


@njit(cache=True, nogil=True)
def _list(  # type: ignore[no-untyped-def]
    shift, width, positions, seconds, starts, first, end, low, high, probe, rids, state,
    which, found,
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
                    place = _from(seconds, starts, width, strip, low[n])
                while place < stop and seconds[place] < high[n]:
                    if first[n] <= positions[place] < end[n]:
                        if put == len(which):
                            state[0], state[1] = n, place
                            return put
                        which[put] = probe[n]
                        found[put] = rids[positions[place]]
                        put += 1
                    place += one
                strip += one
        n += 1
    state[0], state[1] = n, -1
    return put
