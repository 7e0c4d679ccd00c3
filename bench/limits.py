"""The limit: what memory allows a join of this design, by its bandwidth in the same run."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from bench.rounds import THREADS
from host.chain import subwindow_rows
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow

__all__ = ["MemoryCopy", "bytes_a_tuple"]

_TUPLE, _LINE = 8, 64
#: Least and most rows of the engine's insertion tier, and what share of a main array it has.
_TIER_ROWS, _TIER_SHARE = (1 << 16, 1 << 18), 16


class MemoryCopy:
    """A copy of an array of 8-byte tuples, by one thread or two: take the faster."""

    def __init__(self, tuples: int) -> None:
        self.source = np.arange(tuples)
        self.target = np.zeros_like(self.source)
        self._halves = [slice(0, tuples // 2), slice(tuples // 2, None)]
        self._threads = ThreadPoolExecutor(THREADS)

    @property
    def jobs(self) -> tuple[Callable[[], Callable[[], object]], ...]:
        """By one thread, by two."""
        return lambda: self._by_one, lambda: self._by_two

    @property
    def size_bytes(self) -> int:
        return self.source.nbytes

    def close(self) -> None:
        self._threads.shutdown()

    def _by_one(self) -> None:
        np.copyto(self.target, self.source)

    def _by_two(self) -> None:
        list(self._threads.map(self._copy, self._halves))

    def _copy(self, half: slice) -> None:
        np.copyto(self.target[half], self.source[half])


def bytes_a_tuple(rows: int, batch: int) -> float:
    """Bytes that BI-Sort cannot help moving for a tuple, each counted once, as of a copy.

    A probe reads a line of each subwindow of the other stream, or its share of the whole where
    the batch is so dense that probes share lines. An insertion moves its share of half a main
    array, once for each full tier, and what it brings is written once.
    """
    window = RowWindow(rows, rows)
    subwindow = subwindow_rows(window, Side.LEFT, "opencl")
    lines = min(_LINE, 4 * subwindow / batch) * rows / subwindow
    half = subwindow / 2
    tier = min(subwindow, max(_TIER_ROWS[0], min(_TIER_ROWS[1], half / _TIER_SHARE)))
    moved = _TUPLE * half / tier
    return lines + moved + _TUPLE
