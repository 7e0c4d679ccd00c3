"""Predicates as closed intervals of stored keys.

A predicate says which differences `right key - left key` make a pair: a union of closed bands,
or with `negated` everything outside one band. That one form is all of `< <= > >= = <>`, of band
joins and of ORs of bands, and engines only ever search closed intervals.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from hw.spec.tuples import Side, interval_dtype, key_limits

__all__ = [
    "ALL",
    "OPERATORS",
    "REGISTER",
    "Band",
    "Bound",
    "Predicate",
    "compare",
    "empty_intervals",
    "from_registers",
    "registers",
]

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")


@dataclass(frozen=True, order=True)
class Band:
    """The differences from `lo` to `hi`, both included; None is unbounded."""

    lo: int | None
    hi: int | None

    @property
    def empty(self) -> bool:
        return self.lo is not None and self.hi is not None and self.lo > self.hi

    def mirror(self) -> "Band":
        """The same band, of the differences left - right."""
        return Band(None if self.hi is None else -self.hi, None if self.lo is None else -self.lo)

    def holds(self, difference: int) -> bool:
        return (self.lo is None or difference >= self.lo) and (
            self.hi is None or difference <= self.hi
        )


def _united(bands: Iterable[Band]) -> tuple[Band, ...]:
    """Sort bands and join those that overlap or touch, so that no pair is found twice."""
    infinite = float("inf")
    ordered = sorted(
        (band for band in bands if not band.empty),
        key=lambda band: -infinite if band.lo is None else band.lo,
    )
    united: list[Band] = []
    for band in ordered:
        last = united[-1] if united else None
        touches = last is not None and (
            last.hi is None or band.lo is None or band.lo <= last.hi + 1
        )
        if last is None or not touches:
            united.append(band)
        elif last.hi is not None and (band.hi is None or band.hi > last.hi):
            united[-1] = Band(last.lo, band.hi)
    return tuple(united)


@dataclass(frozen=True)
class Predicate:
    """A pair matches iff `right key - left key` is in a band; outside of the one if `negated`."""

    bands: tuple[Band, ...]
    negated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "bands", _united(self.bands))
        if self.negated and len(self.bands) != 1:
            raise ValueError(f"a negated predicate has one band, not {len(self.bands)}")

    def holds(self, left: int, right: int) -> bool:
        """Whether two keys match, by definition."""
        return any(band.holds(right - left) for band in self.bands) != self.negated

    def seen_from(self, side: Side) -> tuple[Band, ...]:
        """Bands of `stored key - probe key` for probe tuples of `side`: the mirror image."""
        if side is Side.LEFT:
            return self.bands
        return tuple(band.mirror() for band in reversed(self.bands))

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        """Boundary generator (PanJoin IV): for each probe key of `side`, one interval a band.

        Returns interval_dtype of shape (len(keys), max(1, bands)). Bounds beyond the key's type
        saturate, and an interval that lies wholly beyond it is empty. For a negated predicate
        these are the intervals whose records carry NOT.
        """
        key_bits = keys.dtype.itemsize * 8
        bands = self.seen_from(side)
        if not bands:
            return empty_intervals(key_bits, (len(keys), 1))
        smallest, largest = key_limits(key_bits)
        result = np.empty((len(keys), len(bands)), interval_dtype(key_bits))
        for column, band in enumerate(bands):
            lo, above = _saturating_add(keys, band.lo, upper=False)
            hi, below = _saturating_add(keys, band.hi, upper=True)
            nowhere = above | below
            lo[nowhere], hi[nowhere] = largest, smallest
            result["lo"][:, column], result["hi"][:, column] = lo, hi
        return result


#: Matches every pair.
ALL = Predicate((Band(None, None),))


def empty_intervals(key_bits: int, shape: int | tuple[int, ...]) -> np.ndarray:
    """Intervals that match nothing: lo is the largest key, hi the smallest."""
    smallest, largest = key_limits(key_bits)
    result = np.empty(shape, interval_dtype(key_bits))
    result["lo"], result["hi"] = largest, smallest
    return result


def compare(operator: str, offset: int = 0) -> Predicate:
    """The predicate `left operator right + offset`, e.g. compare("<", 3) for l < r + 3."""
    match operator:
        case "=":
            return Predicate((Band(-offset, -offset),))
        case "<>":
            return Predicate((Band(-offset, -offset),), negated=True)
        case "<":
            return Predicate((Band(-offset + 1, None),))
        case "<=":
            return Predicate((Band(-offset, None),))
        case ">":
            return Predicate((Band(None, -offset - 1),))
        case ">=":
            return Predicate((Band(None, -offset),))
    raise ValueError(f"operator must be one of {' '.join(OPERATORS)}, not {operator!r}")


def _saturating_add(
    keys: np.ndarray, offset: int | None, *, upper: bool
) -> tuple[np.ndarray, np.ndarray]:
    """keys + offset, saturated, and where that bound lies beyond every key (nothing matches).

    `upper` says which bound it is: an upper bound that overflows upwards is no bound at all, a
    lower bound that does leaves nothing.
    """
    smallest, largest = key_limits(keys.dtype.itemsize * 8)
    nowhere = np.zeros(len(keys), bool)
    if offset is None:
        return np.full_like(keys, largest if upper else smallest), nowhere
    # Room to the type's end, as an unsigned number: exact for every key and any offset.
    unsigned = np.dtype(f"u{keys.dtype.itemsize}")
    if offset >= 0:
        room = np.subtract(largest, keys, dtype=keys.dtype).view(unsigned)
        limit = largest
    else:
        room = np.subtract(keys, smallest, dtype=keys.dtype).view(unsigned)
        limit = smallest
    if abs(offset) > largest - smallest:
        beyond = np.ones(len(keys), bool)
    else:
        beyond = room < unsigned.type(abs(offset))
    step = np.array(offset & (2 ** (8 * unsigned.itemsize) - 1), unsigned)
    moved = (keys.view(unsigned) + step).view(keys.dtype)
    moved[beyond] = limit
    return moved, beyond if (offset >= 0) != upper else nowhere


class Bound(IntEnum):
    """What a register's offset does to the probe key."""

    UNBOUNDED = 0
    PLUS = 1
    MINUS = 2
    NEVER = 3  # no key lies there: the band matches nothing


