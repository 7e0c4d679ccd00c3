"""Kernels of strings, and of the parts of dates and timestamps.

Patterns, positions and characters to trim are constants: `host.sql.binding` sees to it.
"""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.errors import EvaluationError
from host.sql import exact
from host.sql.expressions import Call, Constant
from host.sql.values import Value, all_valid
from host.sql.zones import local_times, unit_name
from host.sqltypes import DAY_NS, Kind

__all__ = ["KERNELS", "regex_of_like"]


def regex_of_like(pattern: str, escape: str = "\\") -> str:
    """The regular expression of a LIKE pattern: % is any text, _ one character."""
    parts = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            parts.append(re.escape(next(characters, escape)))
        else:
            parts.append({"%": ".*", "_": "."}.get(character, re.escape(character)))
    return "(?s)^" + "".join(parts) + r"\z"


def _constant(node: Call, position: int) -> object:
    argument = node.args[position]
    assert isinstance(argument, Constant), f"argument {position} of {node.name} is no constant"
    return argument.value


def _numpy(array: pa.Array) -> np.ndarray:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _matches(node: Call, args: list[Value], rows: int) -> Value:
    pattern = str(_constant(node, 1))
    try:
        found = pc.match_substring_regex(args[0].data, pattern)
    except pa.ArrowInvalid:
        raise EvaluationError(f"`{node.text}` has a pattern that cannot be read") from None
    return Value(_numpy(pc.fill_null(found, False)), args[0].valid)


def _upper(node: Call, args: list[Value], rows: int) -> Value:
    return Value(pc.utf8_upper(args[0].data), args[0].valid)


def _lower(node: Call, args: list[Value], rows: int) -> Value:
    return Value(pc.utf8_lower(args[0].data), args[0].valid)


def _length(node: Call, args: list[Value], rows: int) -> Value:
    is_text = node.args[0].type.kind is Kind.STRING
    lengths = (pc.utf8_length if is_text else pc.binary_length)(args[0].data)
    return Value(_numpy(pc.fill_null(lengths, 0)).astype(np.int64), args[0].valid)


def _substring(node: Call, args: list[Value], rows: int) -> Value:
    position, length = int(str(_constant(node, 1))), _constant(node, 2)
    start = position - 1 if position > 0 else position
    stop = None if length is None else start + max(0, int(str(length)))
    if start < 0 and stop is not None and stop >= 0:
        stop = None  # counted from the end, past which there is nothing
    if stop is not None and stop <= start:
        stop = start
    return Value(pc.utf8_slice_codeunits(args[0].data, start, stop), args[0].valid)


def _concatenate(node: Call, args: list[Value], rows: int) -> Value:
    empty = "" if node.type.kind is Kind.STRING else b""
    separator = pa.scalar(empty, args[0].data.type)
    joined = pc.binary_join_element_wise(*(value.data for value in args), separator)
    return Value(joined, all_valid(*args))


_TRIMS = {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}


def _trim(node: Call, args: list[Value], rows: int) -> Value:
    trimmed = _TRIMS[node.name](args[0].data, characters=str(_constant(node, 1)))
    return Value(trimmed, args[0].valid)


_DATE_PARTS = {"year": pc.year, "month": pc.month, "day": pc.day}


def _local(node: Call, value: Value) -> np.ndarray:
    type = node.args[0].type
    data = exact.narrowed(value.data)
    return local_times(data, type.unit_ns, type.zone) if type.zone else data


def _date_part(node: Call, args: list[Value], rows: int) -> Value:
    data, type = _local(node, args[0]), node.args[0].type
    if type.kind is Kind.DATE:
        array = pa.array(data.astype(np.int32)).cast(pa.date32())
    else:
        array = pa.array(data, pa.timestamp(unit_name(type.unit_ns)))
    return Value(_numpy(_DATE_PARTS[node.name](array)).astype(np.int64), args[0].valid)


_CLOCK_PARTS = {"hour": (3_600, 24), "minute": (60, 60), "second": (1, 60)}


def _clock_part(node: Call, args: list[Value], rows: int) -> Value:
    seconds, count = _CLOCK_PARTS[node.name]
    unit_ns = node.args[0].type.unit_ns
    whole = exact.floor_divided(_local(node, args[0]) % (DAY_NS // unit_ns),
                                seconds * 1_000_000_000 // unit_ns)
    return Value(whole % count, args[0].valid)


KERNELS = {
    "matches": _matches,
    "upper": _upper,
    "lower": _lower,
    "length": _length,
    "substring": _substring,
    "concat": _concatenate,
    **dict.fromkeys(_TRIMS, _trim),
    **dict.fromkeys(_DATE_PARTS, _date_part),
    **dict.fromkeys(_CLOCK_PARTS, _clock_part),
}
