"""A two-dimensional grid of positions: strips of the first order, each sorted by the second.

A band that is about as wide as a strip meets two or three of them, and in each a bucket gives the
run of its second predicate; only there the first one is compared. Strips have equal
numbers of tuples, not equal widths of keys: dense and empty regions, and floats, whose distances
are not those of their keys, all come out alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit

from host.indexes.bits import first_one, ones
from host.indexes.lanes import LANES, inside
from host.indexes.po.listing import Listing
from host.indexes.po.runs import Bounds

__all__ = ["Strips"]

#: A bucket should have 1 << 3 tuples of a strip.
_BUCKET_SHIFT = 3
#: So many are walked over rather than searched.
_WALK = 16
_NOWHERE = np.iinfo(np.uint32).max


@dataclass(frozen=True)
class Strips:
    """Strip n has the first positions from n << shift on; in it, second keys ascend.

    positions  in the first order
    keys       second keys
    edges      the second key that each bucket begins with
    starts     shape (strips, buckets + 1): where in a strip each bucket begins
    """

    shift: int
    positions: np.ndarray
    keys: np.ndarray
    edges: np.ndarray
    starts: np.ndarray

    @staticmethod
    def of(permutation: np.ndarray, shift: int, keys: np.ndarray) -> "Strips":
        """Of the first position and the key of each second position."""
        # Behind the last one there is room for a block without tuples.
        positions = np.full(len(keys) + LANES, _NOWHERE, np.uint32)
        own = np.full(len(keys) + LANES, np.iinfo(keys.dtype).max, keys.dtype)
        strips = (len(permutation) >> shift) + 1
        # Some tuples of a strip to a bucket, where both orders have nothing to do with each other.
        width = max(0, len(permutation).bit_length() - max(0, shift - _BUCKET_SHIFT))
        edges = keys[:: 1 << width].copy()
        starts = np.empty((strips, len(edges) + 1), np.uint32)
        _build(permutation, keys, np.uint64(shift), np.uint64(width), positions, own, starts)
        return Strips(shift, positions, own, edges, starts)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return np.uint64(self.shift), self.positions, self.keys, self.edges, self.starts

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

    def listings(self, runs: Bounds, most: int) -> Iterator[Listing]:
        """The positions in each rectangle, at most `most` at a time, or 16.

        What a listing holds is valid until the next.
        """
        rectangles = len(runs[0])
        state, ends = np.array([0, -1], np.int64), np.empty(rectangles, np.int64)
        room = np.empty(max(most, LANES), np.uint32)
        while state[0] < rectangles:
            place = int(state[0])
            held = _list(*self._arrays, *runs, state, ends, room)  # type: ignore[call-arg]
            stop = min(int(state[0]) + 1, rectangles)
            yield Listing(place, ends[place:stop], room[:held])

    def _check(self, permutation: np.ndarray, keys: np.ndarray) -> None:
        """Assert that each tuple is in its strip, and the strips in order; for tests."""
        by_position = np.empty_like(keys)
        by_position[permutation] = keys
        positions, own = self.positions[: len(keys)], self.keys[: len(keys)]
        assert (by_position[positions] == own).all()
        assert (np.sort(positions) == np.arange(len(keys))).all()
        strips = positions >> np.uint32(self.shift)
        assert (strips == np.arange(len(strips)) >> self.shift).all()
        rises = own[1:] >= own[:-1]
        assert (rises | (strips[1:] != strips[:-1])).all()
        for strip, bounds in enumerate(self.starts):
            begin, end = strip << self.shift, min((strip + 1) << self.shift, len(keys))
            assert bounds[0] == begin and bounds[-1] == end
            for edge, place in zip(self.edges, bounds, strict=False):
                assert (self.keys[begin:place] <= edge).all()
                assert (self.keys[place:end] >= edge).all()


@njit(cache=True, nogil=True)
def _build(permutation, keys, shift, width, positions, own, starts):  # type: ignore[no-untyped-def]
    count, one = np.uint64(len(permutation)), np.uint64(1)
    strips, buckets = np.uint64(starts.shape[0]), np.uint64(starts.shape[1])
    cursor = np.empty(strips, np.uint64)
    for strip in range(strips):
        cursor[strip] = min(count, strip << shift)
    for bucket in range(buckets):
        # Second keys ascend, so that every strip is filled up to where the bucket begins.
        for strip in range(strips):
            starts[strip, bucket] = cursor[strip]
        for second in range(min(count, bucket << width), min(count, (bucket + one) << width)):
            position = np.uint64(permutation[second])
            place = cursor[position >> shift]
            cursor[position >> shift] = place + one
            positions[place] = position
            own[place] = keys[second]


@njit(cache=True, nogil=True)
def _bucket(edges, bound):  # type: ignore[no-untyped-def]
    """The bucket from which on keys of at least `bound` may be: those before are all below.

    Guessed as if keys were spread evenly, and searched where they are not.
    """
    low, count, one = np.uint64(0), np.uint64(len(edges)), np.uint64(1)
    if bound <= edges[0]:
        return low
    last = len(edges) - 1
    span = np.float64(edges[last]) - np.float64(edges[0])
    if span > 0:
        share = (np.float64(bound) - np.float64(edges[0])) / span
        guess = np.uint64(last * min(share, 1.0))
        for near in range(guess - np.uint64(guess > 0), min(guess + np.uint64(2), count)):
            if edges[near] < bound and (near + one == count or not edges[near + one] < bound):
                return np.uint64(near)
    while count > 0:
        half = count >> one
        # Arithmetic instead of a branch: which way a search goes cannot be predicted.
        below = np.uint64(edges[low + half] < bound)
        low += (half + one) * below
        count = half + (count - half - half - one) * below
    return low - np.uint64(low > 0)


@njit(cache=True, nogil=True)
def _from(keys, low, high, bound):  # type: ignore[no-untyped-def]
    """First place in [low, high) with a key of at least `bound`, or `high`."""
    one = np.uint64(1)
    while high - low > _WALK:
        middle = (low + high) >> one
        if keys[middle] < bound:
            low = middle + one
        else:
            high = middle
    while low < high and keys[low] < bound:
        low += one
    return low


@njit(cache=True, nogil=True)
def _cost(  # type: ignore[no-untyped-def]
    shift, positions, keys, edges, starts, first, end, lo, hi
):
    count, one = np.uint64(len(keys) - LANES), np.uint64(1)
    met, seen = 0, 0
    for n in range(len(first)):
        if first[n] >= end[n]:
            continue
        bucket = _bucket(edges, lo[n])
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            low, high = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, bucket + one])
            place = _from(keys, low, high, lo[n])
            stop = min(count, (strip + one) << shift)
            met += 1
            while place < stop and keys[place] <= hi[n]:
                seen += 1
                place += one
    return met, seen


@njit(cache=True, nogil=True)
def _beyond(edges, bucket, bound):  # type: ignore[no-untyped-def]
    """The first bucket behind `bucket` without keys up to `bound`."""
    bucket += np.uint64(1)
    while bucket < np.uint64(len(edges)) and edges[bucket] <= bound:
        bucket += np.uint64(1)
    return bucket


@njit(cache=True, nogil=True)
def _limits(shift, strip, first, end):  # type: ignore[no-untyped-def]
    """Positions of [first, end) in a strip: the least and the largest.

    Tuples are looked at by blocks, and a block may reach into the next strip: not these.
    """
    one = np.uint64(1)
    least = max(np.uint64(first), strip << shift)
    largest = min(np.uint64(end), (strip + one) << shift) - one
    return np.uint32(least), np.uint32(largest)


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    shift, positions, keys, edges, starts, first, end, lo, hi, totals
):
    one = np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n]:
            continue
        bucket = _bucket(edges, lo[n])
        beyond = _beyond(edges, bucket, hi[n])
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            least, largest = _limits(shift, strip, first[n], end[n])
            begin, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
            for place in range(begin, stop, np.uint64(LANES)):
                found = inside(keys, place, lo[n], hi[n])
                totals[n] += np.int64(ones(found & inside(positions, place, least, largest)))


@njit(cache=True, nogil=True)
def _sum(  # type: ignore[no-untyped-def]
    shift, positions, keys, edges, starts, first, end, lo, hi, totals, weights
):
    one = np.uint64(1)
    for n in range(len(first)):
        if first[n] >= end[n]:
            continue
        bucket = _bucket(edges, lo[n])
        beyond = _beyond(edges, bucket, hi[n])
        for strip in range(np.uint64(first[n]) >> shift, ((end[n] - one) >> shift) + one):
            least, largest = _limits(shift, strip, first[n], end[n])
            begin, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
            for place in range(begin, stop, np.uint64(LANES)):
                found = inside(keys, place, lo[n], hi[n])
                found &= inside(positions, place, least, largest)
                while found:
                    totals[n] += weights[positions[place + first_one(found)]]
                    found &= found - one


@njit(cache=True, nogil=True)
def _list(  # type: ignore[no-untyped-def]
    shift, positions, keys, edges, starts, first, end, lo, hi, state, ends, room
):
    """Go on at `state` (rectangle, place) until there is no room; how many were put.

    ends  how many were put when each rectangle was done, or the room
    """
    one, lanes = np.uint64(1), np.uint64(LANES)
    n, begun, put, most = state[0], state[1], 0, len(room) - LANES
    while n < len(first):
        ends[n] = put
        if first[n] < end[n]:
            bucket = _bucket(edges, lo[n])
            beyond = _beyond(edges, bucket, hi[n])
            strip = np.uint64(begun if begun >= 0 else first[n]) >> shift
            while strip <= (end[n] - one) >> shift:
                least, largest = _limits(shift, strip, first[n], end[n])
                place, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
                if begun >= 0:
                    place, begun = np.uint64(begun), -1
                while place < stop:
                    if put > most:
                        state[0], state[1], ends[n] = n, place, put
                        return put
                    found = inside(keys, place, lo[n], hi[n])
                    found &= inside(positions, place, least, largest)
                    while found:
                        room[put] = positions[place + first_one(found)]
                        found &= found - one
                        put += 1
                    place += lanes
                strip += one
            ends[n] = put
        n += 1
    state[0], state[1] = n, -1
    return put
