"""Columns of stored values that aggregates go over, and what is built over them on the device."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.opencl.frontier import MARKED, Frontier
from hw.opencl.memory import Pool
from hw.opencl.program import COLUMN_LEVELS, FAN

__all__ = ["Column", "Folds", "HeldColumn"]

_NO_FOLDS = np.uint64((1 << 64) - 1)
_FOLD_BYTES = 48


@dataclass(frozen=True)
class Column:
    """A stored column that aggregates go over.

    name      tells columns apart
    values    one array to a subwindow, int64 or float64, by rid
    extremes  whether least and largest are found, too
    """

    name: str
    values: Sequence[np.ndarray]
    extremes: bool = True

    @property
    def kind(self) -> str:
        return "<f8" if any(values.dtype.kind == "f" for values in self.values) else "<i8"

    @property
    def is_sum(self) -> bool:
        """Whether it is only counted and added up, in integers."""
        return self.kind == "<i8" and not self.extremes


class HeldColumn:
    """One column of one subwindow on the device, with what was built over it."""

    def __init__(self, pool: Pool, room: int, floating: bool, extremes: bool) -> None:
        self._pool = pool
        self.room = room
        self.uploaded = 0  # values that came, by rid
        self.version = (-1, -1)  # of main array and subwindow, when it was built
        self.sum_bytes = 16 if floating else 8
        # What sums of marks read of the last one may lie behind the values.
        sizes = [room * 8, (room + 1) * self.sum_bytes, 64, (room + MARKED) * 8]
        entries, depth = room, 1
        while (extremes or floating) and entries > FAN and depth < COLUMN_LEVELS:
            entries = -(-entries // FAN)
            sizes.append(entries * 24)
            depth += 1
        self._parts = [(pool.allocate(size), size) for size in sizes]
        self.by_rid, self.sums, self.special, *self.levels = (place for place, _ in self._parts)
        self.depth, self.extremes = depth, extremes
        self.folds: Folds | None = None

    def word(self, folded: bool) -> tuple[object, ...]:
        """As a COLUMN word; its folds are used if they are those of the frontier."""
        levels = self.levels + [0] * (COLUMN_LEVELS - len(self.levels))
        folds = (self.folds.place, self.folds.edges) if folded and self.folds else (_NO_FOLDS, 0)
        return (levels, self.sums, self.special, *folds, self.depth, self.extremes)

    def free(self) -> None:
        for place, size in self._parts:
            self._pool.free(place, size)
        if self.folds:
            self.folds.free()


class Folds:
    """Sums of a column's values over the marks of a frontier, and the values on its edge."""

    def __init__(self, pool: Pool, frontier: Frontier) -> None:
        self._pool = pool
        self._room, self._edges_room = frontier.room, frontier.edges_room
        self.version = (-1, -1)  # of the column, when it was folded
        self.number = 0  # of the frontier then
        sizes = (self._room // MARKED + 1) * _FOLD_BYTES, self._edges_room * 8
        self._parts = [(pool.allocate(size), size) for size in sizes]
        (self.place, _), (self.edges, _) = self._parts

    def fits(self, frontier: Frontier) -> bool:
        return self._room >= frontier.room and self._edges_room >= frontier.edges_room

    def free(self) -> None:
        for part in self._parts:
            self._pool.free(*part)
