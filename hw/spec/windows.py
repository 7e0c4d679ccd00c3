"""Windows: what a probe sees of the other stream, and which subwindow takes, probes, expires.

Every stored tuple has a place on one axis: its number in its stream for row windows, its event
time in microseconds for time windows. A probe sees a closed interval of places, a subwindow
covers the places from its smallest to its largest, and everything else follows from the two.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from hw.spec.tuples import Side

__all__ = [
    "EVERYTHING",
    "NOTHING_YET",
    "Coverage",
    "NoWindow",
    "RowWindow",
    "Sight",
    "TimeWindow",
    "Window",
    "coverage",
    "parse_duration",
    "parse_window",
]

_FIRST, _LAST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
#: The interval of places that holds every tuple, as (first, last).
EVERYTHING = (int(_FIRST), int(_LAST))
_MOST_ROWS = 1 << 62
#: A watermark before the first tuple.
NOTHING_YET = int(_FIRST)


class Coverage(IntEnum):
    """How much of a subwindow a probe's window covers."""

    NONE = 0
    PART = 1  # only here the exact filter has to look at single tuples
    WHOLE = 2


class Sight(NamedTuple):
    """Which rids of a subwindow each probe sees: those with (rid + base - first) % 2**32 < rows.

    first  uint32 of each probe
    rows   uint32 of each probe, or the one number of all of them, which is not 0
    some   rids [begin, end) that hold what any probe sees; None where nobody has looked
    every  rids [begin, end) that every probe sees, with `some`
    """

    first: np.ndarray
    rows: np.ndarray | int
    base: int = 0
    some: tuple[int, int] | None = None
    every: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class NoWindow:
    """Full history: every probe sees every stored tuple and nothing expires."""

    def seen(self, probe: Side, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(place), _FIRST), np.full(len(place), _LAST)

    def horizon(self, stored: Side, progress: int) -> int:
        return EVERYTHING[0]

    def __str__(self) -> str:
        return "none"


@dataclass(frozen=True)
class RowWindow:
    """The last `left` or `right` tuples of a stream that arrived before the probe."""

    left: int
    right: int

    def __post_init__(self) -> None:
        for side in ("left", "right"):
            rows = getattr(self, side)
            if rows < 1:
                raise ValueError(f"a row window holds at least 1 row, not {rows}")
            if rows > _MOST_ROWS:
                raise ValueError(f"a row window holds at most {_MOST_ROWS} rows, not {rows}")

    def rows(self, stored: Side) -> int:
        return (self.left, self.right)[stored]

    def seen(self, probe: Side, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Numbers that a probe sees; `place` counts the other stream's tuples before it.

        This is the law's idx >= cnt - N, with the upper end that a later arrival sets.
        """
        return place - self.rows(probe.other), place - 1

    def horizon(self, stored: Side, progress: int) -> int:
        """The first number that a probe can still see after `progress` tuples of `stored`."""
        return progress - self.rows(stored)

    def __str__(self) -> str:
        return f"rows {self.left}" + (f",{self.right}" if self.right != self.left else "")


@dataclass(frozen=True)
class TimeWindow:
    """lo_us <= right time - left time <= hi_us, whatever the order of arrival."""

    lo_us: int
    hi_us: int

    def __post_init__(self) -> None:
        if self.lo_us > self.hi_us:
            raise ValueError(
                f"the window begins at {self.lo_us} us and ends before that, at {self.hi_us} us"
            )

    def reach(self, probe: Side) -> tuple[int, int]:
        """Smallest and largest `stored time - probe time` of a pair."""
        if probe is Side.LEFT:
            return self.lo_us, self.hi_us
        return -self.hi_us, -self.lo_us

    def seen(self, probe: Side, place: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Times that a probe sees; `place` is its own time."""
        lo, hi = self.reach(probe)
        return _saturated(place, lo), _saturated(place, hi)

    def horizon(self, stored: Side, progress: int) -> int:
        """The first time of `stored` that can still be seen; `progress` is the other's watermark.

        A tuple of the other stream that is not late has at least that time.
        """
        lo, _ = self.reach(stored.other)
        return max(_FIRST, min(_LAST, progress + lo)) if progress != NOTHING_YET else NOTHING_YET

    def __str__(self) -> str:
        if self.lo_us == -self.hi_us:
            return f"{self.hi_us} microseconds"
        return f"{self.lo_us} microseconds..{self.hi_us} microseconds"


Window = NoWindow | RowWindow | TimeWindow


def _saturated(places: np.ndarray, offset: int) -> np.ndarray:
    """places + offset, held at the ends of int64."""
    if offset >= 0:
        return np.where(places > _LAST - offset, _LAST, places + offset)
    return np.where(places < _FIRST - offset, _FIRST, places + offset)


def coverage(
    first: np.ndarray, last: np.ndarray, smallest: int, largest: int
) -> np.ndarray:
    """Coverage of a subwindow with places from `smallest` to `largest` for each probe."""
    touched = (first <= largest) & (last >= smallest)
    whole = (first <= smallest) & (last >= largest)
    return touched.astype(np.int8) + whole.astype(np.int8)


_UNITS_US = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1000,
    "ms": 1000,
    "second": 1_000_000,
    "sec": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
_TERM = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_ROWS = re.compile(r"rows\s+(\d+)(?:\s*,\s*(\d+))?")


def parse_duration(text: str) -> int:
    """'10 minutes', '1 hour 30 minutes', '-5 s' -> microseconds; ValueError names what is wrong."""
    total, end = Decimal(0), 0
    lowered = text.strip().lower()
    for term in _TERM.finditer(lowered):
        if term.start() != end:
            break
        unit = term[2] if term[2] in _UNITS_US else term[2].removesuffix("s")
        if unit not in _UNITS_US:
            raise ValueError(
                f"{term[2]!r} in {text!r} is not a unit of time: use microseconds, milliseconds, "
                "seconds, minutes, hours, days or weeks"
            )
        total += Decimal(term[1]) * _UNITS_US[unit]
        end = term.end()
    if not lowered or end != len(lowered):
        raise ValueError(f"{text!r} is not a duration: write it like '10 minutes'")
    if total != int(total):
        raise ValueError(f"{text!r} is finer than a microsecond")
    if abs(total) > _LAST:
        raise ValueError(f"{text!r} is longer than 64 bits of microseconds")
    return int(total)


def parse_window(text: str) -> Window:
    """'rows N', 'rows N,M', '10 minutes', '-5 minutes..10 minutes' or 'none'."""
    lowered = text.strip().lower()
    if lowered == "none":
        return NoWindow()
    rows = _ROWS.fullmatch(lowered)
    if rows:
        left = int(rows[1])
        return RowWindow(left, int(rows[2]) if rows[2] else left)
    if lowered.startswith("rows"):
        raise ValueError(f"{text!r} is not a row window: write 'rows 1000' or 'rows 1000,500'")
    lo, dots, hi = lowered.partition("..")
    if dots:
        return TimeWindow(parse_duration(lo), parse_duration(hi))
    width = parse_duration(lowered)
    if width < 0:
        raise ValueError(f"{text!r} is negative: write a window of both signs as '-5 s..10 s'")
    return TimeWindow(-width, width)
