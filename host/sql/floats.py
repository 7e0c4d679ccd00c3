"""Spark's order of floats: NaN equals NaN and is above all else, -0.0 equals 0.0.

The order as integers: the bits of a float, with those below zero turned round, ascend as the
floats do.
"""

import numpy as np

__all__ = ["equal", "floats_of_keys", "keys_of_floats", "less", "less_equal"]


def _word(bits: int) -> np.dtype:
    return np.dtype(f"i{bits // 8}")


def keys_of_floats(data: np.ndarray) -> np.ndarray:
    """Integers of the floats' width that order and equal as Spark's floats do."""
    # Adding zero makes -0.0 into 0.0; every NaN becomes the one positive quiet NaN.
    data = np.where(np.isnan(data), data.dtype.type(np.nan), data + data.dtype.type(0))
    return _turned(data.view(_word(data.dtype.itemsize * 8)))


def floats_of_keys(keys: np.ndarray, bits: int) -> np.ndarray:
    """The floats of `bits` whose keys these are; keys may be wider than the floats."""
    return _turned(keys.astype(_word(bits), copy=False)).view(np.dtype(f"f{bits // 8}"))


def _turned(words: np.ndarray) -> np.ndarray:
    """Flip all bits but the sign of negative words: its own inverse."""
    most = np.iinfo(words.dtype).max
    return words ^ ((words >> (words.dtype.itemsize * 8 - 1)) & most)


def less(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a < b) | (np.isnan(b) & ~np.isnan(a))


def less_equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a <= b) | np.isnan(b)


def equal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (np.isnan(a) & np.isnan(b))
