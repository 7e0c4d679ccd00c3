"""The FPGA form on a device: commands as launches of hw/opencl/fpga/*.cl."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyopencl as cl

from hw.opencl.fpga.channel_device import ChannelDevice
from hw.opencl.fpga.core_memory import CoreMemory
from hw.opencl.fpga.cutting import pieces, shares
from hw.opencl.fpga.launching import load
from hw.opencl.fpga.source import (
    COUNTERS,
    ORDERS,
    PASSING,
    RESULT,
    STAGED,
    every_kernel,
    insertion_kernels,
    probing_kernels,
    source,
    storing_kernels,
)
from hw.spec.params import JoinParams
from hw.spec.predicates import REGISTER
from hw.spec.tuples import RECORD, Side, key_dtype, tuple_dtype

__all__ = ["Engine"]

#: Rows that a prober scans where bounds are few: longer partitions are searched down to these.
SCAN_ROWS = 8
#: Rows that a prober scans at most.
MOST_SCANNED = 256


@dataclass
class _Subwindow:
    """Where a subwindow lies in every core's memory, and how many tuples are there."""

    capacity: int
    share: int  # most tuples of a core
    partition_rows: int
    first: int  # row
    index: int  # entry
    counts: np.ndarray  # by core

    @property
    def rows(self) -> int:
        return int(self.counts.sum())

    @property
    def entries(self) -> int:
        return -(-self.share // self.partition_rows)


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A batch of probes in device memory; `given` has registers, or one interval a band."""

    keys: cl.Buffer
    given: cl.Buffer
    intervals: bool
    bands: int
    negated: bool
    order: int
    keep: bool
    scan_rows: int


@dataclass(frozen=True)
class _Found:
    """Where a launch writes: the records, and if asked for the result stream and its length."""

    table: cl.Buffer
    results: cl.Buffer
    length: cl.Buffer


class Engine:
    """Distribution, join cores and collection over one device's memory.

    A merge goes from a subwindow's rows to free ones, which then are its rows.
    """

    def __init__(
        self, params: JoinParams, where: ChannelDevice, *, timeout_s: float = 60.0
    ) -> None:
        self.params, self._where, self._timeout_s = params, where, timeout_s
        text = source(params, where.depth, where.key_depth)
        self._loaded = load(where, text, every_kernel(params))
        self._memory = CoreMemory(self._loaded.context, params)
        self._counters = self._memory.zeros(params.cores * COUNTERS * 4)
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        """Begin an empty subwindow."""
        share = max(1, -(-capacity // self.params.cores))
        partition_rows = -(-share // self.params.partitions)
        area = _Subwindow(
            capacity, share, partition_rows, self._memory.take("rows", share), 0,
            np.zeros(self.params.cores, np.uint32),
        )
        area.index = self._memory.take("entries", area.entries)
        self._subwindows[side, subwindow] = area

    def room(self, side: Side, subwindow: int) -> tuple[int, int]:
        """The subwindow's capacity and the tuples that it holds."""
        area = self._subwindows[side, subwindow]
        return area.capacity, area.rows

    def bases(self, side: Side, subwindow: int) -> np.ndarray:
        """The position of each core's first tuple."""
        counts = self._subwindows[side, subwindow].counts
        return np.cumsum(counts, dtype=np.uint32) - counts

    def expire(self, side: Side, subwindow: int) -> None:
        """Forget the subwindow; its memory is free."""
        area = self._subwindows.pop((side, subwindow))
        self._memory.give_back("rows", area.first, area.share)
        self._memory.give_back("entries", area.index, area.entries)

    def insert(
        self, side: Side, subwindow: int, tuples: np.ndarray, *, passing: bool = False
    ) -> None:
        """Store a sorted batch that fits: every core stages its share, then merges it.

        Only one subwindow of a side takes tuples at a time, and besides it one that is `passing`.
        """
        if len(tuples) == 0:
            return
        area = self._subwindows[side, subwindow]
        memory = self._memory
        batch = memory.given(tuples)
        memory.stage(len(tuples))
        for first, count in pieces(self._where, len(tuples), self._where.depth):
            arguments: dict[str, tuple] = {"distribute_tuples": (batch, first, count)}
            for core in range(self.params.cores):
                arguments[f"store_{core}"] = (
                    memory.staged[core], self._counters, count,
                    PASSING if passing else int(side), int(first > 0),
                )
            self._launch(storing_kernels(self.params), arguments)
        counters = memory.read(
            np.empty((self.params.cores, COUNTERS), np.uint32), self._counters
        )
        target = memory.take("rows", area.share)
        merged = area.counts + counters[:, STAGED]
        assert merged.max() <= area.share
        for core in range(self.params.cores):
            self._merge(core, area, target, int(merged[core]))
        memory.give_back("rows", area.first, area.share)
        area.first, area.counts = target, merged

    def _merge(self, core: int, area: _Subwindow, target: int, merged: int) -> None:
        """Merge what a core has staged with its part of the subwindow, into other rows."""
        memory, staged = self._memory.cores[core], self._memory.staged[core]
        keys, rids, mergers = memory["keys"], memory["rids"], self.params.mergers
        for first, count in pieces(self._where, merged, self._where.depth * mergers):
            arguments: dict[str, tuple] = {
                f"split_{core}": (
                    keys, staged, self._counters, area.first, int(area.counts[core]), target,
                    first, first + count, area.partition_rows,
                ),
                f"index_partitions_{core}": (memory["index"], area.index),
            }
            for merger in range(mergers):
                arguments[f"feed_main_{core}_{merger}"] = (keys, rids)
                arguments[f"feed_batch_{core}_{merger}"] = (staged,)
                arguments[f"merge_{core}_{merger}"] = (keys, rids, area.partition_rows)
            self._launch(insertion_kernels(self.params, core), arguments)

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        """The rid of every position: core after core, each in its main array's order."""
        area = self._subwindows[side, subwindow]
        return self._memory.column("rids", np.dtype("<u4"), area.first, area.counts.tolist())

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        """Every tuple in order of position."""
        area = self._subwindows[side, subwindow]
        tuples = np.empty(area.rows, tuple_dtype(self.params.key_bits))
        tuples["key"] = self._memory.column(
            "keys", key_dtype(self.params.key_bits), area.first, area.counts.tolist()
        )
        tuples["rid"] = self.rids(side, subwindow)
        return tuples

    def probe(
        self,
        stored: Side,
        subwindows: Sequence[int],
        keys: np.ndarray,
        given: np.ndarray,
        *,
        negated: bool = False,
        order: str = "none",
        keep: bool = False,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Probe subwindows with a sorted batch; at most params.bands of what is `given`.

        That is REGISTER words, or explicit intervals of shape (probes, bands). Returns RECORD of
        shape (subwindows, probes, bands * cores), and with `keep` the result streams with their
        stars, one a launch (RESULT; subwindows and probes count within a launch's own piece).
        """
        bands = given.shape[-1]
        areas = [self._subwindows[stored, number] for number in subwindows]
        table = np.zeros((len(areas), len(keys), self.params.cores * bands), RECORD)
        streams = []
        batch = _Batch(
            keys=self._memory.given(keys), given=self._memory.given(given),
            intervals=given.dtype != REGISTER, bands=bands, negated=negated,
            order=ORDERS.index(order), keep=keep, scan_rows=self._scan_rows(areas, len(keys)),
        )
        for part in shares(
            self._where, self.params.probers, len(areas), len(keys), bands, batch.scan_rows
        ):
            inside = slice(part.first_area, part.last_area)
            records, stream = self._probe(areas[inside], batch, part.first, part.count)
            table[inside, part.first : part.first + part.count] = records
            streams += stream
        return table, streams

    def _probe(
        self, areas: list[_Subwindow], batch: _Batch, first: int, count: int
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """One launch: `count` probes of the batch against these subwindows."""
        memory, runs = self._memory, self.params.cores * batch.bands
        records = np.empty((len(areas), count, runs), RECORD)
        most = len(areas) * count * (runs + 1) + 1 if batch.keep else 0
        found = _Found(
            memory.zeros(records.nbytes), memory.buffer(most * RESULT.itemsize), memory.buffer(4)
        )
        arguments = self._ends(areas, batch, first, count, found)
        for core in range(self.params.cores):
            arguments |= self._of_core(core, areas, batch, count)
        self._launch(probing_kernels(self.params), arguments)
        memory.read(records, found.table)
        return records, [self._stream(found)] if batch.keep else []

    def _ends(
        self, areas: list[_Subwindow], batch: _Batch, first: int, count: int, found: _Found
    ) -> dict[str, tuple]:
        """Arguments of what all cores share: distribution and collection."""
        counts = np.array([area.counts for area in areas], np.uint32)
        bases = np.cumsum(counts, axis=1, dtype=np.uint32) - counts
        words = batch.bands if batch.intervals else 1
        return {
            "distribute_probes": (
                batch.keys, batch.given, first * words, count * words, int(batch.intervals),
                len(areas),
            ),
            "collect": (
                self._memory.given(bases), found.table, found.results, found.length, count,
                batch.bands, len(areas), int(batch.negated), batch.order, int(batch.keep),
            ),
        }

    def _of_core(
        self, core: int, areas: list[_Subwindow], batch: _Batch, count: int
    ) -> dict[str, tuple]:
        """Arguments of one core's kernels: boundary generator, lanes, punctuator."""
        memory, size = self._memory.cores[core], (count, batch.bands, len(areas))
        places = np.array(
            [(a.first, a.counts[core], a.index, a.partition_rows) for a in areas], np.uint32
        )
        where = self._memory.given(places)
        arguments: dict[str, tuple] = {
            f"bound_{core}": (
                batch.given, count, batch.bands, int(batch.intervals), len(areas)
            ),
            f"punctuate_{core}": (*size, int(batch.negated), batch.order),
        }
        for lane in range(self.params.probers):
            arguments[f"partition_{core}_{lane}"] = (
                memory["index"], memory["keys"], where, *size, batch.scan_rows
            )
            arguments[f"fetch_{core}_{lane}"] = (memory["keys"],)
            arguments[f"probe_{core}_{lane}"] = ()
        return arguments

    def _stream(self, found: _Found) -> np.ndarray:
        """The words of the result stream."""
        written = self._memory.read(np.empty(1, np.uint32), found.length)
        return self._memory.read(np.empty(int(written[0]), RESULT), found.results)

    def _scan_rows(self, areas: list[_Subwindow], probes: int) -> int:
        """Whole partitions where neighbours share them, else a few rows after a search."""
        rows = max((area.partition_rows for area in areas), default=1)
        partitions = sum(-(-int(area.counts.max()) // area.partition_rows) for area in areas)
        return min(rows, MOST_SCANNED if probes * len(areas) >= partitions else SCAN_ROWS)

    def _launch(self, names: list[str], arguments: dict[str, tuple]) -> None:
        self._loaded.launch(names, arguments, self._timeout_s)

    def close(self) -> None:
        """Release the device's memory; the program stays for the next engine."""
        self._subwindows.clear()
        self._memory.close()
