"""The records that cross a layer, as little-endian numpy dtypes without padding."""

from enum import IntEnum

import numpy as np

__all__ = [
    "NOT",
    "PAIR",
    "RECORD",
    "Side",
    "interval_dtype",
    "key_dtype",
    "key_limits",
    "tuple_dtype",
]


class Side(IntEnum):
    """A stream: left is the papers' R, right their S."""

    LEFT = 0
    RIGHT = 1

    @property
    def other(self) -> "Side":
        return _OTHER[self]

    @property
    def letter(self) -> str:
        """'l' or 'r', as conditions and results spell it."""
        return "lr"[self]


_OTHER = (Side.RIGHT, Side.LEFT)

_KEYS: dict[int, np.dtype] = {32: np.dtype("<i4"), 64: np.dtype("<i8")}
_TUPLES = {bits: np.dtype([("key", key), ("rid", "<u4")]) for bits, key in _KEYS.items()}
_INTERVALS = {bits: np.dtype([("lo", key), ("hi", key)]) for bits, key in _KEYS.items()}

#: A probe's answer in one subwindow: the positions [start, end) of its sorted main array. With
#: the bit NOT set in `end` it means every position outside of them (PanJoin III-D, `not`).
RECORD = np.dtype([("start", "<u4"), ("end", "<u4")])
NOT = np.uint32(1 << 31)

#: Two row numbers, each counted from the beginning of its stream.
PAIR = np.dtype([("left", "<i8"), ("right", "<i8")])


def _of(table: dict[int, np.dtype], key_bits: int) -> np.dtype:
    if key_bits not in table:
        raise ValueError(f"key_bits must be 32 or 64, not {key_bits}")
    return table[key_bits]


def key_dtype(key_bits: int) -> np.dtype:
    """The signed integer that holds a key."""
    return _of(_KEYS, key_bits)


def tuple_dtype(key_bits: int) -> np.dtype:
    """A stored tuple: its key, and `rid`, its number in order of arrival in its subwindow."""
    return _of(_TUPLES, key_bits)


def interval_dtype(key_bits: int) -> np.dtype:
    """A closed interval of keys [lo, hi]; empty if lo > hi."""
    return _of(_INTERVALS, key_bits)


def key_limits(key_bits: int) -> tuple[int, int]:
    """The smallest and the largest key."""
    return -(1 << (key_bits - 1)), (1 << (key_bits - 1)) - 1
