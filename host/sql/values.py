"""Columns of values as an evaluation sees them, and how Arrow columns become such."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.sql import exact
from host.sqltypes import Kind, SqlType

__all__ = ["Value", "all_valid", "filled", "integers", "load", "repeated"]

_NUMPY = {Kind.BOOLEAN: np.dtype(bool), Kind.NULL: np.dtype(bool)}
_INTEGERS = {32: pa.Int32Array, 64: pa.Int64Array}
_ARROW_TEXT = {Kind.STRING: pa.large_string(), Kind.BINARY: pa.large_binary()}


@dataclass(frozen=True)
class Value:
    """One value a row, all of one type.

    data   text: an Arrow array of large strings or binaries; booleans and floats: numpy; exact
           types: int64 or Python integers (see host.sql.exact) in units of the type
    valid  False where the value is NULL (data is then any value of the type); None if none is
    """

    data: Any
    valid: np.ndarray | None = None

    def taken(self, rows: np.ndarray) -> "Value":
        """The values of some rows, by their numbers."""
        data = self.data[rows] if isinstance(self.data, np.ndarray) else self.data.take(rows)
        return Value(data, None if self.valid is None else self.valid[rows])

    def known(self, rows: int) -> np.ndarray:
        """`valid` as an array."""
        return np.ones(rows, bool) if self.valid is None else self.valid


def all_valid(*values: Value) -> np.ndarray | None:
    """Where none of the values is NULL."""
    valid: np.ndarray | None = None
    for value in values:
        if value.valid is not None:
            valid = value.valid if valid is None else valid & value.valid
    return valid


def repeated(constant: Any, type: SqlType, rows: int) -> Value:
    """A constant as a column."""
    if constant is None:
        return Value(filled(type, rows), np.zeros(rows, bool))
    if type.text:
        return Value(pa.repeat(pa.scalar(constant, _ARROW_TEXT[type.kind]), rows))
    if type.exact and type.kind is not Kind.BOOLEAN and not -(1 << 63) <= constant < 1 << 63:
        return Value(np.full(rows, constant, object))
    return Value(np.full(rows, constant, _dtype(type)))


def filled(type: SqlType, rows: int) -> np.ndarray | pa.Array:
    """Data of NULLs."""
    if type.text:
        return pa.repeat(pa.scalar(b"" if type.kind is Kind.BINARY else "",
                                   _ARROW_TEXT[type.kind]), rows)
    return np.zeros(rows, _dtype(type))


def _dtype(type: SqlType) -> np.dtype:
    if type.kind is Kind.FLOAT:
        return np.dtype(f"f{type.bits // 8}")
    return _NUMPY.get(type.kind, np.dtype(np.int64))


def load(array: pa.Array, type: SqlType) -> Value:
    """The values of an Arrow column whose type of the language is `type`."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    valid = None
    if array.null_count:
        valid = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    if type.text:
        return Value(array.cast(_ARROW_TEXT[type.kind]), valid)
    data = _numbers(array, type)
    if valid is not None and data.dtype != bool:
        # What an Arrow buffer holds under a NULL is anything; zero makes no kernel stumble.
        data = np.where(valid, data, data.dtype.type(0))
    if type.exact and data.dtype not in (bool, np.uint64):
        data = exact.narrowed(data)
    return Value(data, valid)


def _numbers(array: pa.Array, type: SqlType) -> np.ndarray:
    """The column's own buffer as numbers; what lies under a NULL is undefined."""
    if type.kind is Kind.NULL:
        return np.zeros(len(array), bool)
    if type.kind is Kind.BOOLEAN:
        return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False))
    if type.kind is Kind.DECIMAL:
        return _unscaled(array)
    if pa.types.is_date64(array.type):
        array = array.cast(pa.date32())
    if array.type.id == pa.float16().id:
        array = array.cast(pa.float32())
    width = array.type.bit_width // 8
    unsigned = pa.types.is_unsigned_integer(array.type)
    letter = "f" if type.kind is Kind.FLOAT else "u" if unsigned else "i"
    return _buffer(array, np.dtype(f"{letter}{width}"), 1)


def integers(array: pa.Array, bits: int) -> np.ndarray | None:
    """The column's own buffer, where it has signed integers of that width and no NULL."""
    if not isinstance(array, _INTEGERS[bits]) or array.null_count:
        return None
    return _buffer(array, np.dtype(f"i{bits // 8}"), 1)


def _unscaled(array: pa.Array) -> np.ndarray:
    """The integers of a decimal column: at most 18 digits, so the low word has all of them."""
    if array.type.bit_width == 32:
        return _buffer(array, np.dtype("<i4"), 1)
    return _buffer(array, np.dtype("<i8"), array.type.bit_width // 64)[::array.type.bit_width // 64]


def _buffer(array: pa.Array, dtype: np.dtype, words: int) -> np.ndarray:
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return np.zeros(0, dtype)
    start = array.offset * words * dtype.itemsize
    return np.frombuffer(buffer, dtype, len(array) * words, start)
