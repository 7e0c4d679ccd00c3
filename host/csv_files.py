"""CSV files as typed rows: types are inferred from the whole file before the first row is used."""

import re
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.csv as csv

from host.files import reading

__all__ = ["CsvSource"]

#: What a column becomes, in turn, when a value does not fit; text takes every value.
_WIDER = [
    pa.null(),
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("ns"),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "UTC"),
    pa.string(),
]
_MISFIT = re.compile(r"In CSV column #(\d+): (?:Row #\d+: )?CSV conversion error to ")


class CsvSource:
    """A CSV file with a line of column names, plain or compressed.

    A column is the first of these that takes all its values: whole numbers, numbers, true and
    false, dates, timestamps (ISO 8601; with a zone they become UTC), text. An empty field is
    NULL, in a text column the empty text.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        with csv.open_csv(path) as reader:
            first = reader.schema
        names = first.names
        types = [_begin(kind) for kind in first.types]
        while True:
            self.schema = pa.schema(list(zip(names, types, strict=True)))
            try:
                self.rows: int | None = sum(batch.num_rows for batch in self._parse(None))
                return
            except pa.ArrowInvalid as error:
                misfit = _MISFIT.match(str(error))
                column = int(misfit[1]) if misfit else -1
                if misfit is None or types[column] == _WIDER[-1]:
                    raise
                types[column] = _wider(types[column])

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        with reading(self.path):
            yield from self._parse(columns)

    def _parse(self, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
        types = dict(zip(self.schema.names, self.schema.types, strict=True))
        convert = csv.ConvertOptions(column_types=types, include_columns=columns)
        with csv.open_csv(self.path, convert_options=convert) as reader:
            yield from reader


def _begin(inferred: pa.DataType) -> pa.DataType:
    """Begin with what the first rows look like; timestamps with microseconds."""
    if pa.types.is_timestamp(inferred):
        return pa.timestamp("us", inferred.tz)
    return inferred


def _wider(kind: pa.DataType) -> pa.DataType:
    return _WIDER[_WIDER.index(kind) + 1] if kind in _WIDER else _WIDER[-1]
