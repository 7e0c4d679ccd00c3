"""Large arrays on pages of their own, which go back to the system when they are dropped."""

import mmap
import weakref

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["Arena", "empty_pages"]

_LARGE_BYTES = 1 << 20
_LARGE_PAGE = 1 << 21
#: Blocks that an arena keeps for later.
_KEPT = 8


def empty_pages(size: int, dtype: DTypeLike) -> np.ndarray:
    """An uninitialised array; a large one is not taken from the heap.

    Windows are made of long-lived arrays among many short-lived ones, and a heap shared by both
    grows to twice what is in use.
    """
    kind = np.dtype(dtype)
    if size * kind.itemsize < _LARGE_BYTES:
        return np.empty(size, kind)
    return _mapped(size * kind.itemsize).view(kind)


def _mapped(size: int) -> np.ndarray:
    """Fresh bytes from the beginning of a large page on, in such pages where the system has them:
    to look up small ones takes a third of the time in which columns of pairs are written.
    """
    # Private, because the system gives no large pages to memory that could be shared.
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    pages = mmap.mmap(-1, size + _LARGE_PAGE, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    memory = np.frombuffer(pages, np.uint8)
    begin = -memory.ctypes.data % _LARGE_PAGE
    return memory[begin : begin + size]


class Arena:
    """Memory for results, lent again once nobody looks at it: fresh pages would cost more than
    what is written to them.
    """

    def __init__(self) -> None:
        self._free: list[np.ndarray] = []

    def lend(self, size: int) -> np.ndarray:
        """`size` bytes, not cleared, until the array's last view is gone; from any thread."""
        block = self._fitting(size)
        # The lender's view is what dies; what it looks at is kept by the call that waits for that.
        lent = block[:size]
        weakref.finalize(lent, self._take_back, block).atexit = False
        return lent

    def _fitting(self, size: int) -> np.ndarray:
        try:
            while True:  # another thread may take the last one meanwhile
                block = self._free.pop()
                if size <= len(block) <= 4 * size:
                    return block
        except IndexError:
            # Of whole pages: results are seldom of one size, but often of about one.
            whole = size if size < _LARGE_BYTES else -(-size // _LARGE_PAGE) * _LARGE_PAGE
            return empty_pages(whole, np.uint8)

    def _take_back(self, block: np.ndarray) -> None:
        if len(self._free) < _KEPT:
            self._free.append(block)
