"""numpy arrays as Arrow arrays, and back, without pyarrow's detours."""

import numpy as np
import pyarrow as pa

__all__ = ["from_mask", "from_numbers", "is_microseconds"]


def from_numbers(values: np.ndarray) -> pa.Array:
    """An array of int64 that shares the memory of `values`; pyarrow's own imports pandas."""
    words = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(words), [None, pa.py_buffer(words)])


def from_mask(mask: np.ndarray) -> pa.Array:
    """An array of booleans."""
    bits = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(bits)])


def is_microseconds(type: pa.DataType) -> bool:
    """Whether values of the type are instants that need no conversion.

    Arrow takes 0.1 ms to find that out by itself.
    """
    return pa.types.is_timestamp(type) and type.unit == "us"
