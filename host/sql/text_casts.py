"""CAST from and to strings."""

from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.sql import exact
from host.sql.values import Value, load
from host.sql.zones import instants, unit_name
from host.sqltypes import Kind, SqlType

__all__ = ["WRITABLE", "Converted", "change_text", "read_text", "rounded_integer", "write_text"]

#: Data, and where the value cannot be converted (None: nowhere; the data is then a filler).
Converted = tuple[np.ndarray | pa.Array, np.ndarray | None]

#: Kinds whose values Spark writes as Arrow does.
WRITABLE = (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.DATE)

_WIDE = Context(prec=1100, rounding=ROUND_HALF_UP)


def rounded_integer(digits: str, scale: int) -> int:
    """A decimal number as an integer of 10 ** -scale, halves rounded away from zero."""
    number = Decimal(digits).quantize(Decimal(1).scaleb(-scale), context=_WIDE)
    return int(number.scaleb(scale, context=_WIDE))


def read_text(value: Value, source: SqlType, target: SqlType) -> Converted:
    """Strings -> numbers, booleans, dates, timestamps; blanks around them do not count."""
    texts = pc.utf8_trim_whitespace(value.data)
    known = value.known(len(texts))
    readable = known.copy()
    try:
        read = _read(texts.filter(pa.array(known)), target)
    except (pa.ArrowInvalid, InvalidOperation):
        readable &= np.array([_is_readable(text, target) for text in texts], bool)
        read = _read(texts.filter(pa.array(readable)), target)
    data = np.zeros(len(texts), read.dtype)
    data[readable] = read
    return data, known & ~readable


def _read(texts: pa.Array, target: SqlType) -> np.ndarray:
    match target.kind:
        case Kind.DECIMAL:
            return _read_decimals(texts, target)
        case Kind.TIMESTAMP:
            return _read_timestamps(texts, target)
        case Kind.DATE:
            # What follows the day does not count.
            days = pc.replace_substring_regex(texts, r"^(\d{4}-\d\d-\d\d)[ T].*$", r"\1")
            return np.asarray(load(days.cast(pa.date32()), target).data)
        case Kind.INTEGER:
            arrow = pa.from_numpy_dtype(f"{'i' if target.signed else 'u'}{target.bits // 8}")
        case Kind.FLOAT:
            arrow = pa.from_numpy_dtype(f"f{target.bits // 8}")
        case _:
            arrow = pa.bool_()
    return np.asarray(load(texts.cast(arrow), target).data)


def _read_decimals(texts: pa.Array, target: SqlType) -> np.ndarray:
    numbers = [rounded_integer(text, target.scale) for text in texts.to_pylist()]
    lo, hi = target.limits
    if any(not lo <= number <= hi for number in numbers):
        raise pa.ArrowInvalid(f"a number is no {target}")
    return exact.narrowed(np.array(numbers, object))


def _read_timestamps(texts: pa.Array, target: SqlType) -> np.ndarray:
    unit = unit_name(target.unit_ns)
    try:
        local = texts.cast(pa.timestamp(unit)).view(pa.int64()).to_numpy()
    except pa.ArrowInvalid:
        if not target.zone:
            raise
        # Texts that name their own offset from UTC.
        return np.asarray(texts.cast(pa.timestamp(unit, "UTC")).view(pa.int64()).to_numpy())
    return instants(local, target.unit_ns, target.zone) if target.zone else np.asarray(local)


def _is_readable(text: pa.Scalar, target: SqlType) -> bool:
    if not text.is_valid:
        return False
    try:
        _read(pa.array([text.as_py()], pa.large_string()), target)
    except (pa.ArrowInvalid, InvalidOperation):
        return False
    return True


def change_text(value: Value, source: SqlType, target: SqlType) -> Converted:
    """Strings <-> their UTF-8 bytes."""
    arrow = pa.large_string() if target.kind is Kind.STRING else pa.large_binary()
    return value.data.cast(arrow), None


def write_text(value: Value, source: SqlType, target: SqlType) -> Converted:
    """Values of the WRITABLE kinds -> strings."""
    match source.kind:
        case Kind.DATE:
            array = pa.array(exact.narrowed(value.data).astype(np.int32)).cast(pa.date32())
        case Kind.DECIMAL:
            scale = source.scale
            array = pa.array([f"{Decimal(n).scaleb(-scale, _WIDE):f}" for n in value.data.tolist()],
                             pa.string())
        case _:
            array = pa.array(value.data)
    return array.cast(pa.large_string()), None
