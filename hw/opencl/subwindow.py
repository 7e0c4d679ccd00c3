"""Subwindows in an engine's memory: sorted arrays with their index, and the rids beside them."""

from typing import Any

import numpy as np

from hw.opencl.memory import Pool
from hw.opencl.program import FAN, LEVELS, PADDING
from hw.spec.tuples import key_dtype

__all__ = ["RID_BYTES", "KeyArray", "Subwindow"]

RID_BYTES = 4
#: A level of at most this many keys is the top of the sampled tree: it stays in the first cache.
_TOP = 2048


class KeyArray:
    """Room for sorted keys and for the levels of their index; `count` is what is used of it."""

    def __init__(self, pool: Pool, key_bits: int, room: int, stride: int = 0) -> None:
        self._pool = pool
        self.room = room
        self.count = 0
        self.stride = stride  # paper mode: keys to an entry of the one index
        self.levels = np.zeros(LEVELS, np.uint32)
        self.depth = 0
        size = _padded(room)
        entries = -(-room // stride) if stride else -(-room // FAN)
        keys = size
        while True:
            self.levels[self.depth] = size - keys
            size += _padded(entries)
            self.depth += 1
            if entries <= _TOP or stride:
                break
            entries = -(-entries // FAN)
        if stride:
            self.depth = 0
        width = key_dtype(key_bits).itemsize
        self._size = size * width
        self.keys = pool.allocate(self._size)
        self.index = self.keys + keys * width

    def entry(self, rids: int, base: int, count: int | None = None) -> tuple[object, ...]:
        """The array as an ARRAY word; `rids` is the place of its first tuple's rid."""
        count = self.count if count is None else count
        return (
            self.keys, rids, self.index, count, base, self.depth, self.stride, self.levels
        )

    def free(self) -> None:
        self._pool.free(self.keys, self._size)


class Subwindow:
    """One subwindow: main array, insertion tier (or buffer), rids of the one and then the other.

    Positions count through `rids`: first the main array, then the tier.
    """

    def __init__(self, pool: Pool, capacity: int) -> None:
        self._pool = pool
        self.capacity = capacity
        self.room = 0
        self.main: KeyArray | None = None
        self.tier: KeyArray | None = None
        self.spare: KeyArray | None = None
        self.rids = 0
        self.version = 0  # changes whenever a position may mean another tuple
        self.main_version = 0  # the same, of positions in the main array
        self.columns: dict[str, Any] = {}  # what aggregates are taken of, by name
        self.frontier: Any = None  # where one was made; see hw.opencl.frontier
        self.watched = -1  # its version when probes last saw a part of it

    @property
    def main_count(self) -> int:
        return self.main.count if self.main else 0

    @property
    def tier_count(self) -> int:
        return self.tier.count if self.tier else 0

    @property
    def count(self) -> int:
        return self.main_count + self.tier_count

    @property
    def tier_rids(self) -> int:
        """The place of the tier's first rid."""
        return self.rids + RID_BYTES * self.main_count

    def entries(self) -> tuple[tuple[object, ...], tuple[object, ...]]:
        """Main array and tier as ARRAY words."""
        return (
            self.main.entry(self.rids, 0) if self.main else _EMPTY,
            self.tier.entry(self.tier_rids, self.main_count) if self.tier else (
                (0, 0, 0, 0, self.main_count, 0, 0, _NO_LEVELS)
            ),
        )

    def replace_main(self, main: KeyArray, rids: int, room: int) -> None:
        """Take another main array and rids, and free the old ones."""
        self._free_main()
        self.main, self.rids, self.room = main, rids, room

    def free_tier(self) -> None:
        for array in (self.tier, self.spare):
            if array:
                array.free()
        self.tier = self.spare = None

    def free(self) -> None:
        self.free_tier()
        self._free_main()
        self.main = None
        for column in self.columns.values():
            column.free()
        self.columns = {}
        if self.frontier:
            self.frontier.free()
        self.frontier = None

    def _free_main(self) -> None:
        if self.main:
            self.main.free()
            self._pool.free(self.rids, self.room * RID_BYTES)


_NO_LEVELS = np.zeros(LEVELS, np.uint32)
_EMPTY = (0, 0, 0, 0, 0, 0, 0, _NO_LEVELS)


def _padded(keys: int) -> int:
    """Room for whole lines and what searches may read behind them."""
    return -(-keys // FAN) * FAN + PADDING
