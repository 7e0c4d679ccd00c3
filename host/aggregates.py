"""Aggregates over the matches of each tuple: what can be asked, what the engines carry for it.

`sum(r.qty)` is of left tuples and goes over their right partners; for right tuples it is NULL.
`count(*)` is of both. As in SQL, NULLs are passed over, and over nothing a sum is NULL.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from host.errors import OptionError
from host.keys import encode_column
from hw.spec.tuples import Side

__all__ = ["FUNCTIONS", "Aggregate", "Measure", "Part", "measure_values", "parse_aggregates"]

FUNCTIONS = ("count", "sum", "min", "max", "avg")
_LIMITS = np.iinfo(np.int64)
_CALL = re.compile(r"\s*([a-z]+)\s*\(\s*(?:(\*)|([lr])\.(.+?))\s*\)\s*", re.IGNORECASE)


class Part(Enum):
    """What of a column an engine carries beside the keys."""

    KNOWN = "known"  # 1, or 0 for NULL
    VALUE = "value"  # for sums; 0 for NULL
    LEAST = "least"  # an order-preserving key for minima; beyond all others for NULL
    LARGEST = "largest"  # the same for maxima

    @property
    def is_sum(self) -> bool:
        return self in (Part.KNOWN, Part.VALUE)


@dataclass(frozen=True)
class Measure:
    """One array of int64 or float64 by row, carried with the tuples of a stream."""

    side: Side
    column: str
    part: Part

    @property
    def name(self) -> str:
        return f"{self.part.value} {self.column}"


@dataclass(frozen=True)
class Aggregate:
    """A column of the result; `side` is whose column it goes over, None for count(*)."""

    name: str
    function: str
    side: Side | None = None
    column: str = ""
    kind: pa.DataType | None = None

    @property
    def type(self) -> pa.DataType:
        """The result's type, by Spark's rules; integers and decimals add up in 64 bits."""
        if self.function == "count":
            return pa.int64()
        assert self.kind is not None
        if self.function == "avg" or (self.function == "sum" and pa.types.is_floating(self.kind)):
            return pa.float64()
        if self.function == "sum" and pa.types.is_decimal(self.kind):
            return pa.decimal128(min(38, self.kind.precision + 10), self.kind.scale)
        return pa.int64() if self.function == "sum" else self.kind

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it is made of."""
        if self.side is None:
            return ()
        parts = [Part.KNOWN]
        if self.function in ("sum", "avg"):
            parts.append(Part.VALUE)
        if self.function in ("min", "max"):
            parts.append(Part.LEAST if self.function == "min" else Part.LARGEST)
        return tuple(Measure(self.side, self.column, part) for part in parts)


def parse_aggregates(
    wanted: Mapping[str, str], schemas: tuple[pa.Schema, pa.Schema]
) -> tuple[Aggregate, ...]:
    """{"n": "count(*)", "total": "sum(r.qty)"} -> aggregates; OptionError names what is wrong."""
    return tuple(_parsed(name, text, schemas) for name, text in wanted.items())


def _parsed(name: str, text: str, schemas: tuple[pa.Schema, pa.Schema]) -> Aggregate:
    call = _CALL.fullmatch(text)
    function = call[1].lower() if call else ""
    if call is None or function not in FUNCTIONS or (call[2] and function != "count"):
        raise OptionError(
            f"aggregate {name!r} must be count(*), or {', '.join(FUNCTIONS)} of a column like "
            f"sum(r.qty), not {text!r}"
        )
    if call[2]:
        return Aggregate(name, function)
    side = Side("lr".index(call[3].lower()))
    if call[4] not in schemas[side].names:
        raise OptionError(f"aggregate {name!r}: {side.name.lower()} has no column {call[4]!r}")
    kind = schemas[side].field(call[4]).type
    if not _can(function, kind):
        raise OptionError(f"aggregate {name!r}: {function} of {kind} is not possible: cast it")
    return Aggregate(name, function, side, call[4], kind)


def _can(function: str, kind: pa.DataType) -> bool:
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    decimal = pa.types.is_decimal(kind) and kind.precision <= 18
    if function == "count":
        return True
    if function == "avg":
        return number and not pa.types.is_float16(kind)
    if function == "sum":
        return (number and kind not in (pa.uint64(), pa.float16())) or decimal
    return number or decimal or pa.types.is_date(kind) or pa.types.is_timestamp(kind)


def measure_values(measure: Measure, column: pa.Array) -> np.ndarray:
    """The measure's int64 or float64 for each row of a column."""
    if measure.part is Part.KNOWN:
        known = column.is_valid().to_numpy(zero_copy_only=False)
        return known.astype(np.int64)
    if measure.part in (Part.LEAST, Part.LARGEST):
        keys, known = encode_column(column)
        beyond = _LIMITS.max if measure.part is Part.LEAST else _LIMITS.min
        return np.where(known, keys.astype(np.int64), beyond)
    if pa.types.is_floating(column.type):
        values: np.ndarray = column.cast(pa.float64()).fill_null(0.0).to_numpy()
        return values
    if pa.types.is_decimal(column.type):
        keys, known = encode_column(column)
        return np.where(known, keys.astype(np.int64), 0)
    numbers: np.ndarray = column.cast(pa.int64()).fill_null(0).to_numpy()
    return numbers
