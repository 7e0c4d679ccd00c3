"""The nested loop: no structure at all, which small windows can afford."""

from typing import ClassVar

import numpy as np

from host.indexes.arrived import Arrived
from host.indexes.compiling import compiled
from host.indexes.index import Intervals
from host.indexes.llat import list_block
from host.indexes.runs import list_runs
from host.records import Runs

__all__ = ["LoopIndex"]

#: Tuples that all probes of a batch look at before the next: they stay in the nearest cache.
_BLOCK = 1 << 11
#: Tuples that are compared at once before single ones are looked at.
_SMALL_BLOCK = 64


class LoopIndex(Arrived):
    """Tuples in the order in which they came; see host.indexes.index.Index."""

    name: ClassVar[str] = "loop"

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.zeros(len(wanted[0]), np.int64)
        _count(self._keys[: self._held], *wanted, found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return list_runs(_find, (self._keys[: self._held],), wanted, most)

    def _check(self) -> None:
        assert 0 <= self._held <= self.capacity


@compiled
def _count(keys, lo, hi, found):  # type: ignore[no-untyped-def]
    for block in range(0, len(keys), _BLOCK):
        part = keys[block : block + _BLOCK]
        for probe in range(len(lo)):
            low, high, inside = lo[probe], hi[probe], 0
            for slot in range(len(part)):
                inside += (part[slot] >= low) & (part[slot] <= high)
            found[probe] += inside


@compiled
def _find(keys, lo, hi, done, held, ends, runs):  # type: ignore[no-untyped-def]
    for probe in range(done, len(lo)):
        before = held
        for block in range(0, len(keys), _SMALL_BLOCK):
            part = keys[block : block + _SMALL_BLOCK]
            held = list_block(part, block, lo[probe], hi[probe], runs, held)
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
