"""Comparisons of floats as exact intervals of stored keys.

A comparison such as `l.x <= r.x + 0.05` is evaluated in floating point, rounding included. For a
fixed probe value it is monotone in the stored finite value, so that its truth changes at one key:
that key is found by a guess in real numbers, a check, and a search on the few rows where the
guess is off. Infinities and NaN are looked at one by one, since inf - inf is NaN.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import numpy as np

from host.monotone import compiled, direction, inverse, leaves
from host.sql import floats
from host.sql.expressions import Node
from hw.spec.tuples import Side

__all__ = ["HalfLine", "Region", "region"]


@dataclass(frozen=True)
class HalfLine:
    """`low <= high`, or `low < high` if strict: monotone trees over one leaf of each side."""

    low: Node
    high: Node
    strict: bool
    left: Node
    right: Node

    def rises(self, side: Side) -> bool:
        """Whether a larger value of that side's leaf makes the comparison truer."""
        leaf = (self.left, self.right)[side]
        return direction(self.high, leaf) - direction(self.low, leaf) > 0

    @cached_property
    def _sides(self) -> tuple[Callable, Callable]:
        return (compiled(self.low, self.left, self.right),
                compiled(self.high, self.left, self.right))

    def holds(self, side: Side, probes: np.ndarray, stored: np.ndarray) -> np.ndarray:
        """The comparison's truth for probe values of `side`, by Spark's order of floats."""
        values = (probes, stored) if side is Side.LEFT else (stored, probes)
        with np.errstate(all="ignore"):
            low, high = (function(*values) for function in self._sides)
        return (floats.less if self.strict else floats.less_equal)(low, high)

    def guess(self, side: Side, probes: np.ndarray) -> np.ndarray:
        """About which stored value makes both sides equal, in real numbers."""
        leaf = (self.left, self.right)[side.other]
        inside, outside = self.low, self.high
        if leaf not in leaves(inside):
            inside, outside = outside, inside

        def value(node: Node) -> np.ndarray:
            return np.asarray(compiled(node, self.left, self.right)(probes, probes), np.float64)

        with np.errstate(all="ignore"):
            return inverse(inside, leaf, np.broadcast_to(value(outside), probes.shape), value)


@dataclass(frozen=True)
class Region:
    """Stored values a row: finite ones from key lo to key hi, and which of -inf, inf, NaN."""

    lo: np.ndarray
    hi: np.ndarray
    points: tuple[np.ndarray, ...]

    def __and__(self, other: "Region") -> "Region":
        points = tuple(a & b for a, b in zip(self.points, other.points, strict=True))
        lo = np.where(self.lo < other.lo, other.lo, self.lo)
        hi = np.where(self.hi > other.hi, other.hi, self.hi)
        return Region(lo, hi, points)


def special_keys(bits: int) -> tuple[int, int, int]:
    """The keys of -inf, inf and NaN."""
    points = np.array([-np.inf, np.inf, np.nan], f"f{bits // 8}")
    low, high, nan = floats.keys_of_floats(points).tolist()
    return low, high, nan


def region(half: HalfLine, side: Side, probes: np.ndarray, bits: int) -> Region:
    """The stored values, floats of `bits`, for which the comparison holds."""
    low, high, _ = special_keys(bits)
    rises = half.rises(side.other)

    def turned(rows: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """False below the key where the truth changes, True from there."""
        some = probes if len(rows) == len(probes) else probes[rows]
        truth = half.holds(side, some, floats.floats_of_keys(keys, bits))
        return truth if rises else ~truth

    with np.errstate(all="ignore"):
        guess = floats.keys_of_floats(half.guess(side, probes).astype(f"f{bits // 8}"))
    change = _first_true(turned, guess.astype(np.int64), low + 1, high - 1)
    lo, hi = (change, np.full_like(change, high - 1)) if rises else (
        np.full_like(change, low + 1), change - 1)
    values = np.array([-np.inf, np.inf, np.nan], f"f{bits // 8}")
    points = tuple(half.holds(side, probes, np.broadcast_to(value, probes.shape))
                   for value in values)
    return Region(lo, hi, points)


def _first_true(
    test: Callable[[np.ndarray, np.ndarray], np.ndarray], guess: np.ndarray, lo: int, hi: int
) -> np.ndarray:
    """For each row the first key from lo to hi with a true test, hi + 1 if there is none.

    The test is false below that key and true from it on.
    """
    # Everything up to `no` is false, everything from `yes` on is true.
    no, yes = np.full_like(guess, lo - 1), np.full_like(guess, hi + 1)
    tried = _between(lo, guess, hi)
    first, rows = np.empty_like(guess), np.arange(len(guess))
    for step in _steps():
        truth = test(rows, tried)
        yes, no = np.where(truth, tried, yes), np.where(truth, no, tried)
        first[rows] = yes
        still = np.flatnonzero(no + 1 < yes)
        if not len(still):
            break
        if len(still) < len(rows):
            rows, no, yes = rows[still], no[still], yes[still]
        tried = _next_try(no, yes, lo, hi, step)
    else:
        raise AssertionError("a comparison is not monotone")
    return first


def _next_try(no: np.ndarray, yes: np.ndarray, lo: int, hi: int, step: int) -> np.ndarray:
    """A key between: `step` away from the end that is known, half way once both are."""
    if step:
        out = np.where(yes <= hi, yes - step, no + step)
    else:
        out = np.where(yes <= hi, lo, hi)
    # Half of both, as their difference may not fit.
    middle = (no >> 1) + (yes >> 1) + (no & yes & 1)
    bracketed = (no >= lo) & (yes <= hi)
    return np.where(bracketed, middle, _between(no + 1, out, yes - 1))


def _between(lo: np.ndarray | int, keys: np.ndarray, hi: np.ndarray | int) -> np.ndarray:
    """np.clip, several times as fast for 64 bits."""
    keys = np.where(keys < lo, lo, keys)
    return np.where(keys > hi, hi, keys)


def _steps() -> Iterator[int]:
    """How far a search goes from its guess; 0 is the end of all keys, then it halves 64 bits."""
    yield from (1, 4, 16, 64, 1 << 10, 1 << 14)
    yield from repeat(0, 80)
