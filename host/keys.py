"""Column types <-> order-preserving integer keys.

A key is a signed integer of 32 or 64 bits. Values that are less have smaller keys, equal values
have equal keys (Spark's order: NaN above all and equal to itself, -0.0 equal to 0.0), and NULL has
none. The device never sees anything else.
"""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from host.sql import floats
from host.sql.values import load
from host.sql.zones import unit_name
from host.sqltypes import Kind, SqlType, type_of_arrow
from hw.spec.tuples import key_dtype

__all__ = ["KeyCodec", "codec_of", "decode_column", "encode_column"]

_NARROW = (Kind.BOOLEAN, Kind.DATE)


@dataclass(frozen=True)
class KeyCodec:
    """Values of one type <-> keys.

    For an exact type, key = scale * integer that stands for the value - bias; a negative scale
    turns the order round.

    bits  width that every key fits: 32 or 64
    """

    type: SqlType
    bits: int
    bias: int = 0
    scale: int = 1

    def encode(self, data: np.ndarray) -> np.ndarray:
        """The keys of a Value's data."""
        if self.type.kind is Kind.FLOAT:
            return floats.keys_of_floats(data)
        if self.bias:
            return _biased(data)
        keys = data.astype(key_dtype(self.bits))
        return keys if self.scale == 1 else keys * keys.dtype.type(self.scale)

    def decode(self, keys: np.ndarray) -> np.ndarray:
        """The data whose keys these are."""
        if self.type.kind is Kind.FLOAT:
            return floats.floats_of_keys(keys, self.type.bits)
        if self.bias:
            return keys.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)
        data = keys.astype(np.int64) // self.scale
        return data != 0 if self.type.kind is Kind.BOOLEAN else data

    def scaled(self, scale: int) -> "KeyCodec | None":
        """The same with keys that are multiples, or None if 64 bits do not hold all of them."""
        if scale == self.scale:
            return self
        if self.type.kind is Kind.FLOAT or self.bias:
            return None
        largest = abs(scale) * max(abs(limit) for limit in self.type.limits)
        if largest >= 1 << 63:
            return None
        return replace(self, scale=scale, bits=32 if largest < 1 << 31 else 64)


def codec_of(type: SqlType) -> KeyCodec | None:
    """The keys of a type, or None if it has none of 64 bits."""
    if type.kind is Kind.FLOAT:
        return KeyCodec(type, type.bits)
    if not type.exact or (type.kind is Kind.DECIMAL and type.precision > 18):
        return None
    if type.kind is Kind.INTEGER and not type.signed:
        return KeyCodec(type, 64, 1 << 63)
    narrow = type.kind in _NARROW or (type.kind is Kind.INTEGER and type.bits <= 32)
    return KeyCodec(type, 32 if narrow else 64)


def _biased(data: np.ndarray) -> np.ndarray:
    """Unsigned integers moved down by 2 ** 63, so that they order as signed ones."""
    if data.dtype == object:
        return (data - (1 << 63)).astype(np.int64)
    return (data.astype(np.uint64, copy=False) ^ np.uint64(1 << 63)).view(np.int64)


def encode_column(array: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Keys of an Arrow column, and where it has one (not at NULL)."""
    type = type_of_arrow(array.type)
    codec = None if type is None else codec_of(type)
    if codec is None:
        raise TypeError(f"a column of {array.type} has no order-preserving key")
    value = load(array, codec.type)
    return codec.encode(value.data), value.known(len(array))


def decode_column(keys: np.ndarray, arrow: pa.DataType) -> pa.Array:
    """The column of type `arrow` whose keys these are."""
    type = type_of_arrow(arrow)
    codec = None if type is None else codec_of(type)
    if codec is None:
        raise TypeError(f"a column of {arrow} has no order-preserving key")
    data = codec.decode(keys)
    if codec.type.kind is Kind.DECIMAL:
        return _decimals(data, arrow)
    if codec.type.kind is Kind.TIMESTAMP:
        return pa.array(data, pa.timestamp(unit_name(codec.type.unit_ns), codec.type.zone))
    if codec.type.kind is Kind.DATE:
        return pa.array(data.astype(np.int32)).cast(pa.date32()).cast(arrow)
    return pa.array(data).cast(arrow)


def _decimals(data: np.ndarray, arrow: pa.DataType) -> pa.Array:
    words = np.stack([data, data >> 63], axis=1)
    wide = pa.decimal128(arrow.precision, arrow.scale)
    array = pa.Array.from_buffers(wide, len(data), [None, pa.py_buffer(words.tobytes())])
    return array.cast(arrow)
