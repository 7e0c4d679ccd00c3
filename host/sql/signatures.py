"""The types of operators and functions: what Spark's ANSI mode gives them."""

from host.sqltypes import (
    BIGINT,
    DATE,
    DAY_NS,
    DOUBLE,
    Kind,
    SqlType,
    as_decimal,
    common_type,
    decimal,
    interval,
    timestamp,
)

__all__ = ["arithmetic_type", "rounded_type"]


def arithmetic_type(op: str, a: SqlType, b: SqlType) -> SqlType | None:
    """The type of `a op b` for + - * / % div, or None if there is no such operation."""
    if a.number and b.number:
        return _number_type(op, a, b)
    if op == "*" and Kind.INTERVAL in (a.kind, b.kind):
        length, factor = (a, b) if a.kind is Kind.INTERVAL else (b, a)
        return length if factor.kind is Kind.INTEGER else None
    if op in ("+", "-"):
        return _time_type(op, a, b)
    return None


def _number_type(op: str, a: SqlType, b: SqlType) -> SqlType | None:
    has_float = Kind.FLOAT in (a.kind, b.kind)
    if op == "div":
        return None if has_float else BIGINT
    if op == "/" and (has_float or a.kind is b.kind is Kind.INTEGER):
        return DOUBLE
    common = common_type(a, b)
    if has_float or (common is not None and common.kind is Kind.INTEGER and common.signed):
        return common
    return _decimal_type(op, as_decimal(a), as_decimal(b))


def _decimal_type(op: str, a: SqlType, b: SqlType) -> SqlType:
    whole_a, whole_b = a.precision - a.scale, b.precision - b.scale
    scale = max(a.scale, b.scale)
    match op:
        case "*":
            return decimal(a.precision + b.precision + 1, a.scale + b.scale)
        case "/":
            scale = max(6, a.scale + b.precision + 1)
            return decimal(whole_a + b.scale + scale, scale)
        case "%":
            return decimal(min(whole_a, whole_b) + scale, scale)
    return decimal(max(whole_a, whole_b) + scale + 1, scale)


def _time_type(op: str, a: SqlType, b: SqlType) -> SqlType | None:
    times = (Kind.DATE, Kind.TIMESTAMP)
    if a.kind is b.kind is Kind.INTERVAL:
        return interval(min(a.unit_ns, b.unit_ns))
    if op == "-" and a.kind in times and b.kind in times:
        return interval(min(a.unit_ns, b.unit_ns)) if common_type(a, b) else None
    if op == "+" and a.kind is Kind.INTERVAL:
        a, b = b, a
    if a.kind not in times or b.kind is not Kind.INTERVAL:
        return None
    if a.kind is Kind.DATE:
        return DATE if b.unit_ns == DAY_NS else timestamp("us")
    return SqlType(Kind.TIMESTAMP, unit_ns=min(a.unit_ns, b.unit_ns), zone=a.zone)


def rounded_type(number: SqlType) -> SqlType | None:
    """The type of FLOOR and CEIL."""
    if number.kind is Kind.DECIMAL:
        return decimal(number.precision - number.scale + 1, 0)
    if number.kind is Kind.FLOAT or number.kind is Kind.INTEGER:
        return BIGINT if number.signed else decimal(20, 0)
    return None
