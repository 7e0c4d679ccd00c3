"""The columns of tuples that may still be asked for, by row number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from host.arrow_arrays import from_mask, from_numbers
from host.pages import empty_pages

__all__ = ["RowStore", "Words"]

#: Chunks below this are joined with their neighbours, so that single rows do not pile up.
_CHUNK_ROWS = 1 << 16
_SMALLEST_RING = 1 << 10


@dataclass(frozen=True)
class Words:
    """A column without NULLs as words in a ring; row n is at `place(n)`, less one turn if that is
    beyond the end.
    """

    name: str
    ring: np.ndarray
    type: pa.DataType
    first: int

    def place(self, row: int) -> int:
        return row - (self.first - self.first % len(self.ring))

    def at(self, rows: np.ndarray) -> np.ndarray:
        taken: np.ndarray = self.ring[_places(rows, self.first, len(self.ring))]
        return taken


class RowStore:
    """Rows `first` to `end` of one stream.

    Columns of a fixed width live in rings that are written in place: Arrow arrays that come and
    go with every batch would leave the heap in pieces. The others are kept as Arrow chunks.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.first = 0
        self.end = 0
        self._columns: list[_Column] = [
            _Ring(field.type) if _is_fixed(field.type) else _Chunks(field.type)
            for field in schema
        ]

    def append(self, rows: pa.RecordBatch) -> None:
        """Rows `end`, `end` + 1 ... of the stream."""
        for name, column in zip(self.schema.names, self._columns, strict=True):
            column.append(rows.column(name), self.first, self.end)
        self.end += rows.num_rows

    def skip_to(self, row: int) -> None:
        """Start at that row, with nothing before it."""
        assert self.first == self.end
        self.first = self.end = row

    def take(self, rows: np.ndarray, names: Sequence[str] | None = None) -> pa.RecordBatch:
        """Those rows, in that order; of the columns of those names only, None is all."""
        wanted = self.schema.names if names is None else names
        places = [self.schema.get_field_index(name) for name in wanted]
        columns = [self._columns[place].take(rows, self.first) for place in places]
        schema = pa.schema([self.schema.field(place) for place in places])
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def words(self, name: str) -> Words | None:
        """A column as plain words; None where it has NULLs, or is not of 1, 2, 4 or 8 bytes."""
        column = self._columns[self.schema.names.index(name)]
        return column.words(name, self.first) if isinstance(column, _Ring) else None

    def drop_before(self, row: int) -> None:
        """Rows below `row` are not asked for again."""
        for column in self._columns:
            column.drop(self.first, row)
        self.first = max(self.first, row)

    def chunks(self) -> Iterator[pa.RecordBatch]:
        """All rows from `first` on, for a snapshot."""
        for begin in range(self.first, self.end, _CHUNK_ROWS):
            yield self.take(np.arange(begin, min(begin + _CHUNK_ROWS, self.end)))

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in self._columns)


class _Column(Protocol):
    """One column of the rows `first` to `end`."""

    def append(self, values: pa.Array, first: int, end: int) -> None: ...

    def take(self, rows: np.ndarray, first: int) -> pa.Array: ...

    def drop(self, first: int, row: int) -> None: ...

    @property
    def nbytes(self) -> int: ...


def _is_fixed(kind: pa.DataType) -> bool:
    return pa.types.is_primitive(kind) or pa.types.is_decimal128(kind)


