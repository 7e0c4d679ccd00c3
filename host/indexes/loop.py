"""The nested loop: no structure at all, which small windows can afford."""

from typing import ClassVar

import numpy as np
from numba import njit

from host.indexes.index import Intervals
from host.indexes.runs import add_run, as_runs, new_runs
from host.records import Runs

__all__ = ["LoopIndex"]

#: Tuples that all probes of a batch look at before the next: they stay in the nearest cache.
_BLOCK = 1 << 11


class LoopIndex:
    """Tuples in the order in which they came; see host.indexes.index.Index."""

    name: ClassVar[str] = "loop"

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._keys = np.empty(capacity, np.int64)
        self._rids = np.zeros(capacity, np.uint32)
        self._held = 0

    def __len__(self) -> int:
        return self._held

    @property
    def rids(self) -> np.ndarray:
        return self._rids[: self._held]

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        end = self._held + len(keys)
        self._keys[self._held : end] = keys
        self._rids[self._held : end] = rids
        self._held = end

    def count(self, wanted: Intervals) -> np.ndarray:
        found: np.ndarray = _count(self._keys[: self._held], *wanted)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return as_runs(_find(self._keys[: self._held], *wanted, most), most)

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((self.rids, self._keys[: self._held]))
        return self._keys[order], self._rids[order]

    def archive(self) -> None:
        """Nothing changes."""

    def _check(self) -> None:
        assert 0 <= self._held <= self.capacity


@njit(cache=True, nogil=True)
def _count(keys, lo, hi):  # type: ignore[no-untyped-def]
    found = np.zeros(len(lo), np.int64)
    for block in range(0, len(keys), _BLOCK):
        part = keys[block : block + _BLOCK]
        for probe in range(len(lo)):
            low, high, inside = lo[probe], hi[probe], 0
            for slot in range(len(part)):
                inside += (part[slot] >= low) & (part[slot] <= high)
            found[probe] += inside
    return found


@njit(cache=True, nogil=True)
def _find(keys, lo, hi, most):  # type: ignore[no-untyped-def]
    ends, runs, held = np.empty(len(lo), np.int64), new_runs(len(lo)), 0
    for probe in range(len(lo)):
        low, high, begin = lo[probe], hi[probe], -1
        for slot in range(len(keys)):
            inside = (keys[slot] >= low) & (keys[slot] <= high)
            if inside and begin < 0:
                begin = slot
            elif not inside and begin >= 0:
                runs = add_run(runs, held, begin, slot - begin)
                held, begin = held + 1, -1
        if begin >= 0:
            runs = add_run(runs, held, begin, len(keys) - begin)
            held += 1
        ends[probe] = held
        if held > most:
            ends[-1] = held
            break
    return ends, runs
