"""Rectangles of keys as runs of positions in some tuples' two orders."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

__all__ = ["Bounds", "Runs", "groups_of"]

#: Runs of rectangles: first, end, second first, second end.
Bounds = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Runs:
    """Runs of both orders, one a rectangle.

    first, end  of first positions, rectangle by rectangle
    low, high   of second positions, in `order`
    """

    first: np.ndarray
    end: np.ndarray
    low: np.ndarray
    high: np.ndarray
    order: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

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