#: One band as an engine's run-time registers: `stored key - probe key` from lo to hi. Offsets are
#: magnitudes because a difference of two keys needs one bit more than a key.
REGISTER = np.dtype(
    [("lo", "<u8"), ("hi", "<u8"), ("lo_bound", "u1"), ("hi_bound", "u1"), ("unused", "V6")]
)


def registers(predicate: Predicate, probe: Side, key_bits: int) -> np.ndarray:
    """The predicate's bands as REGISTER words, as seen from probe tuples of that side."""
    bands = predicate.seen_from(probe)
    words = np.zeros(len(bands), REGISTER)
    for word, band in zip(words, bands, strict=True):
        word["lo_bound"], word["lo"] = _bound(band.lo, key_bits, upper=False)
        word["hi_bound"], word["hi"] = _bound(band.hi, key_bits, upper=True)
    return words


def _bound(offset: int | None, key_bits: int, *, upper: bool) -> tuple[Bound, int]:
    if offset is None:
        return Bound.UNBOUNDED, 0
    if abs(offset) >= 1 << key_bits:
        return (Bound.UNBOUNDED if (offset > 0) == upper else Bound.NEVER), 0
    return (Bound.PLUS, offset) if offset >= 0 else (Bound.MINUS, -offset)


def from_registers(words: np.ndarray, probe: Side, negated: bool) -> Predicate:
    """The predicate that those registers stand for."""
    bands = []
    for word in words:
        lo, hi = (_offset(word[name], word[f"{name}_bound"]) for name in ("lo", "hi"))
        never = Bound.NEVER in (word["lo_bound"], word["hi_bound"])
        band = Band(1, 0) if never else Band(lo, hi)
        bands.append(band if probe is Side.LEFT else band.mirror())
    return Predicate(tuple(bands), negated)


def _offset(magnitude: int, bound: int) -> int | None:
    if bound == Bound.UNBOUNDED:
        return None
    return int(magnitude) if bound == Bound.PLUS else -int(magnitude)
