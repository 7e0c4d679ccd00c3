"""A stream's window as a chain of subwindows by arrival (PanJoin III-A).

Only the newest takes tuples, the oldest expires whole, the middle never changes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from host.growing import Growing
from hw.spec.tuples import Side
from hw.spec.windows import NoWindow, RowWindow, TimeWindow, Window

__all__ = ["TIME", "Chain", "Subwindow", "subwindow_rows"]

#: Name of the event times among what a subwindow carries.
TIME = "time"

#: A chain of about this many subwindows: more of them cost probes, fewer cost memory and merging.
_LINKS = 4
_SMALLEST_ROWS = 1 << 13
_LARGEST_ROWS = 1 << 26
#: The largest subwindow that is half a window.
_LARGEST_HALF_ROWS = 1 << 22
#: What a subwindow takes where the window does not tell its number of rows.
_UNBOUNDED_ROWS = 1 << 18


def subwindow_rows(window: Window, stored: Side, engine: str = "") -> int:
    """Rows of a subwindow, where the user does not say.

    A quarter of the window; an eighth where the window is large, since there the rows that wait
    to expire with their subwindow cost more than another subwindow to probe. Half of it in
    OpenCL: an insertion tier makes large main arrays cheap, and every array that is probed costs
    a miss of the cache.
    """
    if not isinstance(window, RowWindow):
        return _UNBOUNDED_ROWS
    rows = window.rows(stored)
    share = max(-(-rows // (2 * _LINKS)), min(-(-rows // _LINKS), _UNBOUNDED_ROWS))
    if engine == "opencl":
        share = max(share, min(-(-rows // 2), _LARGEST_HALF_ROWS))
    return min(max(share, _SMALLEST_ROWS), _LARGEST_ROWS)


@dataclass
class Subwindow:
    """What the manager knows of one subwindow; its tuples live in a worker's engine.

    number    its name, never used twice in a stream
    worker    which worker holds it
    base      number in the stream of its first row
    rows      places taken, by tuples that can match and by those that cannot
    capacity  places in all
    smallest, largest   of its tuples' places on the window's axis (row numbers or times)
    carried   arrays by row that go with the tuples: TIME for time windows, an aggregate's measures
    nulls     names among `carried` of what is known, where it is 0 for some row
    kept      what results have made of it by position (host.arrangement), by name
    """

    number: int
    worker: int
    base: int
    capacity: int
    rows: int = 0
    smallest: int = field(default=int(np.iinfo(np.int64).max))
    largest: int = field(default=int(np.iinfo(np.int64).min))
    stored: int = 0
    carried: dict[str, Growing] = field(default_factory=dict)
    nulls: set[str] = field(default_factory=set)
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def room(self) -> int:
        return self.capacity - self.rows

    @property
    def times(self) -> np.ndarray | None:
        """Event time of each row, where the window is of time."""
        return self.carried[TIME].values if TIME in self.carried else None

    def note_nulls(self, name: str, values: np.ndarray) -> None:
        """Take in the values of more rows; those that are no Part.KNOWN have no 0 that counts."""
        if name not in self.nulls and not values.all():
            self.nulls.add(name)

    def extend(
        self, rows: int, places: np.ndarray | range, carried: dict[str, np.ndarray]
    ) -> None:
        """Take `rows` more places; `places` are those of the tuples that can match."""
        for name, values in carried.items():
            self.carried.setdefault(name, Growing(values[:0])).append(values)
            self.note_nulls(name, values)
        self.rows += rows
        self.stored += len(places)
        if len(places):
            ends = places if isinstance(places, range) else (places.min(), places.max())
            self.smallest = min(self.smallest, int(ends[0]))
            self.largest = max(self.largest, int(ends[-1]))


class Chain:
    """The subwindows of one stream, oldest first, dealt to workers in turn."""

    def __init__(
        self, side: Side, window: Window, workers: int, rows: int | None = None, engine: str = ""
    ) -> None:
        self.side = side
        self.window = window
        self.workers = workers
        self.rows = rows or subwindow_rows(window, side, engine)
        self.total = 0
        self.created = 0
        self.subwindows: list[Subwindow] = []

    def __iter__(self) -> Iterator[Subwindow]:
        return iter(self.subwindows)

    @property
    def newest(self) -> Subwindow | None:
        return self.subwindows[-1] if self.subwindows else None

    @property
    def turn(self) -> int:
        """The worker that the next subwindow goes to."""
        return self.created % self.workers

    def needs_new(self) -> bool:
        """Whether the next row must open a subwindow: there is none, or the newest is full.

        With a time window it also counts as full when it spans a fair part of the window, or
        too little of it could ever expire.
        """
        newest = self.newest
        if newest is None or newest.room <= 0:
            return True
        if not isinstance(self.window, TimeWindow) or newest.stored < _SMALLEST_ROWS:
            return False
        width = self.window.hi_us - self.window.lo_us
        return newest.largest - newest.smallest > width // _LINKS

    def create(self) -> Subwindow:
        """Open the next subwindow; the worker is told by the manager."""
        subwindow = Subwindow(
            self.created, self.turn, self.total, self._capacity()
        )
        self.subwindows.append(subwindow)
        self.created += 1
        return subwindow

    def _capacity(self) -> int:
        """Grow with a history of unknown length, so that the chain stays short."""
        if isinstance(self.window, RowWindow):
            return self.rows
        held = sum(subwindow.rows for subwindow in self.subwindows)
        return min(max(self.rows, held // (4 * _LINKS)), _LARGEST_ROWS)

    def take_expired(self, progress: int) -> list[Subwindow]:
        """Remove and return the oldest subwindows that no later probe can see.

        `progress` is the stream's number of rows (row windows) or the other stream's watermark
        (time windows). Subwindows of a time window may overlap in time, so any may expire.
        """
        if isinstance(self.window, NoWindow):
            return []
        horizon = self.window.horizon(self.side, progress)
        gone = [sub for sub in self.subwindows if self._is_past(sub, horizon)]
        if gone:
            self.subwindows = [sub for sub in self.subwindows if not self._is_past(sub, horizon)]
        return gone

    def _is_past(self, subwindow: Subwindow, horizon: int) -> bool:
        if isinstance(self.window, RowWindow):
            return subwindow.base + subwindow.rows <= horizon
        # Nothing but unmatchable rows: it may go once it takes no more.
        if not subwindow.stored:
            return subwindow is not self.newest
        return subwindow.largest < horizon
