"""The FPGA form on a device: memory, launches and bounded waits around hw/opencl/fpga/*.cl."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import NoReturn

import numpy as np
import pyopencl as cl

from hw.opencl.devices import Device, DeviceError, choose, list_devices, open_device
from hw.opencl.fpga.arena import Arena
from hw.opencl.fpga.source import (
    BLOCK,
    COUNTERS,
    ORDERS,
    PASSING,
    RESULT,
    STAGED,
    insertion_kernels,
    probing_kernels,
    source,
    storing_kernels,
)
from hw.opencl.program import build
from hw.spec.params import JoinParams
from hw.spec.predicates import REGISTER
from hw.spec.tuples import RECORD, Side, key_dtype, tuple_dtype

__all__ = ["ChannelDevice", "DeviceStuck", "Engine", "find_device", "has_channels"]

#: Rows that a prober scans where bounds are few: longer partitions are searched down to these.
SCAN_ROWS = 8
#: Rows that a prober scans at most.
MOST_SCANNED = 256


_CURE = (
    "program a card, or run Intel's FPGA emulator in an environment as "
    "hw.opencl.fpga.emulator makes it"
)


class DeviceStuck(DeviceError):
    """Kernels did not end in time, or failed; what is in the channels is unknown."""


@dataclass(frozen=True)
class ChannelDevice:
    """How to launch kernels that are joined by channels on one device.

    staged  Each kernel waits for those that feed it, and a launch carries no more than the channels
            hold. An emulator needs this: its kernels spin while they wait for each other, and
            without more processors than kernels that costs a scheduler's turn a word.
    """

    device: Device
    staged: bool
    depth: int
    key_depth: int


def has_channels(device: Device) -> bool:
    """Whether the FPGA form can run on the device."""
    return "cl_intel_channels" in device.handle.extensions.split()


def find_device(wanted: str | None = None) -> ChannelDevice:
    """The device that `wanted` names (see hw.opencl.devices.choose) among those with channels.

    Raises DeviceError where there is none.
    """
    devices = [device for device in list_devices() if has_channels(device)]
    if not devices:
        raise DeviceError(f"no OpenCL device has channels: {_CURE}")
    device = choose(wanted, devices)
    if "emulat" in device.name.lower():
        return ChannelDevice(device, staged=True, depth=8192, key_depth=16384)
    return ChannelDevice(device, staged=False, depth=64, key_depth=512)


@dataclass
class _Loaded:
    """A program on its device. All engines of one program share its channels: they take turns."""

    context: cl.Context
    kernels: dict[str, cl.Kernel]
    queues: dict[str, cl.CommandQueue]
    lock: Lock
    broken: str = ""


@cache
def _load(where: ChannelDevice, text: str, names: tuple[str, ...]) -> _Loaded:
    context = open_device(where.device)
    with warnings.catch_warnings():
        # The emulator lists every kernel that it did not vectorise.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        program = build(where.device, context, text)
    # Kernels that talk to each other run at once: each has a queue of its own.
    return _Loaded(
        context,
        {name: cl.Kernel(program, name) for name in names},
        {name: cl.CommandQueue(context) for name in names},
        Lock(),
    )


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


class Engine:
    """Distribution, join cores and collection over one device's memory.

    The memories of all cores are laid out alike. A merge goes from a subwindow's rows to free ones,
    which then are its rows. Keys, rids and index arrays are apart, so probers read keys alone.
    """

    def __init__(
        self, params: JoinParams, where: ChannelDevice, *, timeout_s: float = 60.0
    ) -> None:
        self.params, self._where, self._timeout_s = params, where, timeout_s
        names = [
            *storing_kernels(params),
            *(n for core in range(params.cores) for n in insertion_kernels(params, core)),
            *probing_kernels(params),
        ]
        text = source(params, where.depth, where.key_depth)
        self._loaded = _load(where, text, tuple(names))
        self._context = self._loaded.context
        self._copies = cl.CommandQueue(self._context)
        self._key = key_dtype(params.key_bits)
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}
        self._widths = {"keys": self._key.itemsize, "rids": 4, "index": self._key.itemsize}
        self._arenas = {"rows": Arena(1 << 12), "entries": Arena(1 << 10)}
        self._memory = [
            {name: self._buffer(self._arena(name).size * width)
             for name, width in self._widths.items()}
            for _ in range(params.cores)
        ]
        self._counters = self._filled(params.cores * COUNTERS * 4)
        self._staged: list[cl.Buffer] = []
        self._staged_rows = 0

    # Memory.

    def _arena(self, name: str) -> Arena:
        return self._arenas["entries" if name == "index" else "rows"]

    def _buffer(self, size: int) -> cl.Buffer:
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(size, 16))

    def _filled(self, size: int) -> cl.Buffer:
        buffer = self._buffer(size)
        zero = np.zeros(1, np.uint32)
        cl.enqueue_fill_buffer(self._copies, buffer, zero, 0, max(size, 16)).wait()
        return buffer

    def _given(self, array: np.ndarray) -> cl.Buffer:
        """The array as device memory for the next launch."""
        if array.nbytes == 0:
            return self._buffer(0)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))

    def _take(self, kind: str, places: int) -> int:
        """Free rows or entries at the same place of every core's memory."""
        arena = self._arenas[kind]
        first = arena.take(places)
        if first is None:
            self._grow(kind, 2 * arena.size + places)
            first = arena.take(places)
            assert first is not None
        return first

    def _grow(self, kind: str, places: int) -> None:
        """Make every core's memory longer; what is there stays."""
        arena = self._arenas[kind]
        if places >= 1 << 32:
            raise DeviceError(f"an engine of the FPGA form holds 2**32 {kind}, not {places}")
        for memory in self._memory:
            for name in memory:
                if self._arena(name) is arena:
                    longer = self._buffer(places * self._widths[name])
                    count = arena.size * self._widths[name]
                    cl.enqueue_copy(self._copies, longer, memory[name], byte_count=count).wait()
                    memory[name] = longer
        arena.grow(places)

    def _stage(self, tuples: int) -> None:
        """Make room for each core's share of a batch."""
        share = -(-tuples // self.params.cores)
        if share > self._staged_rows:
            size = share * tuple_dtype(self.params.key_bits).itemsize
            self._staged = [self._buffer(size) for _ in range(self.params.cores)]
            self._staged_rows = share

    # Commands.

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        """Begin an empty subwindow."""
        share = max(1, -(-capacity // self.params.cores))
        partition_rows = -(-share // self.params.partitions)
        area = _Subwindow(
            capacity, share, partition_rows, self._take("rows", share), 0,
            np.zeros(self.params.cores, np.uint32),
        )
        area.index = self._take("entries", area.entries)
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
        self._arenas["rows"].give_back(area.first, area.share)
        self._arenas["entries"].give_back(area.index, area.entries)

    def insert(
        self, side: Side, subwindow: int, tuples: np.ndarray, *, passing: bool = False
    ) -> None:
        """Store a sorted batch that fits: every core stages its share, then merges it.

        Only one subwindow of a side takes tuples at a time, and besides it one that is `passing`.
        """
        if len(tuples) == 0:
            return
        area = self._subwindows[side, subwindow]
        batch = self._given(tuples)
        self._stage(len(tuples))
        for first, count in self._pieces(len(tuples), self._where.depth):
            arguments: dict[str, tuple] = {"distribute_tuples": (batch, first, count)}
            for core in range(self.params.cores):
                arguments[f"store_{core}"] = (
                    self._staged[core], self._counters, count, PASSING if passing else int(side),
                    int(first > 0),
                )
            self._launch(storing_kernels(self.params), arguments)
        counters = np.empty((self.params.cores, COUNTERS), np.uint32)
        cl.enqueue_copy(self._copies, counters, self._counters)
        target = self._take("rows", area.share)
        merged = area.counts + counters[:, STAGED]
        assert merged.max() <= area.share
        for core in range(self.params.cores):
            self._merge(core, area, target, int(merged[core]))
        self._arenas["rows"].give_back(area.first, area.share)
        area.first, area.counts = target, merged

    def _merge(self, core: int, area: _Subwindow, target: int, merged: int) -> None:
        """Merge what a core has staged with its part of the subwindow, into other rows."""
        memory, staged = self._memory[core], self._staged[core]
        keys, rids, mergers = memory["keys"], memory["rids"], self.params.mergers
        for first, count in self._pieces(merged, self._where.depth * mergers):
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
        return self._column("rids", np.dtype("<u4"), self._subwindows[side, subwindow])

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        """Every tuple in order of position."""
        area = self._subwindows[side, subwindow]
        tuples = np.empty(area.rows, tuple_dtype(self.params.key_bits))
        tuples["key"] = self._column("keys", self._key, area)
        tuples["rid"] = self._column("rids", np.dtype("<u4"), area)
        return tuples

    def _column(self, name: str, dtype: np.dtype, area: _Subwindow) -> np.ndarray:
        column = np.empty(area.rows, dtype)
        first = 0
        for memory, count in zip(self._memory, area.counts.tolist(), strict=True):
            if count:
                offset = area.first * dtype.itemsize
                cl.enqueue_copy(
                    self._copies, column[first : first + count], memory[name], src_offset=offset
                )
            first += count
        return column

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
            keys=self._given(keys), given=self._given(given), intervals=given.dtype != REGISTER,
            bands=bands, negated=negated, order=order, keep=keep,
            scan_rows=self._scan_rows(areas, len(keys)),
        )
        for part in self._shares(len(areas), len(keys), bands, batch.scan_rows):
            first_area, last_area, first, count = part
            records, stream = self._probe(areas[first_area:last_area], batch, first, count)
            table[first_area:last_area, first : first + count] = records
            streams += stream
        return table, streams

    def _probe(
        self, areas: list[_Subwindow], batch: "_Batch", first: int, count: int
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """One launch: `count` probes of the batch against these subwindows."""
        cores, bands = self.params.cores, batch.bands
        counts = np.array([area.counts for area in areas], np.uint32)
        bases = np.cumsum(counts, axis=1, dtype=np.uint32) - counts
        records = np.empty((len(areas), count, cores * bands), RECORD)
        most = len(areas) * count * (cores * bands + 1) + 1 if batch.keep else 0
        table, results = self._filled(records.nbytes), self._buffer(most * RESULT.itemsize)
        length, order = self._buffer(4), ORDERS.index(batch.order)
        words = bands if batch.intervals else 1
        size = (count, bands, len(areas))
        arguments: dict[str, tuple] = {
            "distribute_probes": (
                batch.keys, batch.given, first * words, count * words, int(batch.intervals),
                len(areas),
            ),
            "collect": (
                self._given(bases), table, results, length, *size, int(batch.negated), order,
                int(batch.keep),
            ),
        }
        for core, memory in enumerate(self._memory):
            places = np.zeros((len(areas), 4), np.uint32)
            for place, area in zip(places, areas, strict=True):
                place[:] = area.first, area.counts[core], area.index, area.partition_rows
            place_buffer = self._given(places)
            arguments[f"bound_{core}"] = (
                batch.given, count, bands, int(batch.intervals), len(areas)
            )
            arguments[f"punctuate_{core}"] = (*size, int(batch.negated), order)
            for lane in range(self.params.probers):
                arguments[f"partition_{core}_{lane}"] = (
                    memory["index"], memory["keys"], place_buffer, *size, batch.scan_rows
                )
                arguments[f"fetch_{core}_{lane}"] = (memory["keys"],)
                arguments[f"probe_{core}_{lane}"] = ()
        self._launch(probing_kernels(self.params), arguments)
        cl.enqueue_copy(self._copies, records, table)
        return records, [self._stream(results, length)] if batch.keep else []

    def _stream(self, results: cl.Buffer, length: cl.Buffer) -> np.ndarray:
        written = np.empty(1, np.uint32)
        cl.enqueue_copy(self._copies, written, length)
        stream = np.empty(int(written[0]), RESULT)
        cl.enqueue_copy(self._copies, stream, results)
        return stream

    def _scan_rows(self, areas: list[_Subwindow], probes: int) -> int:
        """Whole partitions where neighbours share them, else a few rows after a search."""
        rows = max((area.partition_rows for area in areas), default=1)
        partitions = sum(-(-int(area.counts.max()) // area.partition_rows) for area in areas)
        return min(rows, MOST_SCANNED if probes * len(areas) >= partitions else SCAN_ROWS)

    # Launches.

    def _pieces(self, count: int, most: int) -> Iterator[tuple[int, int]]:
        """(first, count) of the launches for so many words: one, unless launches are staged."""
        step = min(count, most) if self._where.staged else count
        for first in range(0, count, max(1, step)):
            yield first, min(step, count - first)

    def _shares(
        self, subwindows: int, probes: int, bands: int, scan_rows: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """(first subwindow, last, first probe, probes) of the launches for one batch."""
        if subwindows == 0 or probes == 0:
            return
        if not self._where.staged:
            yield 0, subwindows, 0, probes
            return
        # All words of a launch fit into every channel: a lane's bounds and rows, a core's results.
        bounds = min(self._where.depth - 1, self._where.key_depth // scan_rows)
        of_lane = max(1, bounds // (2 * bands))
        of_core = (self._where.depth - 1) // (bands + 1)
        most = min(of_core, max(of_lane, of_lane // BLOCK * BLOCK * self.params.probers))
        share = min(probes, -(-probes // (BLOCK * self.params.probers)) * BLOCK)
        together = max(1, min(subwindows, of_lane // share, of_core // probes))
        for first_area in range(0, subwindows, together):
            last_area = min(subwindows, first_area + together)
            for first, count in self._pieces(probes, most):
                yield first_area, last_area, first, count

    def _launch(self, names: list[str], arguments: dict[str, tuple]) -> None:
        """Run kernels together and wait for all; `names` has each after those that feed it."""
        with self._loaded.lock:
            if self._loaded.broken:
                raise DeviceStuck(self._loaded.broken)
            events: list[cl.Event] = []
            for name in names:
                kernel, queue = self._loaded.kernels[name], self._loaded.queues[name]
                kernel.set_args(
                    *(np.uint32(a) if isinstance(a, int) else a for a in arguments[name])
                )
                after = events[-1:] if self._where.staged else None
                events.append(
                    cl.enqueue_nd_range_kernel(queue, kernel, (1,), (1,), wait_for=after)
                )
                queue.flush()
            self._await(names, events)

    def _await(self, names: list[str], events: list[cl.Event]) -> None:
        deadline = time.monotonic() + self._timeout_s
        pause_s = 0.0
        for name, event in zip(names, events, strict=True):
            while (status := event.command_execution_status) > 0:
                if time.monotonic() > deadline:
                    self._give_up(f"kernel {name} did not end in {self._timeout_s:g} s")
                time.sleep(pause_s)
                pause_s = min(pause_s + 1e-5, 1e-3)
            if status < 0:
                self._give_up(f"kernel {name} failed with status {status}")

    def _give_up(self, why: str) -> NoReturn:
        # Nothing can be said of what is left in the channels.
        self._loaded.broken = why
        raise DeviceStuck(why)

    def close(self) -> None:
        """Release the device's memory; the program stays for the next engine."""
        self._subwindows.clear()
        self._memory.clear()
        self._staged.clear()


@dataclass(frozen=True, kw_only=True)
class _Batch:
    """A batch of probes in device memory; `given` has registers, or one interval a band."""

    keys: cl.Buffer
    given: cl.Buffer
    intervals: bool
    bands: int
    negated: bool
    order: str
    keep: bool
    scan_rows: int
