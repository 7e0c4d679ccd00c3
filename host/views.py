"""What the probes of a batch see of the other stream's subwindows, and of the batch itself."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from host.chain import TIME, Subwindow
from host.preprocess import SideBatch
from host.stretches import edges_of, sight_of
from hw.spec.windows import RowWindow, Sight, TimeWindow, Window

__all__ = ["Seen", "Span", "View", "places_seen", "view_of"]

#: Rows, of a window or a batch, up to which row numbers are told apart modulo 2**32.
_MOST_ROWS = 1 << 30

#: First and last of some places, both included.
Span = tuple[int, int]


def places_seen(window: Window, batch: SideBatch) -> tuple[np.ndarray, np.ndarray]:
    """The places that each sorted probe sees, first and last."""
    place = batch.times if isinstance(window, TimeWindow) else batch.before
    assert place is not None
    return window.seen(batch.side, place[batch.order])


@dataclass(frozen=True)
class Seen:
    """The places that each sorted probe of a batch sees, made when they are asked for."""

    window: Window
    batch: SideBatch

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """First and last of every probe."""
        return places_seen(self.window, self.batch)

    @cached_property
    def view(self) -> "View":
        """What all probes see, and what some do; there is at least one."""
        return view_of(self.window, self.batch, lambda: self.places)


class View(Protocol):
    """What a batch's sorted probes see.

    some      no probe sees a place outside of these
    all_see   every probe sees all of these
    """

    @property
    def some(self) -> Span: ...

    @property
    def all_see(self) -> Span: ...

    def of(self, subwindow: Subwindow) -> Sight | None:
        """Of a stored subwindow; None where places do not follow arrivals."""

    def of_batch(self, stored: SideBatch, everything: bool = False) -> Sight | None:
        """Of the other stream's tuples in the batch: those that arrived before.

        With `everything`, of places that are times, also those that arrived later.
        """


def view_of(
    window: Window, batch: SideBatch,
    places: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None,
) -> View:
    """What a batch's probes see; there is at least one. `places` gives `places_seen`."""
    if isinstance(window, RowWindow):
        rows = window.rows(batch.side.other)
        if rows <= _MOST_ROWS and len(batch) <= _MOST_ROWS:
            return _RowView(batch, rows)
    return _PlaceView(batch, *(places() if places else places_seen(window, batch)))


@dataclass(frozen=True)
class _RowView:
    """The last `rows` rows that arrived before each probe; `before` ascends with arrivals."""

    batch: SideBatch
    rows: int

    @property
    def some(self) -> Span:
        before = self.batch.before
        return int(before[0]) - self.rows, int(before[-1]) - 1

    @property
    def all_see(self) -> Span:
        before = self.batch.before
        return int(before[-1]) - self.rows, int(before[0]) - 1

    @cached_property
    def _first(self) -> np.ndarray:
        """The first row number that each sorted probe sees, modulo 2**32."""
        order, before = self.batch.order, self.batch.before
        first: np.ndarray
        if self.batch.alternates:
            first = order.astype(np.uint32)
            first += np.uint32((int(before[0]) - self.rows) % (1 << 32))
        else:
            first = before.astype(np.uint32)[order]
            first -= np.uint32(self.rows)
        return first

    def of(self, subwindow: Subwindow) -> Sight:
        return self._from(subwindow.base)

    def of_batch(self, stored: SideBatch, everything: bool = False) -> Sight:
        # Rows of the batch that arrived later are beyond the last that is seen.
        return self._from(stored.first)

    def _from(self, base: int) -> Sight:
        some, every = (
            (first - base, last + 1 - base) for first, last in (self.some, self.all_see)
        )
        return Sight(self._first, self.rows, base, some, every)


@dataclass(frozen=True)
class _PlaceView:
    """Any places, of each sorted probe the first and the last."""

    batch: SideBatch
    first: np.ndarray
    last: np.ndarray

    @property
    def some(self) -> Span:
        return int(self.first.min()), int(self.last.max())

    @property
    def all_see(self) -> Span:
        return int(self.first.max()), int(self.last.min())

    def of(self, subwindow: Subwindow) -> Sight | None:
        edges = self._edges(subwindow.base, subwindow.times)
        return None if edges is None else sight_of(*edges)

    def of_batch(self, stored: SideBatch, everything: bool = False) -> Sight | None:
        edges = self._edges(stored.first, stored.carried.get(TIME))
        if edges is None:
            return None
        first, end = edges
        if not everything:
            end = np.minimum(end, self.batch.before[self.batch.order] - stored.first)
        return sight_of(first, end)

    def _edges(
        self, base: int, times: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        return edges_of(self.first, self.last, base, times, self.batch.order)
