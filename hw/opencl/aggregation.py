"""Aggregates over matches, from records and prefix or block structures, never from pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hw.opencl.columns import Column, Folds, HeldColumn
from hw.opencl.frontier import Frontier, Watched
from hw.opencl.memory import HostArray, Pool
from hw.opencl.probing import Batch, ProbingEngine
from hw.opencl.program import COLUMN, FAN, Program, open_aggregates
from hw.opencl.sights import Sights
from hw.opencl.subwindow import Subwindow
from hw.spec.windows import Sight

__all__ = ["AggregationEngine", "Column", "aggregate_dtype"]

_U4, _U8 = np.uint32, np.uint64
_POOL = [None] * 8


def aggregate_dtype(values: Any) -> np.dtype:
    """The aggregates of one probe over int64 or float64 values: count, sum, least, largest.

    Without a match the count is 0, the sum 0, and least and largest mean nothing. A sum of
    integers wraps at 64 bits.
    """
    kind = np.dtype(values)
    return np.dtype([("count", "<i8"), ("sum", kind), ("least", kind), ("largest", kind)])


class AggregationEngine:
    """Columns of int64 or float64 beside the sorted arrays, built when they are asked for.

    What was built over a main array serves until that array changes; after an insertion into the
    tier, only the tier's part is built again.
    """

    def __init__(self, program: Program, pool: Pool, probing: ProbingEngine) -> None:
        self._pool, self._probing, self._device = pool, probing, program.device
        units = program.device.compute_units
        self._pieces = units * (4 if program.device.kind == "cpu" else 256)
        self._kernels: dict[str, dict[str, Any]] = {}
        self._words = HostArray(pool, COLUMN)
        self._sights = Sights(pool, self._pieces)
        self._sums = HostArray(pool, np.dtype("<f8")).reserve(2 * self._pieces)
        self._results = {kind: HostArray(pool, aggregate_dtype(kind)) for kind in ("<i8", "<f8")}

    def aggregate(
        self,
        subwindows: Sequence[Subwindow],
        batch: Batch,
        columns: Sequence[Column],
        sights: Sequence[Sight | None] | None = None,
    ) -> list[np.ndarray] | None:
        """aggregate_dtype for each column and probe, the caller's.

        The values of a rid that were passed before under a column's name are not looked at
        again. `sights` are as in hw.opencl.probing.Counting; None as in ProbingEngine.count.
        """
        for column in columns:
            self._build_all(subwindows, column)
        records = self._probing.probe(subwindows, batch)  # held, because the kernel reads it
        probes = len(batch.keys)
        if not probes or not subwindows:
            return [np.zeros(probes, aggregate_dtype(column.kind)) for column in columns]
        everything: list[Sight | None] = [None] * len(subwindows)
        watched = Watched(
            batch.side, probes, subwindows, everything if sights is None else sights
        )
        arguments = (
            self._probing.records_place, self._probing.arrays_place, *records.shape,
            records.shape[2] // self._probing.bands, int(batch.negated),
        )
        found = self._found(watched, columns, arguments)
        if found is None and self._probing.frontiers.make([watched]):
            # What was met tells now which frontiers are worth it.
            found = self._found(watched, columns, arguments)
        return found

    def _found(
        self, watched: Watched, columns: Sequence[Column], arguments: tuple[int, ...]
    ) -> list[np.ndarray] | None:
        """The aggregates from records; None where there was too much to look at."""
        frontiers = self._probing.frontiers.of(watched.subwindows)
        seen = self._sights.stage(watched.sights, frontiers)
        records, arrays, *shape = arguments
        found = []
        for column in columns:
            kernels, results = self._open(column.kind), self._results[column.kind]
            words = self._words.reserve(len(frontiers))
            for number, (subwindow, frontier) in enumerate(
                zip(watched.subwindows, frontiers, strict=True)
            ):
                held = subwindow.columns[column.name]
                if frontier is not None and column.is_sum:
                    self._fold(kernels, held, subwindow, frontier)
                words.host[number] = held.word(frontier is not None and column.is_sum)
            words.upload(len(frontiers))
            results.reserve(watched.probes)
            self._launch(
                kernels["aggregate"], records, arrays, words.place, *shape, results.place, *seen
            )
            self._pool.finish()
            if any(watched.sights):
                self._probing.frontiers.note(watched.side, watched.probes, self._sights.met)
            if self._sights.given_up:
                return None
            found.append(results.download(watched.probes).copy())
        return found

    def _fold(
        self, kernels: dict[str, Any], column: HeldColumn, subwindow: Subwindow,
        frontier: Frontier,
    ) -> None:
        """Bring the column's folds up to the frontier's marks."""
        folds = column.folds
        if folds is None or not folds.fits(frontier):
            if folds is not None:
                folds.free()
            folds = column.folds = Folds(self._pool, frontier)
        fresh = folds.version != column.version
        if not fresh and folds.number == frontier.number:
            return
        folds.version, folds.number = column.version, frontier.number
        values, count = column.levels[0], subwindow.count
        self._launch(
            kernels["fold"], frontier.marks, values, count, int(fresh), folds.place,
            self._sums.place,
        )
        self._launch(
            kernels["line_up_values"], frontier.marks, values, count, folds.place,
            self._sums.place, folds.edges,
        )

    def _build_all(self, subwindows: Sequence[Subwindow], column: Column) -> None:
        kernels = self._open(column.kind)
        for subwindow, values in zip(subwindows, column.values, strict=True):
            self._build(kernels, subwindow, column.name, values, column.kind, column.extremes)

    def _open(self, kind: str) -> dict[str, Any]:
        if kind not in self._kernels:
            program = open_aggregates(self._device, kind == "<f8")
            self._kernels[kind] = {
                "arrange": program.kernel(
                    "arrange", [*_POOL, _U8, _U8, _U4, _U4, _U8, _U8, _U8]
                ),
                "scan": program.kernel("scan_values", [*_POOL, _U8, _U4, _U4, _U8, _U8]),
                "summarise": program.kernel("summarise", [*_POOL, _U8, _U4, _U4, _U4, _U8]),
                "aggregate": program.kernel(
                    "aggregate",
                    [*_POOL, _U8, _U8, _U8, _U4, _U4, _U4, _U4, _U4, _U8, _U8, _U8],
                ),
                "fold": program.kernel("fold", [*_POOL, _U8, _U8, _U4, _U4, _U8, _U8]),
                "line_up_values": program.kernel(
                    "line_up_values", [*_POOL, _U8, _U8, _U4, _U8, _U8, _U8]
                ),
            }
        return self._kernels[kind]

    def _build(
        self, kernels: dict[str, Any], subwindow: Subwindow, name: str, values: np.ndarray,
        kind: str, extremes: bool,
    ) -> None:
        floating = kind == "<f8"
        column = subwindow.columns.get(name)
        # Rids also count tuples that can match nothing and are not stored.
        room = max(1, subwindow.room, len(values))
        if column is None or column.room < room or (extremes and not column.extremes):
            if column is not None:
                column.free()
            column = HeldColumn(self._pool, max(room, 2 * len(values)), floating, extremes)
            subwindow.columns[name] = column
        version = (subwindow.main_version, subwindow.version)
        if column.version == version:
            return
        count = subwindow.count
        # The main array's part is still right where only the tier has changed.
        first = subwindow.main_count if column.version[0] == version[0] else 0
        column.version = version
        self._upload(column, values, kind)
        if first == 0:
            self._pool.fill(column.special, np.zeros(1, np.uint32))
        self._launch(
            kernels["arrange"], subwindow.rids, column.by_rid, first, count, column.levels[0],
            self._sums.place, column.special,
        )
        self._launch(
            kernels["scan"], column.levels[0], first, count, self._sums.place, column.sums
        )
        below = count
        for level in range(1, column.depth):
            first //= FAN
            self._launch(
                kernels["summarise"], column.levels[level - 1], below, int(level == 1), first,
                column.levels[level],
            )
            below = -(-below // FAN)
        self._pool.finish()

    def _upload(self, column: HeldColumn, values: np.ndarray, kind: str) -> None:
        fresh = np.ascontiguousarray(values[column.uploaded :], kind)
        self._pool.fill(column.by_rid + column.uploaded * 8, fresh)
        column.uploaded = len(values)

    def _launch(self, kernel: Any, *arguments: int) -> None:
        self._pool.launch(kernel, (self._pieces,), *arguments)
