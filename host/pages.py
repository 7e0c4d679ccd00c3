"""Large arrays on pages of their own, which go back to the system when they are dropped."""

import mmap

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["empty_pages"]

_LARGE_BYTES = 1 << 20


def empty_pages(size: int, dtype: DTypeLike) -> np.ndarray:
    """An uninitialised array; a large one is not taken from the heap.

    Windows are made of long-lived arrays among many short-lived ones, and a heap shared by both
    grows to twice what is in use.
    """
    kind = np.dtype(dtype)
    if size * kind.itemsize < _LARGE_BYTES:
        return np.empty(size, kind)
    return np.frombuffer(mmap.mmap(-1, size * kind.itemsize), kind)
