"""Record batches out of a batch's hits: pairs of rows, or counts."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from host.arrow_arrays import from_numbers
from host.collect import Collector
from host.hits import Found
from host.options import JoinOptions
from host.preprocess import Prepared
from host.rowstore import RowStore
from hw.spec.tuples import Side

__all__ = ["COUNTS_SCHEMA", "CountsOutput", "PairsOutput"]

COUNTS_SCHEMA = pa.schema([("side", pa.string()), ("row", pa.int64()), ("matches", pa.int64())])

#: A record batch, and how many pairs it stands for.
Result = tuple[pa.RecordBatch, int]


class PairsOutput:
    """One row a pair: the selected columns as l_<name> and r_<name>."""

    def __init__(
        self, options: JoinOptions, collector: Collector, stores: tuple[RowStore, RowStore]
    ) -> None:
        self._selected = options.selected
        self._collector = collector
        self._stores = stores
        self.schema = pa.schema(
            [
                options.schema(column.side).field(column.column).with_name(column.name)
                for column in options.selected
            ]
        )

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        for pairs in self._collector.pairs(prepared, found.hits):
            taken = [self._stores[side].take(pairs[side]) for side in Side]
            columns = [taken[column.side].column(column.column) for column in self._selected]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema), len(pairs[0])


class CountsOutput:
    """One row a tuple, in order of arrival: the pairs that it completed."""

    schema = COUNTS_SCHEMA

    def __init__(
        self, options: JoinOptions, collector: Collector, stores: tuple[RowStore, RowStore]
    ) -> None:
        self._collector = collector

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        counts = self._collector.counts(prepared, found)
        sides = np.empty(len(prepared), np.int8)
        numbers = np.empty(len(prepared), np.int64)
        for batch in prepared.sides:
            sides[batch.positions] = batch.side
            numbers[batch.positions] = batch.numbers
        columns = [_letters(sides), from_numbers(numbers), from_numbers(counts)]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema), int(counts.sum())


def _letters(sides: np.ndarray) -> pa.Array:
    """'l' for 0 and 'r' for 1."""
    text = np.array([ord("l"), ord("r")], np.uint8)[sides]
    offsets = np.arange(len(sides) + 1, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(sides), buffers)
