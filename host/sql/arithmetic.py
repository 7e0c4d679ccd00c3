"""Kernels of numbers and times: Spark's ANSI arithmetic, exact where the type is.

Each takes the call, the values of its arguments and the number of rows, and returns the call's
value; a NULL argument makes a NULL result. Overflow and division by zero raise EvaluationError.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from host.errors import EvaluationError
from host.sql import exact
from host.sql.expressions import Call
from host.sql.values import Value, all_valid
from host.sql.zones import later_days
from host.sqltypes import DAY_NS, Kind

__all__ = ["KERNELS", "checked", "rescaled"]


def rescaled(data: np.ndarray, ratio: Fraction) -> np.ndarray:
    """data * ratio, halves rounded away from zero."""
    data = exact.multiplied(exact.narrowed(data), ratio.numerator)
    if ratio.denominator == 1:
        return data
    return exact.half_up(data, ratio.denominator)


def checked(node: Call, data: np.ndarray, valid: np.ndarray | None) -> Value:
    """The value, or EvaluationError if a row lies beyond the call's type."""
    lo, hi = node.type.limits
    beyond = (data < lo) | (data > hi)
    if np.any(beyond if valid is None else beyond & valid):
        raise _overflow(node)
    return Value(exact.narrowed(np.where(beyond, 0, data)) if beyond.any() else data, valid)


def _overflow(node: Call) -> EvaluationError:
    return EvaluationError(f"`{node.text}` overflows {node.type}: cast to a wider type")


def _in_unit(node: Call, data: np.ndarray, unit: Fraction, valid: np.ndarray | None) -> Value:
    """Integers of `unit` as the call's value."""
    return checked(node, rescaled(data, unit / node.type.unit), valid)


def _aligned(node: Call, args: list[Value]) -> tuple[np.ndarray, np.ndarray, Fraction]:
    """The integers of two arguments in one unit."""
    units = [arg.type.unit for arg in node.args]
    unit = min(units)
    a, b = (rescaled(v.data, u / unit) for v, u in zip(args, units, strict=True))
    return a, b, unit


def _is_float(node: Call) -> bool:
    return node.type.kind is Kind.FLOAT


