"""What a user pushes, checked against the announced schemas and in one order of arrival."""

from typing import TypeAlias

import numpy as np
import pyarrow as pa

from host.arrivals import Arrivals, interleave, merge_by_value
from host.arrow_arrays import from_numbers
from host.errors import InputError, SchemaError
from host.options import JoinOptions
from hw.spec.tuples import Side

__all__ = ["ArrivalMerger", "Interleaver", "normalise", "plain_schema", "pushed_rows"]

Pushed: TypeAlias = "pa.RecordBatch | pa.Table | None"


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with dictionary types replaced by the types of their values."""
    if not isinstance(schema, pa.Schema):
        return schema  # the options say what is wrong with it
    return pa.schema(
        [
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
            for field in schema
        ]
    )


def pushed_rows(
    pushed: tuple[Pushed, Pushed], options: JoinOptions, ended: set[Side]
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """What was pushed of either stream, as announced; nothing of a stream that has ended."""
    left, right = (normalise(side, pushed[side], options.schema(side)) for side in Side)
    for side in ended:
        if (left, right)[side].num_rows:
            raise InputError(f"{side.name.lower()} has ended: nothing more of it can be pushed")
    return left, right


def normalise(side: Side, pushed: Pushed, schema: pa.Schema) -> pa.RecordBatch:
    """One record batch of the plain schema, whatever chunks, encodings and column order came."""
    if pushed is None:
        return pa.RecordBatch.from_pylist([], schema)
    if not isinstance(pushed, (pa.RecordBatch, pa.Table)):
        raise SchemaError(
            f"{side.name.lower()} must be a RecordBatch or a Table, not {type(pushed).__name__}"
        )
    if isinstance(pushed, pa.RecordBatch) and pushed.schema.equals(schema):
        return pushed
    _check_names(side, pushed.schema, schema)
    columns = [_column(side, pushed.column(field.name), field) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _check_names(side: Side, came: pa.Schema, schema: pa.Schema) -> None:
    for name in schema.names:
        if came.names.count(name) != 1:
            raise SchemaError(
                f"a {side.name.lower()} batch has no column {name!r}, or several: "
                f"it has {', '.join(came.names) or 'no column at all'}"
            )
    for name in came.names:
        if name not in schema.names:
            raise SchemaError(
                f"a {side.name.lower()} batch has a column {name!r} that was not announced"
            )


def _column(side: Side, column: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.type != field.type:
        raise SchemaError(
            f"{side.name.lower()} column {field.name!r} was announced as {field.type} "
            f"and came as {column.type}"
        )
    if isinstance(column, pa.ChunkedArray):
        # To combine is to copy.
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # what does not fit one array stays chunked
        raise SchemaError(
            f"{side.name.lower()} column {field.name!r} is too large for one batch: "
            "push it in parts"
        )
    return column


class Interleaver:
    """Left row i of a push arrives just before its right row i."""

    def __init__(self) -> None:
        self.pushed = [0, 0]

    def take(self, rows: tuple[pa.RecordBatch, pa.RecordBatch]) -> Arrivals:
        return interleave(rows, _numbers(self.pushed, rows))

    def end(self, ended: set[Side]) -> Arrivals | None:
        """Nothing waits for the other stream here."""
        return None


class ArrivalMerger:
    """Orders by the arrival columns, whatever was pushed with what.

    A tuple waits until the other stream has come as far, since one that is still to come may
    belong before it; of equal arrivals, left comes first. Within a push the rows of a stream may
    come in any order; from push to push its arrivals may not go back.
    """

    def __init__(self, columns: tuple[str, str], schemas: tuple[pa.Schema, pa.Schema]) -> None:
        self.columns = columns
        self.pushed = [0, 0]
        self._type = _common_type(columns, schemas)
        self._rows = [pa.RecordBatch.from_pylist([], schema) for schema in schemas]
        self._numbers = [np.empty(0, np.int64), np.empty(0, np.int64)]
        self._values = [self._empty(), self._empty()]
        self._reached: list[object | None] = [None, None]
        self._ended: set[Side] = set()

    def _empty(self) -> np.ndarray:
        return pa.array([], self._type).to_numpy(zero_copy_only=False)

    def take(self, rows: tuple[pa.RecordBatch, pa.RecordBatch]) -> Arrivals:
        """Add a push; return what can no longer be preceded by anything."""
        values = [self._checked(side, rows[side]) for side in Side]
        numbers = _numbers(self.pushed, rows)
        for side in Side:
            self._add(side, rows[side], numbers[side], values[side])
        return self._release([self._settled(side) for side in Side])

    def end(self, ended: set[Side]) -> Arrivals | None:
        """Add that those streams have ended; return what waited for them alone."""
        self._ended |= ended
        return self._release([self._settled(side) for side in Side])

    def _checked(self, side: Side, rows: pa.RecordBatch) -> np.ndarray:
        """Arrival values of a push; an InputError leaves everything as it was."""
        name = f"{side.letter}.{self.columns[side]}"
        column = rows.column(self.columns[side])
        if column.null_count:
            first = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
            row = self.pushed[side] + first
            raise InputError(f"arrival {name} is NULL in row {row}: every tuple needs its place")
        try:
            values: np.ndarray = column.cast(self._type).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            raise InputError(
                f"arrival {name} has a value that is no {self._type}: cast the column"
            ) from None
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise InputError(f"arrival {name} has a NaN: every tuple needs its place")
        reached = self._reached[side]
        if len(values) and reached is not None and values.min() < reached:
            raise InputError(
                f"arrival {name} goes back to {values.min()} after {reached} was pushed: "
                "push each stream in order of arrival"
            )
        return values

    def _add(
        self, side: Side, rows: pa.RecordBatch, numbers: np.ndarray, values: np.ndarray
    ) -> None:
        if not len(values):
            return
        order = np.argsort(values, kind="stable")
        if not np.array_equal(order, np.arange(len(order))):
            rows, numbers, values = rows.take(from_numbers(order)), numbers[order], values[order]
        self._reached[side] = values[-1]
        self._rows[side] = pa.concat_batches([self._rows[side], rows])
        self._numbers[side] = np.concatenate([self._numbers[side], numbers])
        self._values[side] = np.concatenate([self._values[side], values])

    def _settled(self, side: Side) -> int:
        if side.other in self._ended:
            return len(self._values[side])
        reached = self._reached[side.other]
        if reached is None:
            return 0
        # A left tuple precedes a right one of the same arrival, but not the other way round.
        where = "right" if side is Side.LEFT else "left"
        return int(np.searchsorted(self._values[side], reached, where))  # type: ignore[call-overload]

    def _release(self, ends: list[int]) -> Arrivals:
        out = merge_by_value(
            (self._rows[0].slice(0, ends[0]), self._rows[1].slice(0, ends[1])),
            (self._numbers[0][: ends[0]], self._numbers[1][: ends[1]]),
            (self._values[0][: ends[0]], self._values[1][: ends[1]]),
        )
        for side in Side:
            self._rows[side] = self._rows[side].slice(ends[side])
            self._numbers[side] = self._numbers[side][ends[side] :]
            self._values[side] = self._values[side][ends[side] :]
        return out

    def waiting(self) -> Arrivals:
        """What waits, for a snapshot; `wait_for` puts it back."""
        return merge_by_value(
            (self._rows[0], self._rows[1]),
            (self._numbers[0], self._numbers[1]),
            (self._values[0], self._values[1]),
        )

    def wait_for(self, arrivals: Arrivals, reached: list[int | float | None]) -> None:
        """Take back what waited and how far each stream had come."""
        for side in Side:
            self._add(
                side, arrivals.rows[side], arrivals.numbers[side],
                self._checked(side, arrivals.rows[side]),
            )
            self._reached[side] = _as_value(reached[side], self._type)

    @property
    def reached(self) -> list[int | float | None]:
        """The largest arrival that each stream has shown, as a plain number."""
        return [_as_number(value) for value in self._reached]


def _as_number(value: object | None) -> int | float | None:
    """An arrival as JSON can carry it exactly."""
    if value is None:
        return None
    if isinstance(value, np.datetime64):
        return int(value.astype(np.int64))
    return float(value) if isinstance(value, np.floating) else int(value)  # type: ignore[call-overload]


def _as_value(number: int | float | None, kind: pa.DataType) -> object | None:
    if number is None:
        return None
    values: np.ndarray = pa.array([number]).cast(kind).to_numpy(zero_copy_only=False)
    return values[0]


def _numbers(
    pushed: list[int], rows: tuple[pa.RecordBatch, pa.RecordBatch]
) -> tuple[np.ndarray, np.ndarray]:
    """Number the rows of a push from what was pushed before, and count them in."""
    numbers = [np.arange(pushed[side], pushed[side] + rows[side].num_rows) for side in Side]
    for side in Side:
        pushed[side] += rows[side].num_rows
    return numbers[0], numbers[1]


def _common_type(columns: tuple[str, str], schemas: tuple[pa.Schema, pa.Schema]) -> pa.DataType:
    """The type that both arrival columns are compared in."""
    kinds = [schemas[side].field(columns[side]).type for side in Side]
    if all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    if all(pa.types.is_timestamp(kind) or pa.types.is_date(kind) for kind in kinds):
        return pa.timestamp("us")
    raise InputError(
        f"arrival columns l.{columns[0]} ({kinds[0]}) and r.{columns[1]} ({kinds[1]}) must both "
        "be numbers or both be times"
    )
