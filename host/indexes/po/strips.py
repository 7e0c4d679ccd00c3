"""A two-dimensional grid of tuples: strips of the first order, each sorted by the second.

A band that is about as wide as a strip meets two or three of them, and in each a bucket gives the
run of its second predicate; only there both keys are compared. Strips have equal
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
from host.two_keys import Rectangles

__all__ = ["Strips"]

#: A bucket should have 1 << 3 tuples of a strip.
_BUCKET_SHIFT = 3
#: So many are walked over rather than searched.
_WALK = 16


@dataclass(frozen=True)
class Strips:
    """Strip n has the first positions from n << shift on; in it, second keys ascend.

    heads      the first key that each strip begins with
    positions  in the first order
    firsts     first keys
    keys       second keys
    edges      the second key that each bucket begins with
    starts     shape (strips, buckets + 1): where in a strip each bucket begins
    """

    shift: int
    heads: np.ndarray
    positions: np.ndarray
    firsts: np.ndarray
    keys: np.ndarray
    edges: np.ndarray
    starts: np.ndarray

    @staticmethod
    def of(permutation: np.ndarray, shift: int, firsts: np.ndarray, keys: np.ndarray) -> "Strips":
        """Of first keys in their order, second keys in theirs, and the first position of each."""
        count = len(permutation)
        # Behind the last one there is room for a block; what is in it is never taken.
        positions = np.zeros(count + LANES, np.uint32)
        own_firsts, own = (np.zeros(count + LANES, column.dtype) for column in (firsts, keys))
        # Some tuples of a strip to a bucket, where both orders have nothing to do with each other.
        width = max(0, count.bit_length() - max(0, shift - _BUCKET_SHIFT))
        heads, edges = firsts[:: 1 << shift].copy(), keys[:: 1 << width].copy()
        starts = np.empty((len(heads), len(edges) + 1), np.uint32)
        _build(
            permutation, firsts, keys, np.uint64(shift), np.uint64(width),
            positions, own_firsts, own, starts,
        )
        return Strips(shift, heads, positions, own_firsts, own, edges, starts)

    @property
    def _arrays(self) -> tuple[Any, ...]:
        return self.heads, self.positions, self.firsts, self.keys, self.edges, self.starts

    def cost(self, wanted: Rectangles) -> tuple[int, int]:
        """Strips that these rectangles meet, and tuples that are looked at in them."""
        met, seen = _cost(*self._arrays, *_bounds(wanted))
        return int(met), int(seen)

    def counts(self, wanted: Rectangles, totals: np.ndarray) -> None:
        """Add to `totals` the tuples in each rectangle."""
        _count(*self._arrays, *_bounds(wanted), totals)  # type: ignore[call-arg]

    def sums(self, wanted: Rectangles, totals: np.ndarray, weights: np.ndarray) -> None:
        """The same for sums of `weights`, int64 by first position."""
        _sum(*self._arrays, *_bounds(wanted), totals, weights)  # type: ignore[call-arg]

    def listings(self, wanted: Rectangles, most: int) -> Iterator[Listing]:
        """The positions in each rectangle, at most `most` at a time, or 16.

        What a listing holds is valid until the next.
        """
        state, ends = np.array([0, -1, 0], np.int64), np.empty(len(wanted), np.int64)
        room = np.empty(max(most, LANES), np.uint32)
        while state[0] < len(wanted):
            place = int(state[0])
            held = _list(  # type: ignore[call-arg]
                *self._arrays, *_bounds(wanted), state, ends, room
            )
            stop = min(int(state[0]) + 1, len(wanted))
            yield Listing(place, ends[place:stop], room[:held])

    def _check(self, permutation: np.ndarray, firsts: np.ndarray, keys: np.ndarray) -> None:
        """Assert that each tuple is in its strip, and the strips in order; for tests."""
        by_position = np.empty_like(keys)
        by_position[permutation] = keys
        positions, own = self.positions[: len(keys)], self.keys[: len(keys)]
        assert (by_position[positions] == own).all()
        assert (firsts[positions] == self.firsts[: len(keys)]).all()
        assert (np.sort(positions) == np.arange(len(keys))).all()
        strips = positions >> np.uint32(self.shift)
        assert (strips == np.arange(len(strips)) >> self.shift).all()
        rises = own[1:] >= own[:-1]
        assert (rises | (strips[1:] != strips[:-1])).all()
        for strip, bounds in enumerate(self.starts):
            begin, end = strip << self.shift, min((strip + 1) << self.shift, len(keys))
            assert self.heads[strip] == firsts[begin]
            assert bounds[0] == begin and bounds[-1] == end
            for edge, place in zip(self.edges, bounds, strict=False):
                assert (self.keys[begin:place] <= edge).all()
                assert (self.keys[place:end] >= edge).all()


def _bounds(wanted: Rectangles) -> tuple[np.ndarray, ...]:
    return *wanted.first, *wanted.second


@njit(cache=True, nogil=True)
def _build(  # type: ignore[no-untyped-def]
    permutation, firsts, keys, shift, width, positions, own_firsts, own, starts
):
    count, one = np.uint64(len(permutation)), np.uint64(1)
    strips, buckets = np.uint64(starts.shape[0]), np.uint64(starts.shape[1])
    cursor = np.empty(strips, np.uint64)
    for strip in range(strips):
        cursor[strip] = strip << shift
    for bucket in range(buckets):
        # Second keys ascend, so that every strip is filled up to where the bucket begins.
        for strip in range(strips):
            starts[strip, bucket] = cursor[strip]
        for second in range(min(count, bucket << width), min(count, (bucket + one) << width)):
            position = np.uint64(permutation[second])
            place = cursor[position >> shift]
            cursor[position >> shift] = place + one
            positions[place] = position
            own_firsts[place] = firsts[position]
            own[place] = keys[second]


@njit(cache=True, nogil=True)
def _met(heads, begin, lo, hi):  # type: ignore[no-untyped-def]
    """Strips [begin, end) that may have first keys in [lo, hi], by a walk from `begin`.

    Bounds come in about ascending order, so that there is hardly a step to go.
    """
    one, count = np.uint64(1), np.uint64(len(heads))
    # Keys of `lo` may end the strip before the one that begins with them.
    while begin > 0 and not heads[begin] < lo:
        begin -= one
    while begin + one < count and heads[begin + one] < lo:
        begin += one
    end = begin
    while end < count and heads[end] <= hi:
        end += one
    return begin, end


@njit(cache=True, nogil=True)
def _guess(edges):  # type: ignore[no-untyped-def]
    """Buckets that a step of one key goes on, as if keys were spread evenly; 0 if all are equal."""
    last = len(edges) - 1
    span = np.float64(edges[last]) - np.float64(edges[0]) if last >= 0 else 0.0
    return last / span if span > 0 else 0.0


@njit(cache=True, nogil=True)
def _bucket(edges, slope, bound):  # type: ignore[no-untyped-def]
    """The bucket from which on keys of at least `bound` may be: those before are all below.

    Guessed by the slope, and searched where that is wrong.
    """
    low, count, one = np.uint64(0), np.uint64(len(edges)), np.uint64(1)
    if bound <= edges[0]:
        return low
    share = slope * (np.float64(bound) - np.float64(edges[0]))
    near = np.uint64(min(share, np.float64(len(edges) - 1)))
    if not edges[near] < bound:
        near -= np.uint64(near > 0)
    elif near + one < count and edges[near + one] < bound:
        near += one
    if edges[near] < bound and (near + one == count or not edges[near + one] < bound):
        return near
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
    heads, positions, firsts, keys, edges, starts, alo, ahi, blo, bhi
):
    one, slope, near = np.uint64(1), _guess(edges), np.uint64(0)
    met, seen = 0, 0
    for n in range(len(alo)):
        near, end = _met(heads, near, alo[n], ahi[n])
        if near == end:
            continue
        bucket = _bucket(edges, slope, blo[n])
        for strip in range(near, end):
            low, high = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, bucket + one])
            place = _from(keys, low, high, blo[n])
            stop = np.uint64(starts[strip, len(edges)])
            met += 1
            while place < stop and keys[place] <= bhi[n]:
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
def _found(firsts, keys, place, stop, alo, ahi, blo, bhi):  # type: ignore[no-untyped-def]
    """A bit for each tuple of the block at `place` that is wanted and stands before `stop`."""
    one, lanes = np.uint64(1), np.uint64(LANES)
    found = inside(keys, place, blo, bhi) & inside(firsts, place, alo, ahi)
    return found & ((one << min(stop - place, lanes)) - one)


@njit(cache=True, nogil=True)
def _count(  # type: ignore[no-untyped-def]
    heads, positions, firsts, keys, edges, starts, alo, ahi, blo, bhi, totals
):
    slope, near = _guess(edges), np.uint64(0)
    for n in range(len(alo)):
        near, end = _met(heads, near, alo[n], ahi[n])
        if near == end:
            continue
        bucket = _bucket(edges, slope, blo[n])
        beyond = _beyond(edges, bucket, bhi[n])
        total = np.uint64(0)
        for strip in range(near, end):
            begin, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
            for place in range(begin, stop, np.uint64(LANES)):
                total += ones(
                    _found(firsts, keys, place, stop, alo[n], ahi[n], blo[n], bhi[n])
                )
        totals[n] += np.int64(total)


@njit(cache=True, nogil=True)
def _sum(  # type: ignore[no-untyped-def]
    heads, positions, firsts, keys, edges, starts, alo, ahi, blo, bhi, totals, weights
):
    one, slope, near = np.uint64(1), _guess(edges), np.uint64(0)
    for n in range(len(alo)):
        near, end = _met(heads, near, alo[n], ahi[n])
        if near == end:
            continue
        bucket = _bucket(edges, slope, blo[n])
        beyond = _beyond(edges, bucket, bhi[n])
        for strip in range(near, end):
            begin, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
            for place in range(begin, stop, np.uint64(LANES)):
                found = _found(firsts, keys, place, stop, alo[n], ahi[n], blo[n], bhi[n])
                while found:
                    totals[n] += weights[positions[place + first_one(found)]]
                    found &= found - one


@njit(cache=True, nogil=True)
def _list(  # type: ignore[no-untyped-def]
    heads, positions, firsts, keys, edges, starts, alo, ahi, blo, bhi, state, ends, room
):
    """Go on at `state` (rectangle, strip, place) until there is no room; how many were put.

    ends  how many were put when each rectangle was done, or the room
    """
    one, lanes, slope, near = np.uint64(1), np.uint64(LANES), _guess(edges), np.uint64(0)
    n, begun, put, most = state[0], state[1], 0, len(room) - LANES
    while n < len(alo):
        near, end = _met(heads, near, alo[n], ahi[n])
        if near == end:
            ends[n], n = put, n + 1
            continue
        bucket = _bucket(edges, slope, blo[n])
        beyond = _beyond(edges, bucket, bhi[n])
        for strip in range(np.uint64(begun) if begun >= 0 else near, end):
            place, stop = np.uint64(starts[strip, bucket]), np.uint64(starts[strip, beyond])
            if begun >= 0:
                place, begun = np.uint64(state[2]), -1
            while place < stop:
                if put > most:
                    state[0], state[1], state[2], ends[n] = n, strip, place, put
                    return put
                found = _found(firsts, keys, place, stop, alo[n], ahi[n], blo[n], bhi[n])
                while found:
                    room[put] = positions[place + first_one(found)]
                    found &= found - one
                    put += 1
                place += lanes
        ends[n] = put
        n += 1
    state[0], state[1] = n, -1
    return put