def _quiet(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """Floating-point arithmetic as Java's: infinities and NaN, no warnings."""
    with np.errstate(all="ignore"):
        return np.asarray(function(*arrays))


def _add(node: Call, args: list[Value], rows: int) -> Value:
    valid = all_valid(*args)
    if _is_float(node):
        return Value(_quiet(np.add, args[0].data, args[1].data), valid)
    a, b, unit = _aligned(node, args)
    return _in_unit(node, exact.added(a, b), unit, valid)


def _subtract(node: Call, args: list[Value], rows: int) -> Value:
    valid = all_valid(*args)
    if _is_float(node):
        return Value(_quiet(np.subtract, args[0].data, args[1].data), valid)
    a, b, unit = _aligned(node, args)
    return _in_unit(node, exact.added(a, exact.multiplied(b, -1)), unit, valid)


def _multiply(node: Call, args: list[Value], rows: int) -> Value:
    valid = all_valid(*args)
    if _is_float(node):
        return Value(_quiet(np.multiply, args[0].data, args[1].data), valid)
    product = exact.multiplied(exact.narrowed(args[0].data), exact.narrowed(args[1].data))
    return _in_unit(node, product, node.args[0].type.unit * node.args[1].type.unit, valid)


def _divisor(node: Call, args: list[Value], rows: int) -> np.ndarray:
    """The divisor, 1 under NULL; EvaluationError if it is zero where both arguments are known."""
    zero = args[1].data == 0
    valid = all_valid(*args)
    if np.any(zero if valid is None else zero & valid):
        raise EvaluationError(f"`{node.text}` divides by zero")
    return np.where(zero, args[1].data.dtype.type(1), args[1].data) if zero.any() else args[1].data


def _divide(node: Call, args: list[Value], rows: int) -> Value:
    valid, divisor = all_valid(*args), _divisor(node, args, rows)
    if _is_float(node):
        return Value(_quiet(np.divide, args[0].data, divisor), valid)
    ratio = node.args[0].type.unit / node.args[1].type.unit / node.type.unit
    upper = exact.multiplied(exact.narrowed(args[0].data), ratio.numerator)
    lower = exact.multiplied(exact.narrowed(divisor), ratio.denominator)
    return checked(node, exact.half_up(upper, lower), valid)


def _remainder(node: Call, args: list[Value], rows: int) -> Value:
    valid, divisor = all_valid(*args), _divisor(node, args, rows)
    if _is_float(node):
        return Value(_quiet(np.fmod, args[0].data, divisor), valid)
    a, b, unit = _aligned(node, [args[0], Value(divisor)])
    return _in_unit(node, exact.remainder(a, b), unit, valid)


def _whole_quotient(node: Call, args: list[Value], rows: int) -> Value:
    valid, divisor = all_valid(*args), _divisor(node, args, rows)
    a, b, _ = _aligned(node, [args[0], Value(divisor)])
    return checked(node, exact.divided(a, b), valid)


def _negate(node: Call, args: list[Value], rows: int) -> Value:
    if _is_float(node):
        return Value(-args[0].data, args[0].valid)
    return checked(node, exact.multiplied(exact.narrowed(args[0].data), -1), args[0].valid)


def _absolute(node: Call, args: list[Value], rows: int) -> Value:
    data = args[0].data
    if _is_float(node):
        return Value(np.abs(data), args[0].valid)
    data = exact.narrowed(data)
    negative = exact.multiplied(data, -1)
    return checked(node, np.where(data < 0, negative, data), args[0].valid)


def _shift(node: Call, args: list[Value], rows: int) -> Value:
    """A timestamp of a zone with a jumping clock plus a length: whole days by the clock first."""
    stamp, length = node.args[0].type, node.args[1].type
    assert stamp.zone is not None
    lengths = exact.narrowed(args[1].data)
    days = exact.divided(lengths, np.full(rows, DAY_NS // length.unit_ns))
    rest = exact.added(lengths, exact.multiplied(days, -(DAY_NS // length.unit_ns)))
    data = later_days(exact.narrowed(args[0].data), days, stamp.unit_ns, stamp.zone)
    whole = node.type.unit_ns
    total = exact.added(exact.multiplied(data, stamp.unit_ns // whole),
                        exact.multiplied(rest, length.unit_ns // whole))
    return checked(node, total, all_valid(*args))


def _days(node: Call, args: list[Value], rows: int) -> Value:
    return args[0]


def _floor(node: Call, args: list[Value], rows: int) -> Value:
    if node.args[0].type.kind is Kind.FLOAT:
        return _to_bigint(node, Value(np.floor(args[0].data), args[0].valid))
    unit = node.args[0].type.unit
    return Value(exact.floor_divided(args[0].data, unit.denominator), args[0].valid)


def _ceil(node: Call, args: list[Value], rows: int) -> Value:
    if node.args[0].type.kind is Kind.FLOAT:
        return _to_bigint(node, Value(np.ceil(args[0].data), args[0].valid))
    unit = node.args[0].type.unit
    negative = exact.multiplied(exact.narrowed(args[0].data), -1)
    ceiled = exact.multiplied(exact.floor_divided(negative, unit.denominator), -1)
    return Value(exact.narrowed(ceiled), args[0].valid)


def _to_bigint(node: Call, whole: Value) -> Value:
    """Whole floats as int64; NaN is 0, as in Java."""
    data = np.where(np.isnan(whole.data), 0.0, whole.data.astype(np.float64))
    beyond = (data < -(2.0**63)) | (data >= 2.0**63)
    if np.any(beyond if whole.valid is None else beyond & whole.valid):
        raise _overflow(node)
    return Value(np.where(beyond, 0.0, data).astype(np.int64), whole.valid)


def _square_root(node: Call, args: list[Value], rows: int) -> Value:
    return Value(_quiet(np.sqrt, args[0].data), args[0].valid)


def _power(node: Call, args: list[Value], rows: int) -> Value:
    a, b = args[0].data, args[1].data
    # C's pow makes 1 of these, Java's makes NaN.
    no_number = np.isnan(b) | (np.isinf(b) & (np.abs(a) == 1))
    return Value(np.where(no_number, np.nan, _quiet(np.power, a, b)), all_valid(*args))


def _sign(node: Call, args: list[Value], rows: int) -> Value:
    return Value(np.sign(args[0].data), args[0].valid)


def _is_nan(node: Call, args: list[Value], rows: int) -> Value:
    known = args[0].known(rows)
    return Value(np.isnan(args[0].data) & known)


KERNELS = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "%": _remainder,
    "div": _whole_quotient,
    "neg": _negate,
    "abs": _absolute,
    "days": _days,
    "shift": _shift,
    "floor": _floor,
    "ceil": _ceil,
    "sqrt": _square_root,
    "power": _power,
    "sign": _sign,
    "isnan": _is_nan,
}
