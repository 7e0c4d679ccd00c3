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
#: Rows of the insertion tier that the engine uses at these sizes.
_TIER = 1 << 16


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
    moved = _TUPLE * (subwindow / 2) / min(_TIER, subwindow)
    return lines + moved + _TUPLE
