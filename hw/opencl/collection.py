"""The collection step: records of many subwindows into one stream of matches, in chunks."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.probing import Batch, ProbingEngine
from hw.opencl.program import Program
from hw.opencl.subwindow import Subwindow

__all__ = ["CollectionEngine", "Matches", "Order"]

_U4, _U8 = np.uint32, np.uint64
_POOL = [None] * 8
_RUNS = [_U8, _U8, _U4, _U4, _U4, _U4, _U4, _U4, _U8]

Order = Literal["none", "outer", "strict"]


class Matches(NamedTuple):
    """A piece of the stream of matches; the arrays are valid until the next piece is asked for.

    probe      place in the batch (uint32)
    rid        of the stored tuple in its subwindow (uint32)
    subwindow  place in the list of subwindows: one number for the whole piece in order "none",
               otherwise an array (uint32); either indexes an array of the subwindows' first rows
    """

    probe: np.ndarray
    rid: np.ndarray
    subwindow: int | np.ndarray


class CollectionEngine:
    """Expands records through the rids, by prefix sums; a chunk bounds the memory in use."""

    def __init__(self, program: Program, pool: Pool, probing: ProbingEngine) -> None:
        self._pool, self._probing = pool, probing
        units = program.device.compute_units
        self._pieces = units * (4 if program.device.kind == "cpu" else 256)
        kernel = program.kernel
        self._sum = kernel("sum_runs", [*_POOL, *_RUNS, _U8])
        self._scan = kernel("scan_runs", [*_POOL, *_RUNS, _U8, _U8])
        self._expand = kernel(
            "expand", [*_POOL, *_RUNS, _U8, _U8, _U4, _U8, _U8, _U4, _U8]
        )
        self._order = kernel("order_groups", [*_POOL, _U4, _U4, _U4, _U8, _U8])
        self._arrival, self._sums = HostArray(pool, _U4), HostArray(pool, _U8)
        self._offsets = HostArray(pool, np.int64)
        self._probes, self._rids = HostArray(pool, _U4), HostArray(pool, _U4)
        self._subwindows = HostArray(pool, _U4)

    def collect(
        self,
        subwindows: Sequence[Subwindow],
        batch: Batch,
        chunk: int,
        order: Order = "none",
        arrival: np.ndarray | None = None,
    ) -> Iterator[Matches]:
        """Probe, and yield all matches in pieces of at most `chunk`.

        Order "none" goes subwindow by subwindow. "outer" has the matches of each probe together,
        in the order in which `arrival` lists places in the batch (as they are, without it), and
        within a probe by subwindow. "strict" also has those of a subwindow by rid; a piece is
        then longer than `chunk` where one probe has more matches than that in one subwindow.
        """
        records = self._probing.probe(subwindows, batch)  # held, because kernels read it
        shape = records.shape
        sequence = shape[0] * shape[1] * shape[2]
        if sequence == 0:
            return
        by_probe = order != "none"
        if by_probe:
            self._stage_arrival(shape[1], arrival)
        tiers = shape[2] // self._probing.bands
        runs = (
            self._probing.records_place, self._probing.arrays_place, *shape, tiers,
            int(batch.negated), int(by_probe), self._arrival.place,
        )
        offsets = self._scan_runs(runs, sequence)
        cuts = self._cuts(offsets, shape, chunk, order)
        for first, last in cuts:
            yield self._expand_piece(runs, offsets, first, last, order)

    def _stage_arrival(self, probes: int, arrival: np.ndarray | None) -> None:
        held = self._arrival.reserve(probes)
        held.host[:probes] = np.arange(probes) if arrival is None else arrival
        held.upload(probes)

    def _scan_runs(self, runs: tuple[int, ...], sequence: int) -> np.ndarray:
        """Matches before each record, and all of them behind the last."""
        sums = self._sums.reserve(self._pieces).place
        offsets = self._offsets.reserve(sequence + 1)
        self._launch(self._sum, *runs, sums)
        self._launch(self._scan, *runs, sums, offsets.place)
        self._pool.finish()
        return offsets.download(sequence + 1)

    def _cuts(
        self, offsets: np.ndarray, shape: tuple[int, ...], chunk: int, order: Order
    ) -> Iterator[tuple[int, int]]:
        """Pieces of the stream; each lies in one subwindow if order is "none"."""
        total = int(offsets[-1])
        if order == "strict":
            yield from self._whole_groups(offsets[:: shape[2]], chunk)
            return
        ends = offsets[shape[1] * shape[2] :: shape[1] * shape[2]] if order == "none" else [total]
        first = 0
        for end in ends:
            while first < int(end):
                last = min(int(end), first + chunk)
                yield first, last
                first = last

    def _whole_groups(self, groups: np.ndarray, chunk: int) -> Iterator[tuple[int, int]]:
        first, total = 0, int(groups[-1])
        while first < total:
            # The last end of a group within the chunk, or the first one beyond it.
            end = int(groups[np.searchsorted(groups, first + chunk, "right") - 1])
            last = end if end > first else int(groups[np.searchsorted(groups, first, "right")])
            yield first, last
            first = last

    def _expand_piece(
        self, runs: tuple[int, ...], offsets: np.ndarray, first: int, last: int, order: Order
    ) -> Matches:
        count = last - first
        probes, rids = self._probes.reserve(count), self._rids.reserve(count)
        names = order != "none"
        subwindows = self._subwindows.reserve(count) if names else self._subwindows
        self._launch(
            self._expand, *runs, self._offsets.place, first, count, probes.place, rids.place,
            int(names), subwindows.place,
        )
        if order == "strict":
            edges = np.searchsorted(offsets, (first, last), "left")
            # Empty runs before a group have its offset too: go on to where a group begins.
            low, high = (-(-int(edge) // runs[4]) * runs[4] for edge in edges)
            self._launch(
                self._order, runs[4], low, high, self._offsets.place, rids.place
            )
        self._pool.finish()
        where: int | np.ndarray
        if names:
            where = subwindows.download(count)
        else:
            record = int(np.searchsorted(offsets, first, "right")) - 1
            where = record // (runs[3] * runs[4])
        return Matches(probes.download(count), rids.download(count), where)

    def _launch(self, kernel: Any, *arguments: int) -> None:
        self._pool.launch(kernel, (self._pieces,), *arguments)
