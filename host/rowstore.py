"""The columns of tuples that may still be asked for, by row number."""

import numpy as np
import pyarrow as pa

__all__ = ["RowStore"]

#: Chunks below this are joined with their neighbours, so that single rows do not pile up.
_CHUNK_ROWS = 1 << 16


class RowStore:
    """Rows of one stream from `first` on, as chunks of Arrow data.

    Appending one row a time costs a logarithmic number of copies, and a row is found by its
    number through the chunks' offsets.
    """

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.first = 0
        self.end = 0
        self._chunks: list[pa.RecordBatch] = []
        self._table: pa.Table | None = None

    def append(self, rows: pa.RecordBatch) -> None:
        """Rows `end`, `end` + 1 ... of the stream."""
        self.end += rows.num_rows
        if not rows.num_rows or not self.schema.names:
            return
        self._table = None
        self._chunks.append(rows.select(self.schema.names))
        while (
            len(self._chunks) > 1
            and self._chunks[-2].num_rows < _CHUNK_ROWS
            and self._chunks[-2].num_rows <= 2 * self._chunks[-1].num_rows
        ):
            last = self._chunks.pop()
            self._chunks[-1] = pa.concat_batches([self._chunks[-1], last])

    def skip_to(self, row: int) -> None:
        """Start at that row, with nothing before it."""
        assert not self._chunks
        self.first = self.end = row

    def take(self, rows: np.ndarray) -> pa.RecordBatch:
        """Those rows, in that order."""
        if not len(rows) or not self.schema.names:
            return self.empty()
        if self._table is None:
            self._table = pa.Table.from_batches(self._chunks, self.schema)
        taken = self._table.take(pa.array(rows - self.first))
        return taken.combine_chunks().to_batches()[0]

    def empty(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], self.schema)

    def drop_before(self, row: int) -> None:
        """Rows below `row` are not asked for again; whole chunks go."""
        while self._chunks and self.first + self._chunks[0].num_rows <= row:
            self.first += self._chunks.pop(0).num_rows
            self._table = None
        if not self._chunks:
            self.first = self.end

    def chunks(self) -> list[pa.RecordBatch]:
        """What is held, for a snapshot: from row `first` on."""
        return list(self._chunks)

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self._chunks)
