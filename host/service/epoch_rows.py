"""The rows of an epoch out of its parts, as tables of the two streams."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from host.errors import StateError
from host.options import JoinOptions
from host.spool import Part, read_part
from hw.spec.tuples import Side

__all__ = ["EpochRows", "Tables", "pieces_of"]

#: Rows of a stream that are pushed at once.
_PUSH_ROWS = 1 << 20

#: Rows of the two streams.
Tables = tuple[pa.Table, pa.Table]
Batches = list[pa.RecordBatch]


class EpochRows:
    """Reads what the parts of one join hold."""

    def __init__(self, directory: Path, options: JoinOptions) -> None:
        self._directory, self._options = directory, options

    def read(self, epoch: int, parts: tuple[Part, ...]) -> Tables:
        """All rows of those parts, in their order."""
        sides: tuple[Batches, Batches] = ([], [])
        for part in parts:
            batches = read_part(self._directory, epoch, part)
            for side in Side:
                sides[side].extend(batches[side])
        return self.tables(sides)

    def tables(self, sides: tuple[Batches, Batches]) -> Tables:
        return self._table(Side.LEFT, sides[0]), self._table(Side.RIGHT, sides[1])

    def _table(self, side: Side, batches: Batches) -> pa.Table:
        try:
            return pa.Table.from_batches(batches, None if batches else self._options.schema(side))
        except pa.ArrowInvalid as error:
            raise StateError(
                f"the parts of {self._directory} have several schemas: {error}"
            ) from None

    def largest(self, tables: Tables) -> tuple[int | None, int | None]:
        """The largest event time of either stream, in microseconds."""
        columns = self._options.time_columns
        if columns is None:
            return None, None
        left, right = (
            pc.max(tables[side][columns[side]]).cast(pa.timestamp("us"), safe=False).value
            for side in Side
        )
        return left, right


def pieces_of(tables: Tables) -> list[Tables]:
    """Cut at the same rows, so that left row i stays next to right row i."""
    rows = max(table.num_rows for table in tables)
    return [
        (tables[0].slice(start, _PUSH_ROWS), tables[1].slice(start, _PUSH_ROWS))
        for start in range(0, rows, _PUSH_ROWS)
    ]
