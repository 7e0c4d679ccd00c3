"""Closed intervals of stored keys for probe keys: integer inequalities, and sets of intervals.

A set of intervals is a pair of int64 arrays lo, hi of shape (rows, columns); empty where lo > hi.
"""

import numpy as np

from host.sql import exact
from hw.spec.predicates import Band, Predicate, empty_intervals
from hw.spec.tuples import Side, key_limits

__all__ = [
    "complement",
    "linear_intervals",
    "merged",
    "packed",
    "predicate_intervals",
]


def linear_intervals(
    side: Side, keys: np.ndarray, factors: tuple[int, int], bands: tuple[Band, ...]
) -> np.ndarray:
    """Stored keys with `factors[0] * left + factors[1] * right` in a band, one interval a band.

    Exact for all keys and factors: bounds are rounded inwards and saturate at the keys' limits.
    """
    key_bits = keys.dtype.itemsize * 8
    smallest, largest = key_limits(key_bits)
    result = empty_intervals(key_bits, (len(keys), max(1, len(bands))))
    own, stored = factors[side], factors[side.other]
    # own * key + stored * x in the band; with a positive factor of x.
    sign = 1 if stored > 0 else -1
    moved = exact.multiplied(keys.astype(np.int64), -own * sign)
    for column, band in enumerate(bands):
        low, high = (band.lo, band.hi) if sign > 0 else _opposite(band)
        lo = _ceiling(moved, low, abs(stored), smallest)
        hi = _floor(moved, high, abs(stored), largest)
        keep = np.asarray((lo <= hi) & (lo <= largest) & (hi >= smallest), bool)
        result["lo"][:, column] = np.where(keep, _clipped(lo, smallest, largest), largest)
        result["hi"][:, column] = np.where(keep, _clipped(hi, smallest, largest), smallest)
    return result


def _clipped(bounds: np.ndarray, smallest: int, largest: int) -> np.ndarray:
    return np.clip(bounds, smallest, largest).astype(np.int64, copy=False)


def _opposite(band: Band) -> tuple[int | None, int | None]:
    mirrored = band.mirror()
    return mirrored.lo, mirrored.hi


def _floor(moved: np.ndarray, bound: int | None, divisor: int, otherwise: int) -> np.ndarray:
    if bound is None:
        return np.full(len(moved), otherwise, np.int64)
    return exact.floor_divided(exact.added(moved, bound), divisor)


def _ceiling(moved: np.ndarray, bound: int | None, divisor: int, otherwise: int) -> np.ndarray:
    if bound is None:
        return np.full(len(moved), otherwise, np.int64)
    opposite = exact.multiplied(exact.added(moved, bound), -1)
    return exact.multiplied(exact.floor_divided(opposite, divisor), -1)


def predicate_intervals(predicate: Predicate, side: Side, keys: np.ndarray) -> np.ndarray:
    """The predicate's intervals; of a negated one, what lies outside of its band."""
    found = predicate.intervals(side, keys)
    return complement(found[:, 0]) if predicate.negated else found


def complement(intervals: np.ndarray) -> np.ndarray:
    """The keys outside of one interval a row, as two intervals a row."""
    key_bits = intervals["lo"].dtype.itemsize * 8
    smallest, largest = key_limits(key_bits)
    lo, hi = intervals["lo"], intervals["hi"]
    nothing = lo > hi
    below, above = lo > smallest, (hi < largest) & ~nothing
    result = np.empty((len(intervals), 2), intervals.dtype)
    # Where nothing is left out, the first interval has all.
    result["lo"][:, 0] = np.where(below, smallest, largest)
    result["hi"][:, 0] = np.where(nothing, largest, np.where(below, lo, smallest + 1) - 1)
    result["lo"][:, 1] = np.where(above, hi, largest - 1) + 1
    result["hi"][:, 1] = np.where(above, largest, smallest)
    return result


def merged(lo: np.ndarray, hi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same keys in disjoint intervals that do not touch, each row's in ascending order.

    Bounds are at least one away from the limits of int64.
    """
    lo = np.where(lo > hi, np.iinfo(np.int64).max, lo)  # empty ones last
    order = np.argsort(lo, axis=1, kind="stable")
    lo, hi = np.take_along_axis(lo, order, 1), np.take_along_axis(hi, order, 1)
    rows = np.arange(len(lo))
    new_lo, new_hi = np.full_like(lo, 1), np.zeros_like(hi)
    new_lo[:, 0], new_hi[:, 0] = lo[:, 0], hi[:, 0]
    place = np.zeros(len(lo), np.int64)
    for column in range(1, lo.shape[1]):
        a, b = lo[:, column], hi[:, column]
        last = new_hi[rows, place]
        apart = a > last + 1
        place = place + (apart & (a <= b))
        new_lo[rows, place] = np.where(apart & (a <= b), a, new_lo[rows, place])
        new_hi[rows, place] = np.where(a <= b, np.maximum(b, np.where(apart, b, last)), last)
    return new_lo, new_hi


def packed(lo: np.ndarray, hi: np.ndarray, key_bits: int) -> np.ndarray:
    """A set of intervals as interval_dtype, without columns that are empty in every row."""
    filled = lo <= hi
    columns = np.flatnonzero(filled.any(axis=0))
    result = empty_intervals(key_bits, (len(lo), max(1, len(columns))))
    smallest, largest = key_limits(key_bits)
    for place, column in enumerate(columns):
        keep = filled[:, column]
        result["lo"][:, place] = np.where(keep, lo[:, column], largest)
        result["hi"][:, place] = np.where(keep, hi[:, column], smallest)
    return result
