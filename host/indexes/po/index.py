"""SPO-Join's window of one subwindow: a mutable part, and immutable PO-Join parts behind it."""

from itertools import pairwise

import numpy as np

from host.indexes.po.candidates import PoCandidates
from host.indexes.po.mutable import Mutable
from host.indexes.po.order import Order
from host.indexes.po.part import Part
from host.indexes.po.threads import Threads
from host.two_keys import Rectangles

__all__ = ["PoIndex", "part_of"]

#: Tuples after which the mutable part is merged (the paper's delta).
MERGE_INTERVAL = 1 << 11
#: Rectangles from which on a merge costs less than their bit arrays.
_MANY = 128


class PoIndex:
    """Up to `capacity` tuples with two keys (dtype of host.two_keys).

    The paper's immutable parts stay as they are merged. Here two are merged into one when the
    older is not twice as large, and all when no more tuples come, so that a probe meets few.
    """

    def __init__(self, capacity: int, merge_interval: int = MERGE_INTERVAL) -> None:
        self.capacity = capacity
        self.merge_interval = merge_interval
        self._mutable: Mutable | None = None
        self._parts: list[Part] = []

    def __len__(self) -> int:
        return sum(map(len, self._parts)) + len(self._mutable or ())

    def insert(self, tuples: np.ndarray) -> None:
        """Take tuples that ascend by key, then by rid; the caller has seen that they fit."""
        if len(tuples) < self.merge_interval:
            if self._mutable is None:
                self._mutable = Mutable(min(self.capacity, 2 * self.merge_interval), tuples.dtype)
            self._mutable.insert(tuples)
            if len(self._mutable) >= self.merge_interval:
                self._merge_mutable()
        else:
            self._merge_mutable()
            self._add(part_of(tuples))
        if len(self) == self.capacity:
            self._merge_mutable()
            self._mutable = None
            while len(self._parts) > 1:
                self._merge_last()

    def find(self, wanted: Rectangles, threads: Threads | None = None) -> PoCandidates:
        """What those rectangles hold, valid until the next insert; many are dealt to threads."""
        if len(wanted) >= _MANY:
            self._merge_mutable()
        return PoCandidates(wanted, tuple(self._parts), self._mutable, threads)

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        """First keys and rids of all tuples by key, then by rid."""
        pieces = [(part.firsts.keys, part.firsts.rids) for part in self._parts]
        if self._mutable is not None:
            pieces.append(self._mutable.tuples())
        if not pieces:
            return np.empty(0, np.int64), np.empty(0, np.uint32)
        keys, rids = (np.concatenate(column) for column in zip(*pieces, strict=True))
        order = np.lexsort((rids, keys))
        return keys[order], rids[order]

    def _merge_mutable(self) -> None:
        if self._mutable is not None and len(self._mutable):
            self._add(self._mutable.merge())

    def _add(self, part: Part) -> None:
        self._parts.append(part)
        while len(self._parts) > 1 and len(self._parts[-2]) < 2 * len(self._parts[-1]):
            self._merge_last()

    def _merge_last(self) -> None:
        newer = self._parts.pop()
        self._parts[-1] = self._parts[-1].merged(newer)

    def _check(self) -> None:
        """Assert that parts halve in size, hold each tuple once and are sound; for tests."""
        sizes = [len(part) for part in self._parts]
        assert all(older >= 2 * newer for older, newer in pairwise(sizes))
        assert len(self._mutable or ()) < self.merge_interval
        assert len(self) <= self.capacity
        assert len(self) < self.capacity or len(sizes) <= 1
        for part in self._parts:
            part._check()
        rids = self.ascending()[1]
        assert len(np.unique(rids)) == len(rids) == len(self)


def part_of(tuples: np.ndarray) -> Part:
    """An immutable part of tuples with two keys."""
    rids, nth = np.ascontiguousarray(tuples["rid"]), tuples["nth"]
    firsts = Order(np.ascontiguousarray(tuples["key"]), rids)
    return Part(firsts, Order(tuples["second"][nth], rids[nth]))
