"""Constants of a condition: numbers, intervals, dates and timestamps as they are written."""

import re
from datetime import UTC, date, datetime
from fractions import Fraction
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp

from host.errors import ConditionError
from host.sql.expressions import Constant
from host.sql.text import sql_of
from host.sqltypes import (
    BIGINT,
    BINARY,
    DATE,
    DAY_NS,
    DOUBLE,
    INT,
    STRING,
    SqlType,
    decimal,
    interval,
    timestamp,
)

__all__ = [
    "binary_of",
    "check_literals",
    "date_of_text",
    "interval_of",
    "number_of",
    "string_of",
    "timestamp_of_text",
]

_UNITS_NS = {
    "NANOSECOND": 1,
    "MICROSECOND": 1_000,
    "MILLISECOND": 1_000_000,
    "SECOND": 1_000_000_000,
    "MINUTE": 60_000_000_000,
    "HOUR": 3_600_000_000_000,
    "DAY": DAY_NS,
    "WEEK": 7 * DAY_NS,
}
_NO_LENGTH = ("MONTH", "QUARTER", "YEAR")
_PARTS = ("DAY", "HOUR", "MINUTE", "SECOND")
_WORD = re.compile(r"\s*([-+]?[0-9.]+)\s*([A-Za-z]+)\s*")
_WORDS = re.compile(f"({_WORD.pattern})+")
_EPOCH = datetime(1970, 1, 1)


def number_of(digits: str, text: str) -> Constant:
    """INT, BIGINT or DECIMAL as many digits as it has; with an exponent DOUBLE."""
    if "e" in digits.lower():
        return Constant(float(digits), DOUBLE, text)
    whole, point, fraction = digits.partition(".")
    value, scale = int(whole + fraction), len(fraction)
    if not point:
        for type in (INT, BIGINT):
            if type.limits[0] <= value <= type.limits[1]:
                return Constant(value, type, text)
    precision = max(len(str(abs(value))), scale)
    if precision > 38:
        raise ConditionError(f"`{text}` has more than 38 digits")
    return Constant(value, decimal(precision, scale), text)


def check_literals(condition: str) -> None:
    """Refuse what the parser would read otherwise than Spark, before it does.

    Of INTERVAL '1 day soon' it takes what it knows and drops the rest; 'it''s' it reads as its.
    """
    for before, token in pairwise(sqlglot.tokenize(condition, read="spark")):
        if token.token_type is not TokenType.STRING:
            continue
        if before.token_type is TokenType.STRING and token.start == before.end + 1:
            text = condition[before.start:token.end + 1]
            raise ConditionError(f"`{text}` doubles a quote: write \\' or other quotes around it")
        named = re.search("[A-Za-z]", token.text)
        if before.token_type is TokenType.INTERVAL and named and not _WORDS.fullmatch(token.text):
            raise _no_interval(f"INTERVAL '{token.text}'")


def _no_interval(text: str) -> ConditionError:
    return ConditionError(f"`{text}` is not an interval of days, hours, minutes or seconds")


def interval_of(node: exp.Interval) -> Constant:
    """INTERVAL '10' MINUTE, INTERVAL 10 MINUTES, '1 2:30' DAY TO MINUTE, '1 day 2 hours'."""
    text = sql_of(node)
    if not isinstance(node.this, exp.Literal):
        raise ConditionError(f"`{text}` is not constant: an interval has a fixed length")
    written, unit = str(node.this.this).strip(), node.args.get("unit")
    if isinstance(unit, exp.IntervalSpan):
        length = _span(written, unit.this.name.upper(), unit.expression.name.upper(), text)
    elif unit is None:
        length = _words(written, text)
    else:
        length = _quantity(written, unit.name, text)
    return _length(length, text, days=unit is not None and unit.name.upper() in ("DAY", "DAYS"))


def _length(length: Fraction, text: str, days: bool) -> Constant:
    if length.denominator != 1:
        raise ConditionError(f"`{text}` is finer than a nanosecond")
    unit_ns = DAY_NS if days and length % DAY_NS == 0 else 1_000 if length % 1_000 == 0 else 1
    return Constant(int(length) // unit_ns, interval(unit_ns), text)


def _quantity(number: str, unit: str, text: str) -> Fraction:
    name = unit.upper()
    name = name if name in _UNITS_NS or name in _NO_LENGTH else name.removesuffix("S")
    if name in _NO_LENGTH:
        raise ConditionError(f"`{text}` has no fixed length: use days")
    try:
        return Fraction(number.replace(" ", "")) * _UNITS_NS[name]
    except (KeyError, ValueError):
        raise _no_interval(text) from None


def _words(written: str, text: str) -> Fraction:
    """'1 day 2 hours'."""
    words = _WORD.findall(written)
    if not words:
        raise _no_interval(text)
    return sum((_quantity(number, unit, text) for number, unit in words), Fraction(0))


def _span(written: str, first: str, last: str, text: str) -> Fraction:
    """'1 12:30:00.5' DAY TO SECOND."""
    if first not in _PARTS or last not in _PARTS:
        raise ConditionError(f"`{text}` has no fixed length: use days")
    units = _PARTS[_PARTS.index(first):_PARTS.index(last) + 1]
    numbers = re.split(r"[ :]+", written.lstrip("+-"))
    if len(numbers) != len(units):
        raise ConditionError(f"`{text}` does not have the form {first} TO {last}")
    total = sum((_quantity(number, unit, text)
                 for number, unit in zip(numbers, units, strict=True)), Fraction(0))
    return -total if written.startswith("-") else total


def date_of_text(written: str, text: str) -> Constant:
    try:
        day = date.fromisoformat(written.strip()[:10])
        if len(written.strip()) > 10:
            datetime.fromisoformat(written.strip())
    except ValueError:
        raise ConditionError(f"`{text}` is not a date such as DATE '2026-01-31'") from None
    return Constant(day.toordinal() - _EPOCH.toordinal(), DATE, text)


def timestamp_of_text(written: str, text: str) -> Constant:
    """A timestamp; one without an offset from UTC has no zone, and takes that of its partner."""
    try:
        moment = datetime.fromisoformat(written.strip())
    except ValueError:
        raise ConditionError(
            f"`{text}` is not a timestamp such as TIMESTAMP '2026-01-31 23:59:59.5'") from None
    type: SqlType = timestamp("us")
    if moment.tzinfo is not None:
        moment, type = moment.astimezone(UTC).replace(tzinfo=None), timestamp("us", "UTC")
    passed = moment - _EPOCH
    micros = (passed.days * 86_400 + passed.seconds) * 1_000_000 + passed.microseconds
    return Constant(micros, type, text)


def string_of(literal: exp.Literal) -> Constant:
    return Constant(str(literal.this), STRING, sql_of(literal))


def binary_of(literal: exp.HexString) -> Constant:
    """X'1F'."""
    digits = str(literal.this)
    return Constant(bytes.fromhex(digits if len(digits) % 2 == 0 else "0" + digits), BINARY,
                    sql_of(literal))
