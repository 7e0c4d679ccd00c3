"""A hash table for pure equality: the papers' other baseline, which finds no interval but a key."""

from typing import ClassVar

import numpy as np

from host.indexes.arrived import Arrived
from host.indexes.compiling import compiled
from host.indexes.index import Intervals
from host.indexes.runs import add_run, list_runs
from host.records import Runs

__all__ = ["HashTable"]

_NONE = -1
#: Fibonacci's multiplier: the upper bits of the product depend on every bit of the key.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class HashTable(Arrived):
    """Chained buckets, about one tuple to each; the tuples lie as they came.

    Intervals must be single keys or empty. See host.indexes.index.Index.
    """

    name: ClassVar[str] = "hash"

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._next = np.empty(capacity, np.int32)
        self._bits = max(1, (capacity - 1).bit_length())
        self._first = np.full(1 << self._bits, _NONE, np.int32)

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        begin = self._held
        super().insert(keys, rids)
        _insert(self._keys, self._next, self._first, 64 - self._bits, begin, self._held)

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.empty(len(wanted[0]), np.int64)
        _count(*self._searched(wanted), *wanted, found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return list_runs(_find, self._searched(wanted), wanted, most)

    def _searched(self, wanted: Intervals) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        lo, hi = wanted
        assert (hi <= lo).all(), "a hash table finds single keys"
        return self._keys, self._next, self._first, 64 - self._bits

    def _check(self) -> None:
        reached = set()
        for bucket, first in enumerate(self._first.tolist()):
            slot = first
            while slot >= 0:
                assert _bucket(self._keys[slot], 64 - self._bits) == bucket
                assert slot not in reached
                reached.add(slot)
                slot = int(self._next[slot])
        assert reached == set(range(self._held))


@compiled
def _bucket(key, shift):  # type: ignore[no-untyped-def]
    return np.int64((np.uint64(key) * _GOLDEN) >> np.uint64(shift))


@compiled
def _insert(keys, behind, first, shift, begin, end):  # type: ignore[no-untyped-def]
    for slot in range(begin, end):
        bucket = _bucket(keys[slot], shift)
        behind[slot] = first[bucket]
        first[bucket] = slot


@compiled
def _count(keys, behind, first, shift, lo, hi, found):  # type: ignore[no-untyped-def]
    for probe in range(len(lo)):
        key, inside, slot = lo[probe], 0, np.int64(_NONE)
        if key == hi[probe]:
            slot = np.int64(first[_bucket(key, shift)])
        while slot >= 0:
            inside += keys[slot] == key
            slot = np.int64(behind[slot])
        found[probe] = inside


@compiled
def _find(keys, behind, first, shift, lo, hi, done, held, ends, runs):  # type: ignore[no-untyped-def]
    for probe in range(done, len(lo)):
        key, before, slot = lo[probe], held, np.int64(_NONE)
        if key == hi[probe]:
            slot = np.int64(first[_bucket(key, shift)])
        while slot >= 0:
            if keys[slot] == key:
                held = add_run(runs, held, slot, 1)
            slot = np.int64(behind[slot])
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