class _Ring:
    """Values of a fixed width; row n is at n modulo the ring's size."""

    def __init__(self, kind: pa.DataType) -> None:
        self._type = kind
        self._is_bool = pa.types.is_boolean(kind)
        width = 1 if self._is_bool else kind.bit_width // 8
        self._values = np.empty(0, f"V{width}" if width > 8 else f"u{width}")
        self._valid: np.ndarray | None = None  # from the first NULL on

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + (0 if self._valid is None else self._valid.nbytes)

    def append(self, values: pa.Array, first: int, end: int) -> None:
        self._make_room(first, end, len(values))
        if values.null_count and self._valid is None:
            self._valid = np.ones(len(self._values), bool)
        _write(self._values, end, self._words(values))
        if self._valid is not None:
            _write(self._valid, end, values.is_valid().to_numpy(zero_copy_only=False))

    def _words(self, values: pa.Array) -> np.ndarray:
        """The values' bytes, whatever they mean; those of NULLs are anything."""
        if self._is_bool:
            values = values.cast(pa.uint8())
        data = values.buffers()[1]
        if data is None:
            return np.zeros(len(values), self._values.dtype)
        return np.frombuffer(data, self._values.dtype)[values.offset :][: len(values)]

    def _make_room(self, first: int, end: int, more: int) -> None:
        needed = end - first + more
        size = len(self._values)
        # Grow by an eighth; shrink after a burst has gone.
        if size >= needed and (size <= _SMALLEST_RING or size // 8 <= needed):
            return
        grown = max(needed + needed // 8, _SMALLEST_RING)
        self._values = _resized(self._values, grown, first, end)
        if self._valid is not None:
            self._valid = _resized(self._valid, grown, first, end)

    def take(self, rows: np.ndarray, first: int) -> pa.Array:
        places = _places(rows, first, max(1, len(self._values)))
        words = self._values[places]
        valid = None
        if self._valid is not None:
            valid = from_mask(self._valid[places]).buffers()[1]
        kind = pa.uint8() if self._is_bool else self._type
        taken = pa.Array.from_buffers(kind, len(rows), [valid, pa.py_buffer(words)])
        return taken.cast(self._type) if self._is_bool else taken

    def words(self, name: str, first: int) -> Words | None:
        if self._is_bool or self._valid is not None or self._values.dtype.kind == "V":
            return None
        return Words(name, self._values, self._type, first)

    def drop(self, first: int, row: int) -> None:
        """Nothing to do: the places are written again."""


def _places(rows: np.ndarray, first: int, size: int) -> np.ndarray:
    """rows % size, several times faster, for rows that are less than `size` beyond `first`."""
    places = rows - (first - first % size)
    beyond = places >= size
    if beyond.any():
        places[beyond] -= size
    return places


def _write(ring: np.ndarray, end: int, values: np.ndarray) -> None:
    if not len(values):
        return
    place = end % len(ring)
    straight = min(len(values), len(ring) - place)
    ring[place : place + straight] = values[:straight]
    ring[: len(values) - straight] = values[straight:]


def _resized(ring: np.ndarray, size: int, first: int, end: int) -> np.ndarray:
    result = empty_pages(size, ring.dtype)
    for row in range(first, end, _CHUNK_ROWS):
        rows = np.arange(row, min(row + _CHUNK_ROWS, end))
        result[rows % size] = ring[rows % len(ring)]
    return result


class _Chunks:
    """Values of any type as Arrow chunks; appending costs a logarithmic number of copies."""

    def __init__(self, kind: pa.DataType) -> None:
        self._type = kind
        self._chunks: list[pa.Array] = []
        self._dropped = 0  # rows below this number are no longer held
        self._whole: pa.ChunkedArray | None = None

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)

    def append(self, values: pa.Array, first: int, end: int) -> None:
        if not len(values):
            return
        if not self._chunks:
            self._dropped = end
        self._whole = None
        self._chunks.append(values)
        while (
            len(self._chunks) > 1
            and len(self._chunks[-2]) < _CHUNK_ROWS
            and len(self._chunks[-2]) <= 2 * len(self._chunks[-1])
        ):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_arrays([self._chunks[-1], last])

    def take(self, rows: np.ndarray, first: int) -> pa.Array:
        if self._whole is None:
            self._whole = pa.chunked_array(self._chunks, self._type)
        return self._whole.take(from_numbers(rows - self._dropped)).combine_chunks()

    def drop(self, first: int, row: int) -> None:
        while self._chunks and self._dropped + len(self._chunks[0]) <= row:
            self._dropped += len(self._chunks.pop(0))
            self._whole = None
