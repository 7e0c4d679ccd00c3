"""CAST between the types of the law, by Spark's ANSI rules.

`castable` says which casts there are. A value that does not fit raises EvaluationError under CAST
and becomes NULL under TRY_CAST.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from host.errors import EvaluationError
from host.sql import exact
from host.sql.arithmetic import rescaled
from host.sql.expressions import Call
from host.sql.text_casts import (
    WRITABLE,
    Converted,
    change_text,
    read_text,
    rounded_integer,
    write_text,
)
from host.sql.values import Value, filled
from host.sql.zones import instants, local_times
from host.sqltypes import DAY_NS, Kind, SqlType

__all__ = ["cast", "castable", "lossless"]

_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)
_TIMES = (Kind.DATE, Kind.TIMESTAMP)
_SECOND_NS = 1_000_000_000


def castable(source: SqlType, target: SqlType) -> bool:
    """Whether CAST knows the way from `source` to `target`."""
    return source == target or source.kind is Kind.NULL or _way(source, target) is not None


def lossless(source: SqlType, target: SqlType) -> bool:
    """Whether a cast between exact types changes neither a value nor its kind of quantity."""
    if not (source.exact and target.exact) or Kind.BOOLEAN in (source.kind, target.kind):
        return source == target
    if source.kind in _TIMES:
        same_clock = bool(source.zone) == bool(target.zone) or (
            source.kind is Kind.TIMESTAMP and {source.zone, target.zone} == {None, "UTC"}
        )
        return target.kind is Kind.TIMESTAMP and same_clock and source.unit >= target.unit
    same = {source.kind, target.kind} <= {Kind.INTEGER, Kind.DECIMAL} or source.kind is target.kind
    low, high = (limit * source.unit for limit in source.limits)
    inside = low >= target.limits[0] * target.unit and high <= target.limits[1] * target.unit
    return same and inside and (source.unit / target.unit).denominator == 1


def cast(node: Call, args: list[Value], rows: int) -> Value:
    """The kernel of CAST and TRY_CAST."""
    source, target, (value,) = node.args[0].type, node.type, args
    if source == target:
        return value
    if source.kind is Kind.NULL:
        return Value(filled(target, rows), np.zeros(rows, bool))
    way = _way(source, target)
    assert way is not None, f"no cast from {source} to {target}"
    data, beyond = way(value, source, target)
    if beyond is None:
        return Value(data, value.valid)
    beyond = beyond & value.known(rows)
    if node.name == "try_cast":
        return Value(data, value.known(rows) & ~beyond)
    if beyond.any():
        raise EvaluationError(f"`{node.text}` meets a value that is no {target}")
    return Value(data, value.valid)


def _way(source: SqlType, target: SqlType) -> Callable[..., Converted] | None:
    """The conversion from one kind to the other, if there is one."""
    numbers = (*_NUMBERS, Kind.BOOLEAN)
    if source.kind in numbers and target.kind in numbers:
        return _number_to_number(source, target)
    if source.kind in _TIMES and target.kind in _TIMES:
        return _time_to_time
    if source.kind is Kind.TIMESTAMP and target.kind in (Kind.INTEGER, Kind.FLOAT):
        return _time_to_seconds
    if source.kind is Kind.INTERVAL and target.kind is Kind.INTERVAL:
        return _exact_to_exact
    if source.kind is Kind.STRING and target.kind in (*numbers, *_TIMES):
        return read_text
    if source.text and target.text:
        return change_text
    if target.kind is Kind.STRING and source.kind in WRITABLE:
        return write_text
    return None


def _number_to_number(source: SqlType, target: SqlType) -> Callable[..., Converted]:
    if target.kind is Kind.BOOLEAN:
        return _number_to_boolean
    if target.kind is Kind.FLOAT:
        return _float_to_float if source.kind is Kind.FLOAT else _exact_to_float
    if source.kind is Kind.FLOAT:
        return _float_to_integer if target.kind is Kind.INTEGER else _float_to_decimal
    return _exact_to_integer if target.kind is Kind.INTEGER else _exact_to_exact


def _within(data: np.ndarray, target: SqlType) -> Converted:
    lo, hi = target.limits
    beyond = np.asarray((data < lo) | (data > hi), bool)
    return exact.narrowed(np.where(beyond, 0, data)), beyond


def _number_to_boolean(value: Value, source: SqlType, target: SqlType) -> Converted:
    return value.data != 0, None


def _exact_to_exact(value: Value, source: SqlType, target: SqlType) -> Converted:
    return _within(rescaled(value.data, source.unit / target.unit), target)


def _exact_to_integer(value: Value, source: SqlType, target: SqlType) -> Converted:
    data = exact.narrowed(value.data)
    if source.unit.denominator > 1:
        data = exact.divided(data, np.full(len(data), source.unit.denominator, object))
    return _within(data, target)


def exact_to_double(data: np.ndarray, unit: Fraction) -> np.ndarray:
    """Integers of `unit` as the nearest doubles."""
    data, divisor = exact.narrowed(data), unit.denominator
    if divisor == 1 and data.dtype == np.int64:
        return data.astype(np.float64)
    if exact.magnitude(data) <= 1 << 53 and divisor <= 10**22:
        # Both are doubles themselves, so that only the division rounds.
        return data.astype(np.float64) / float(divisor)
    return (data.astype(object) / divisor).astype(np.float64)


def _exact_to_float(value: Value, source: SqlType, target: SqlType) -> Converted:
    if target.bits == 32 and source.unit.denominator == 1:
        # Straight from the integer: by way of a double it would be rounded twice.
        return exact.narrowed(value.data).astype(np.float32), None
    return exact_to_double(value.data, source.unit).astype(f"f{target.bits // 8}"), None


def _float_to_float(value: Value, source: SqlType, target: SqlType) -> Converted:
    with np.errstate(over="ignore"):
        return value.data.astype(f"f{target.bits // 8}"), None


def _float_to_integer(value: Value, source: SqlType, target: SqlType) -> Converted:
    whole = np.trunc(value.data.astype(np.float64))
    lo, hi = target.limits
    # float(hi + 1) is exact, hi itself may not be.
    beyond = ~((whole >= float(lo)) & (whole < float(hi + 1)))
    return np.where(beyond, 0.0, whole).astype(np.int64), beyond


def _float_to_decimal(value: Value, source: SqlType, target: SqlType) -> Converted:
    finite = np.isfinite(value.data)
    # Spark takes the shortest decimal that reads back as the float, then rounds.
    digits = [str(number) for number in np.where(finite, value.data, value.data.dtype.type(0))]
    numbers = np.array([rounded_integer(text, target.scale) for text in digits], object)
    data, beyond = _within(numbers, target)
    return data, beyond | ~finite


def _time_to_time(value: Value, source: SqlType, target: SqlType) -> Converted:
    data = exact.narrowed(value.data)
    if source.zone and not target.zone:
        data = local_times(data, source.unit_ns, source.zone)
    if target.kind is Kind.DATE:
        return _within(exact.floor_divided(data, DAY_NS // source.unit_ns), target)
    data, beyond = _within(exact.multiplied(data, source.unit_ns // target.unit_ns), target)
    if target.zone and not source.zone:
        data = instants(data, target.unit_ns, target.zone)
    return data, beyond


def _time_to_seconds(value: Value, source: SqlType, target: SqlType) -> Converted:
    data = exact.narrowed(value.data)
    if target.kind is Kind.INTEGER:
        return _within(exact.floor_divided(data, _SECOND_NS // source.unit_ns), target)
    return exact_to_double(data, Fraction(source.unit_ns, _SECOND_NS)).astype(
        f"f{target.bits // 8}"), None
