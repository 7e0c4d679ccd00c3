"""Windows in sorted containers from PyPI, each kept by a process of its own.

Only numpy is imported with this module, so that such a process begins soon.
"""

from collections import deque
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

__all__ = ["BTreeWindow", "SortedListWindow", "serve"]


class SortedListWindow:
    """A sortedcontainers.SortedList of keys."""

    def __init__(self, keys: np.ndarray) -> None:
        from sortedcontainers import SortedList

        self._arrived = deque(keys.tolist())
        self._sorted = SortedList(self._arrived)

    def count(self, lo: np.ndarray, hi: np.ndarray) -> int:
        left, right = self._sorted.bisect_left, self._sorted.bisect_right
        ends = zip(lo.tolist(), hi.tolist(), strict=True)
        return sum([right(last) - left(first) for first, last in ends])

    def insert(self, keys: np.ndarray) -> None:
        """Take keys, and let as many of the oldest go."""
        for key in keys.tolist():
            self._sorted.add(key)
            self._arrived.append(key)
            self._sorted.remove(self._arrived.popleft())


class BTreeWindow:
    """A BTrees.LLBTree.LLTreeSet of keys above their row numbers: a set holds no key twice."""

    def __init__(self, keys: np.ndarray) -> None:
        from BTrees.LLBTree import LLTreeSet

        self._next = len(keys)
        packed = (keys.astype(np.int64) << 32) | np.arange(len(keys))
        self._arrived = deque(packed.tolist())
        self._sorted = LLTreeSet()
        self._sorted.update(np.sort(packed).tolist())

    def count(self, lo: np.ndarray, hi: np.ndarray) -> int:
        between = self._sorted.keys
        first = (lo.astype(np.int64) << 32).tolist()
        last = ((hi.astype(np.int64) << 32) | 0xFFFF_FFFF).tolist()
        return sum([len(between(*ends)) for ends in zip(first, last, strict=True)])

    def insert(self, keys: np.ndarray) -> None:
        """Take keys, and let as many of the oldest go."""
        rows = np.arange(self._next, self._next + len(keys)) & 0xFFFF_FFFF
        self._next += len(keys)
        for packed in ((keys.astype(np.int64) << 32) | rows).tolist():
            self._sorted.add(packed)
            self._arrived.append(packed)
            self._sorted.remove(self._arrived.popleft())


def serve(link: Connection, make: Callable[[np.ndarray], Any], keys: np.ndarray) -> None:
    """Answer (lo, hi, new keys) with the matches, until there is nothing more to answer."""
    window = make(keys)
    link.send(None)
    while (asked := link.recv()) is not None:
        lo, hi, new = asked
        found = window.count(lo, hi)
        window.insert(new)
        link.send(found)
