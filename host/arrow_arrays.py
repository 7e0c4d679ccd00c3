"""numpy arrays as Arrow arrays, without pyarrow's detour through an import of pandas."""

import numpy as np
import pyarrow as pa

__all__ = ["from_mask", "from_numbers"]


def from_numbers(values: np.ndarray) -> pa.Array:
    """An array of int64 that shares the memory of `values`."""
    words = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(words), [None, pa.py_buffer(words)])


def from_mask(mask: np.ndarray) -> pa.Array:
    """An array of booleans."""
    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits)])
