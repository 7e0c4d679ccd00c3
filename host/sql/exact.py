"""Arrays of integers without bounds.

An array is int64 (or uint64, as it came) while its values and results allow, and an array of Python
integers beyond: exact always, fast on the values that come in practice.
"""

import numpy as np

__all__ = [
    "added",
    "divided",
    "floor_divided",
    "half_up",
    "magnitude",
    "multiplied",
    "narrowed",
    "remainder",
]

_MOST = (1 << 63) - 1


def magnitude(data: np.ndarray) -> int:
    """The largest absolute value; 0 of an empty array."""
    if not len(data):
        return 0
    return max(-int(data.min()), int(data.max()))


def narrowed(data: np.ndarray) -> np.ndarray:
    """Any integers or booleans as int64, or as Python integers if they do not fit."""
    if data.dtype == np.int64:
        return data
    if data.dtype in (object, np.uint64) and magnitude(data) > _MOST:
        return data.astype(object)
    return data.astype(np.int64)


def multiplied(data: np.ndarray, factor: np.ndarray | int) -> np.ndarray:
    """data * factor."""
    if isinstance(factor, int):
        if factor == 1:
            return data
        largest = abs(factor)
    else:
        largest = magnitude(factor)
    if magnitude(data) * largest <= _MOST and largest <= _MOST:
        return narrowed(data) * (factor if isinstance(factor, int) else narrowed(factor))
    return data.astype(object) * (factor if isinstance(factor, int) else factor.astype(object))


def added(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """a + b."""
    b_most = abs(b) if isinstance(b, int) else magnitude(b)
    if magnitude(a) + b_most <= _MOST:
        return narrowed(a) + (b if isinstance(b, int) else narrowed(b))
    return a.astype(object) + (b if isinstance(b, int) else b.astype(object))


def floor_divided(data: np.ndarray, divisor: int) -> np.ndarray:
    """data / divisor, rounded down; the divisor is positive."""
    data = narrowed(data)
    if divisor == 1:
        return data
    return (data if divisor <= _MOST else data.astype(object)) // divisor


def half_up(a: np.ndarray, b: np.ndarray | int) -> np.ndarray:
    """a / b, rounded to the nearest, halves away from zero; b has no zero."""
    small = isinstance(b, int) and magnitude(a) < 1 << 61 and abs(b) < 1 << 61
    a = narrowed(a) if small else a.astype(object)
    divisor = np.asarray(b) if small else np.asarray(b, object)
    size = np.abs(divisor)
    rounded = (2 * np.abs(a) + size) // (2 * size)
    return narrowed(np.where((a < 0) == (divisor < 0), rounded, -rounded))


def divided(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b, rounded towards zero; b has no zero."""
    a, b = _small_enough_to_negate(a, b)
    quotient = abs(a) // abs(b)
    return np.where((a < 0) == (b < 0), quotient, -quotient)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b * (a / b rounded towards zero); b has no zero."""
    a, b = _small_enough_to_negate(a, b)
    rest = abs(a) % abs(b)
    return np.where(a < 0, -rest, rest)


def _small_enough_to_negate(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(a.astype(object) if magnitude(a) > _MOST else narrowed(a) for a in arrays)
