"""Rectangles of keys as runs of positions in some tuples' two orders."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from host.indexes.po.offsets import offsets
from host.two_keys import Rectangles

__all__ = ["Bounds", "Runs", "groups_of"]

#: Of rectangles: first and end of their runs of first positions, and bounds of the second.
Bounds = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Runs:
    """Runs of both orders, one a rectangle; those of the second are made when they are asked for.

    first, end  of first positions, rectangle by rectangle
    wanted      the rectangles
    keys        second keys in their order
    """

    first: np.ndarray
    end: np.ndarray
    wanted: Rectangles
    keys: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @property
    def order(self) -> np.ndarray:
        return self.wanted.order

    @cached_property
    def bounded(self) -> tuple[bool, bool]:
        """Whether some rectangle leaves out second keys below it, and above it."""
        if not len(self.keys):
            return False, False
        lo, hi = self.wanted.second
        return bool((lo > self.keys[0]).any()), bool((hi < self.keys[-1]).any())

    @cached_property
    def _seconds(self) -> tuple[np.ndarray, np.ndarray]:
        lo, hi = self.wanted.second
        return offsets(self.keys, lo[self.order], hi[self.order])

    @property
    def low(self) -> np.ndarray:
        """First second position, in `order`."""
        return self._seconds[0]

    @property
    def high(self) -> np.ndarray:
        """End of second positions, in `order`."""
        return self._seconds[1]

    @cached_property
    def by_first(self) -> Bounds:
        """first, end, low, high, rectangle by rectangle."""
        low, high = np.empty_like(self.low), np.empty_like(self.high)
        low[self.order], high[self.order] = self.low, self.high
        return self.first, self.end, low, high

    @cached_property
    def by_second(self) -> Bounds:
        """first, end, low, high, in `order`."""
        return self.first[self.order], self.end[self.order], self.low, self.high


def groups_of(runs: Runs, count: int) -> list[tuple[np.ndarray, str]]:
    """Rectangles by what they want of `count` second positions: a prefix, a suffix or neither.

    (places in `order`, which), without empty groups.
    """
    prefix = runs.low == 0
    suffix = (runs.high == count) & ~prefix
    named = ((prefix, "prefix"), (suffix, "suffix"), (~prefix & ~suffix, "neither"))
    return [(np.flatnonzero(mask), name) for mask, name in named if mask.any()]
