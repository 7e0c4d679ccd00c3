"""RaP-Table (PanJoin III-B): partitions of the key's range over an LLAT."""

from typing import ClassVar, NamedTuple

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.index import Index, Intervals
from host.indexes.llat import SIGMA, Llat, count_in, list_in, list_whole, llat, put
from host.indexes.over_llat import OverLlat
from host.indexes.runs import list_runs
from host.indexes.search import rebound
from host.indexes.splitters import adjusted, even_splitters
from host.records import Runs

__all__ = ["RapTable"]

#: Tuples of a partition when they are spread evenly (PanJoin's N_P).
_PARTITION = 128
_LEAST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class _Rap(NamedTuple):
    """The partition table, its histograms, and the tuples."""

    splitters: np.ndarray
    held: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    table: Llat


class RapTable(OverLlat):
    """`before` is the subwindow's predecessor, whose histograms give the splitters.

    See host.indexes.index.Index.
    """

    name: ClassVar[str] = "rap"

    def __init__(
        self, capacity: int, key_bits: int = 64, before: Index | None = None,
        partition: int = _PARTITION,
    ) -> None:  # fmt: skip
        self.capacity = capacity
        self.partitions = max(1, capacity // partition)
        width = int(np.ceil(capacity / self.partitions * SIGMA))
        if isinstance(before, RapTable) and len(before):
            splitters = before.adjusted_splitters(self.partitions)
        else:
            splitters = even_splitters(self.partitions, key_bits)
        # Entries above P are reserved: no more than P can fill up, since each holds sigma * N / P.
        self._state = _Rap(
            splitters,
            np.zeros(self.partitions, np.int64),
            np.full(self.partitions, _LARGEST),
            np.full(self.partitions, _LEAST),
            llat(2 * self.partitions, width, used=self.partitions),
        )

    def adjusted_splitters(self, partitions: int) -> np.ndarray:
        """The splitters of the next subwindow, by what this one has seen."""
        state = self._state
        found: np.ndarray = adjusted(state.held, state.least, state.largest, partitions)
        return found

    def __len__(self) -> int:
        return int(self._state.held.sum())

    @property
    def counts(self) -> np.ndarray:
        """Tuples of each partition."""
        return self._state.held

    @property
    def _table(self) -> Llat:
        return self._state.table

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        _insert(self._state, keys, rids)

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.empty(len(wanted[0]), np.int64)
        _count(self._state, *wanted, np.empty(self.partitions, np.int64), found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return list_runs(_find, (self._state,), wanted, most)

    def _check(self) -> None:
        state, table = self._state, self._state.table
        assert (np.diff(state.splitters) >= 0).all()
        bounds = [_LEAST, *state.splitters.tolist(), _LARGEST]
        width = len(table.keys) // len(table.head)
        linked = 0
        for part in range(self.partitions):
            keys, entry = [], part
            while entry >= 0:
                begin = entry * width
                assert table.tail[entry] <= table.head[entry] <= width
                assert (table.head[entry] == width) == (table.next[entry] >= 0)
                keys += table.keys[begin + table.tail[entry] : begin + table.head[entry]].tolist()
                entry, linked = table.next[entry], linked + 1
            assert len(keys) == state.held[part]
            for key in keys:
                assert key <= bounds[part + 1] and (part == 0 or key > bounds[part])
            if keys:
                assert (state.least[part], state.largest[part]) == (min(keys), max(keys))
        assert linked == table.used[0] <= len(table.head) == 2 * self.partitions


@compiled
def _insert(state, keys, rids):  # type: ignore[no-untyped-def]
    part, parts = 0, len(state.splitters)
    for new in range(len(keys)):
        key = keys[new]
        part = rebound(state.splitters, 0, part, parts, key)
        put(state.table, part, key, rids[new])
        state.held[part] += 1
        state.least[part] = min(state.least[part], key)
        state.largest[part] = max(state.largest[part], key)


@compiled
def _in_partition(state, part, low, high):  # type: ignore[no-untyped-def]
    """Tuples of one partition in [low, high]; its extremes may tell without a scan."""
    if state.held[part] == 0 or state.largest[part] < low or state.least[part] > high:
        return 0
    if state.least[part] >= low and state.largest[part] <= high:
        return state.held[part]
    return count_in(state.table, part, low, high)


@compiled
def _count(state, lo, hi, before, found):  # type: ignore[no-untyped-def]
    """`before` has room for the tuples before each partition; it is filled when it is needed."""
    parts = len(state.splitters)
    first = last = 0
    summed = False
    for probe in range(len(lo)):
        low, high = lo[probe], hi[probe]
        if low > high:
            found[probe] = 0
            continue
        # PanJoin III-F2: the target partitions of both bounds, and what lies between them.
        first = rebound(state.splitters, 0, first, parts, low)
        last = rebound(state.splitters, 0, max(first, last), parts, high)
        inside = _in_partition(state, first, low, high)
        if last > first:
            inside += _in_partition(state, last, low, high)
        if last - first > 4 and len(lo) > 4:
            if not summed:
                summed, total = True, 0
                for part in range(parts + 1):
                    before[part] = total
                    total += state.held[part]
            inside += before[last] - before[first + 1]
        else:
            for part in range(first + 1, last):
                inside += state.held[part]
        found[probe] = inside


@compiled
def _find(state, lo, hi, done, held, ends, runs):  # type: ignore[no-untyped-def]
    parts = len(state.splitters)
    first = last = 0
    for probe in range(done, len(lo)):
        low, high, before = lo[probe], hi[probe], held
        if low <= high:
            first = rebound(state.splitters, 0, first, parts, low)
            last = rebound(state.splitters, 0, max(first, last), parts, high)
            for part in range(first, last + 1):
                if state.held[part] == 0:
                    continue
                if state.least[part] >= low and state.largest[part] <= high:
                    held = list_whole(state.table, part, runs, held)
                elif state.largest[part] >= low and state.least[part] <= high:
                    held = list_in(state.table, part, low, high, runs, held)
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
