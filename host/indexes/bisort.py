"""BI-Sort (PanJoin III-D): an insertion buffer, a sorted main array, and its index array."""

from typing import ClassVar

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.index import Intervals
from host.indexes.lanes import LANES
from host.indexes.memory import move
from host.indexes.runs import add_run, list_runs
from host.indexes.search import keys_below, near_bound, rebound
from host.pages import empty_pages
from host.records import Runs

__all__ = ["BISortIndex"]

#: Keys of the main array between two of the index array (PanJoin's M / P).
_PARTITION = 64
_LAST_KEY = np.iinfo(np.int64).max
#: Keys of the main array to a probe up to which the next one's place is looked for nearby.
_NEAR = 12
#: Runs that are shorter are moved one by one: a call costs more.
_SHORT = 16


class BISortIndex:
    """Slots [0, capacity) are the main array, those behind it the insertion buffer.

    The buffer is sorted, unlike the paper's: a batch goes into it by a merge, which costs no more
    than the paper's scan of the whole buffer for each probe. See host.indexes.index.Index.
    """

    name: ClassVar[str] = "bisort"

    def __init__(self, capacity: int, buffer: int) -> None:
        self.capacity = capacity
        self.buffer = min(buffer, capacity)
        # What is compared at once may reach behind the last key.
        self._keys = empty_pages(capacity + self.buffer + LANES, np.int64)
        self._rids = empty_pages(capacity + self.buffer, np.uint32)
        self._rids[:] = 0  # places that hold nothing are looked up too, and must be rows
        self._index = np.empty(-(-capacity // _PARTITION), np.int64)
        self._main = self._buffered = 0

    def __len__(self) -> int:
        return self._main + self._buffered

    @property
    def rids(self) -> np.ndarray:
        return self._rids

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        # PanJoin III-E: a batch that is larger than the buffer is merged directly.
        if self._buffered + len(keys) > self.buffer:
            self._empty_buffer()
        if len(keys) > self.buffer:
            self._merge(keys, rids)
        else:
            _merge(self._keys, self._rids, self.capacity, self._buffered, keys, rids)
            self._buffered += len(keys)

    def _empty_buffer(self) -> None:
        waiting = slice(self.capacity, self.capacity + self._buffered)
        self._merge(self._keys[waiting], self._rids[waiting])
        self._buffered = 0

    def _merge(self, keys: np.ndarray, rids: np.ndarray) -> None:
        first = _merge(self._keys, self._rids, 0, self._main, keys, rids)
        self._main += len(keys)
        # The indexer: every n-th key from the first place that changed.
        sampled = -(-first // _PARTITION)
        ends = -(-self._main // _PARTITION)
        self._index[sampled:ends] = self._keys[sampled * _PARTITION : self._main : _PARTITION]

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.empty(len(wanted[0]), np.int64)
        _count(*self._searched, *wanted, self._start(len(found)), found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        start = self._start(len(wanted[0]))
        return list_runs(_find, (*self._searched, start), wanted, most)

    def _start(self, probes: int) -> np.ndarray:
        """Where the searches of a batch begin: in the index array, in the buffer, and, if there
        are so many probes that the next one's place is near, in the main array.
        """
        dense = probes * _NEAR > self._main
        near = 0 if dense else -1
        return np.array([0, 0, self.capacity, self.capacity, near, near])

    @property
    def _searched(self) -> tuple[np.ndarray, np.ndarray, int, int, int]:
        sampled = self._index[: -(-self._main // _PARTITION)]
        return self._keys, sampled, self._main, self.capacity, self.capacity + self._buffered

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        self._empty_buffer()
        return self._keys[: self._main].copy(), self._rids[: self._main].copy()

    def archive(self) -> None:
        self._empty_buffer()

    def _check(self) -> None:
        for begin, held in ((0, self._main), (self.capacity, self._buffered)):
            keys = self._keys[begin : begin + held]
            rids = self._rids[begin : begin + held].astype(np.int64)
            assert (keys[1:] >= keys[:-1]).all()
            assert ((keys[1:] > keys[:-1]) | (np.diff(rids) > 0)).all(), "equal keys in order"
        sampled = self._keys[: self._main : _PARTITION]
        assert (self._index[: len(sampled)] == sampled).all()
        assert self._buffered <= self.buffer and len(self) <= self.capacity


@compiled
def _merge(keys, rids, base, held, new_keys, new_rids):  # type: ignore[no-untyped-def]
    """Merge a batch into the `held` ones from `base` on, in place from the back.

    A batch goes behind equal keys, which came before it. The first place that is another's now.
    """
    end = base + held
    first = end
    for new in range(len(new_keys) - 1, -1, -1):
        key, step = new_keys[new], 1
        # The rebounding search, backward.
        stop = end
        while stop - step >= base and keys[stop - step] > key:
            stop -= step
            step += step
        first = max(base, stop - step)
        while first < stop:
            middle = (first + stop) >> 1
            if keys[middle] <= key:
                first = middle + 1
            else:
                stop = middle
        count = end - first
        if count < _SHORT:
            for place in range(end - 1, first - 1, -1):
                keys[place + new + 1] = keys[place]
                rids[place + new + 1] = rids[place]
        else:
            move(keys, first + new + 1, first, count)
            move(rids, first + new + 1, first, count)
        keys[first + new] = key
        rids[first + new] = new_rids[new]
        end = first
    return first


@compiled
def _bound(keys, index, main, partition, key):  # type: ignore[no-untyped-def]
    """The index array's first place at or behind the key, and the main array's."""
    partition = rebound(index, 0, partition, len(index), key)
    first = max(0, partition - 1) * _PARTITION
    return partition, near_bound(keys, first, min(partition * _PARTITION, main), key)


@compiled
def _next_bound(keys, index, main, key, state, which):  # type: ignore[no-untyped-def]
    """The main array's first place at or behind the key, near that of the key before if dense.

    `which` bound of an interval it is: the searches of the two begin apart.
    """
    place = state[4 + which]
    if place >= 0 and (place == 0 or keys[place - 1] < key):
        more = keys_below(keys, place, main - place, key)
        if more < LANES:
            state[4 + which] = place + more
            return place + more
    state[which], place = _bound(keys, index, main, state[which], key)
    if state[4 + which] >= 0:
        state[4 + which] = place
    return place


@compiled
def _ends(keys, index, main, base, buffered, lo, hi, state):  # type: ignore[no-untyped-def]
    """The runs of [lo, hi] in the main array and in the buffer; `state` is where to begin."""
    above = hi + 1 if hi < _LAST_KEY else hi
    start = _next_bound(keys, index, main, lo, state, 0)
    # Most runs are short, and end among the keys that are compared at once; not where the run
    # before ended behind this one's beginning.
    stop = start + LANES
    if max(state[5], (state[1] - 1) * _PARTITION) <= start:
        stop = start + keys_below(keys, start, main - start, above)
    if stop - start == LANES:
        stop = _next_bound(keys, index, main, above, state, 1)
    state[2] = rebound(keys, base, state[2], buffered, lo)
    other = state[2] + keys_below(keys, state[2], buffered - state[2], above)
    if other - state[2] == LANES:
        other = state[3] = rebound(keys, base, max(state[2], state[3]), buffered, above)
    if hi == _LAST_KEY:
        stop, other = main, buffered
    if lo > hi:
        stop, other = start, state[2]
    return start, stop, state[2], other


@compiled
def _count(keys, index, main, base, buffered, lo, hi, state, found):  # type: ignore[no-untyped-def]
    for probe in range(len(lo)):
        start, stop, first, last = _ends(
            keys, index, main, base, buffered, lo[probe], hi[probe], state
        )
        found[probe] = stop - start + last - first


@compiled
def _find(  # type: ignore[no-untyped-def]
    keys, index, main, base, buffered, state, lo, hi, done, held, ends, runs
):
    for probe in range(done, len(lo)):
        before = held
        start, stop, first, last = _ends(
            keys, index, main, base, buffered, lo[probe], hi[probe], state
        )
        if stop > start:
            held = add_run(runs, held, start, stop - start)
        if last > first:
            held = add_run(runs, held, first, last - first)
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
