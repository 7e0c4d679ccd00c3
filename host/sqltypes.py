"""The types of the condition language: Spark SQL's, as far as the law goes.

A value of an exact kind (numbers, dates, timestamps, intervals) is an integer times the `unit` of
its type, so that values of different types compare and add without rounding.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

import pyarrow as pa

__all__ = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "DATE",
    "DAY_NS",
    "DOUBLE",
    "FLOAT",
    "INT",
    "NULL",
    "SMALLINT",
    "STRING",
    "TINYINT",
    "UNSIGNED",
    "Kind",
    "SqlType",
    "as_decimal",
    "common_type",
    "decimal",
    "interval",
    "timestamp",
    "type_of_arrow",
]

DAY_NS = 86_400_000_000_000
_UNIT_NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_MOST_DIGITS = 38


class Kind(Enum):
    NULL = "null"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    DATE = "date"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    STRING = "string"
    BINARY = "binary"


_EXACT_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL})
_EXACT = _EXACT_NUMBERS | {Kind.BOOLEAN, Kind.DATE, Kind.TIMESTAMP, Kind.INTERVAL}


@dataclass(frozen=True)
class SqlType:
    """One type; the fields that a kind does not use keep their defaults.

    bits, signed      integers and floats
    precision, scale  decimals
    unit_ns           nanoseconds that 1 stands for: dates, timestamps, intervals
    zone              timestamps: name of the time zone, None without one
    """

    kind: Kind
    bits: int = 0
    signed: bool = True
    precision: int = 0
    scale: int = 0
    unit_ns: int = 0
    zone: str | None = None

    @property
    def exact(self) -> bool:
        """Whether values are integers times `unit`."""
        return self.kind in _EXACT

    @property
    def number(self) -> bool:
        return self.kind in _EXACT_NUMBERS or self.kind is Kind.FLOAT

    @property
    def text(self) -> bool:
        return self.kind in (Kind.STRING, Kind.BINARY)

    @property
    def unit(self) -> Fraction:
        """What the integer 1 stands for: a number, or nanoseconds."""
        if self.kind is Kind.DECIMAL:
            return Fraction(1, 10**self.scale)
        return Fraction(self.unit_ns or 1)

    @property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest integer that stands for a value of an exact type."""
        match self.kind:
            case Kind.BOOLEAN:
                return 0, 1
            case Kind.DECIMAL:
                return 1 - 10**self.precision, 10**self.precision - 1
            case Kind.DATE:
                return -(1 << 31), (1 << 31) - 1
            case Kind.INTEGER:
                if not self.signed:
                    return 0, (1 << self.bits) - 1
                return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return -(1 << 63), (1 << 63) - 1

    def __str__(self) -> str:
        match self.kind:
            case Kind.INTEGER if not self.signed:
                return "UNSIGNED BIGINT"
            case Kind.INTEGER:
                return {8: "TINYINT", 16: "SMALLINT", 32: "INT", 64: "BIGINT"}[self.bits]
            case Kind.FLOAT:
                return "FLOAT" if self.bits == 32 else "DOUBLE"
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case Kind.TIMESTAMP:
                return "TIMESTAMP" if self.zone else "TIMESTAMP_NTZ"
        return self.kind.name


NULL = SqlType(Kind.NULL)
BOOLEAN = SqlType(Kind.BOOLEAN)
TINYINT = SqlType(Kind.INTEGER, bits=8)
SMALLINT = SqlType(Kind.INTEGER, bits=16)
INT = SqlType(Kind.INTEGER, bits=32)
BIGINT = SqlType(Kind.INTEGER, bits=64)
#: Spark has no unsigned integers; smaller ones fit the next signed type, this one has its own.
UNSIGNED = SqlType(Kind.INTEGER, bits=64, signed=False)
FLOAT = SqlType(Kind.FLOAT, bits=32)
DOUBLE = SqlType(Kind.FLOAT, bits=64)
DATE = SqlType(Kind.DATE, unit_ns=DAY_NS)
STRING = SqlType(Kind.STRING)
BINARY = SqlType(Kind.BINARY)


def decimal(precision: int, scale: int) -> SqlType:
    """DECIMAL(precision, scale); beyond 38 digits fraction digits go first, as in Spark."""
    if precision > _MOST_DIGITS:
        whole = precision - scale
        scale = max(_MOST_DIGITS - whole, min(scale, 6))
        precision = _MOST_DIGITS
    return SqlType(Kind.DECIMAL, precision=precision, scale=scale)


def timestamp(unit: str = "us", zone: str | None = None) -> SqlType:
    return SqlType(Kind.TIMESTAMP, unit_ns=_UNIT_NS[unit], zone=zone)


def interval(unit_ns: int = 1_000) -> SqlType:
    """A length of time (Spark's day-time interval)."""
    return SqlType(Kind.INTERVAL, unit_ns=unit_ns)


_BY_ARROW = {
    pa.null(): NULL,
    pa.bool_(): BOOLEAN,
    pa.int8(): TINYINT,
    pa.int16(): SMALLINT,
    pa.int32(): INT,
    pa.int64(): BIGINT,
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    pa.uint64(): UNSIGNED,
    pa.float16(): FLOAT,
    pa.float32(): FLOAT,
    pa.float64(): DOUBLE,
    pa.date32(): DATE,
    pa.date64(): DATE,
    pa.string(): STRING,
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.binary(): BINARY,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
}


def type_of_arrow(arrow: pa.DataType) -> SqlType | None:
    """The SQL type of an Arrow column, or None if a condition cannot use the column."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if pa.types.is_timestamp(arrow):
        return timestamp(arrow.unit, arrow.tz)
    if pa.types.is_decimal(arrow):
        fits = arrow.precision <= 18 and arrow.scale >= 0
        return decimal(arrow.precision, arrow.scale) if fits else None
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    return _BY_ARROW.get(arrow)


def as_decimal(number: SqlType) -> SqlType:
    """The decimal type that holds every value of an exact number type."""
    if number.kind is Kind.DECIMAL:
        return number
    return decimal({8: 3, 16: 5, 32: 10, 64: 20}[number.bits], 0)


def common_type(a: SqlType, b: SqlType) -> SqlType | None:
    """The type in which values of `a` and `b` meet (Spark's ANSI rules), or None."""
    if a == b or b.kind is Kind.NULL:
        return a
    if a.kind is Kind.NULL:
        return b
    if a.number and b.number:
        return _common_number(a, b)
    kinds = {a.kind, b.kind}
    if kinds == {Kind.INTERVAL}:
        return interval(min(a.unit_ns, b.unit_ns))
    if kinds <= {Kind.DATE, Kind.TIMESTAMP} and bool(a.zone) == bool(b.zone):
        return SqlType(Kind.TIMESTAMP, unit_ns=min(a.unit_ns, b.unit_ns), zone=a.zone)
    return None


def _common_number(a: SqlType, b: SqlType) -> SqlType:
    if Kind.FLOAT in (a.kind, b.kind):
        # An integer or a decimal beside a FLOAT would lose digits there: both become DOUBLE.
        return DOUBLE
    if a.kind is b.kind is Kind.INTEGER and a.signed and b.signed:
        return a if a.bits >= b.bits else b
    a, b = as_decimal(a), as_decimal(b)
    scale = max(a.scale, b.scale)
    return decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
