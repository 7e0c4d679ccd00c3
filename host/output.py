"""Record batches out of a batch's hits: pairs of rows, or counts."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from host.aggregates import Aggregate, Part
from host.arrow_arrays import from_numbers
from host.collect import Collector
from host.errors import EvaluationError
from host.hits import Found
from host.options import JoinOptions
from host.pages import Arena
from host.preprocess import Prepared
from host.rowstore import RowStore
from host.totals import Totals, finished
from hw.spec.tuples import Side

__all__ = [
    "COUNTS_SCHEMA",
    "AggregateOutput",
    "CountsOutput",
    "Output",
    "PairsOutput",
    "Result",
    "result_schema",
    "tuple_columns",
]

#: Tuples, or candidates, of a batch from which on pairs are expanded by compiled code.
LARGE_BATCH, LARGE_RESULT = 1 << 12, 1 << 16

COUNTS_SCHEMA = pa.schema([("side", pa.string()), ("row", pa.int64()), ("matches", pa.int64())])


def result_schema(options: JoinOptions) -> pa.Schema:
    """Of what a whole join gives."""
    if options.emit == "counts":
        return COUNTS_SCHEMA
    if options.emit == "aggregate":
        fields = [pa.field(one.name, one.type) for one in options.parsed_aggregates]
        return pa.schema([*list(COUNTS_SCHEMA)[:2], *fields])
    return pa.schema(
        [
            options.schema(column.side).field(column.column).with_name(column.name)
            for column in options.selected
        ]
    )


class Output(Protocol):
    """What a join gives out of its batches."""

    schema: pa.Schema

    def results(self, prepared: Prepared, found: Found) -> Iterator["Result"]: ...

    def notice(self, prepared: Prepared) -> None:
        """A batch goes by whose results are not asked for."""


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
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="watersmeet-pairs")
        self._arena = Arena()
        # A store may have more columns, for the residual.
        self._names = [
            list(dict.fromkeys(one.column for one in options.selected if one.side is side))
            for side in Side
        ]
        self.schema = result_schema(options)

    def notice(self, prepared: Prepared) -> None:
        pass

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        if self._collector.is_plain and _is_large(prepared, found):
            expanded = self._expanded(found)
            if expanded is not None:
                yield from expanded
                return
        for pairs in self._collector.pairs(prepared, found.hits):
            taken = [self._stores[side].take(pairs[side], self._names[side]) for side in Side]
            columns = [taken[column.side].column(column.column) for column in self._selected]
            yield pa.RecordBatch.from_arrays(columns, schema=self.schema), len(pairs[0])

    def _expanded(self, found: Found) -> Iterator[Result] | None:
        """Pairs without their row numbers; None where columns need these."""
        words = [self._stores[column.side].words(column.column) for column in self._selected]
        columns = [
            (column.side, plain)
            for column, plain in zip(self._selected, words, strict=True)
            if plain is not None
        ]
        if len(columns) < len(words):
            return None
        # Compiled, so only where it is worth it.
        from host.expansion import expand, expansions_of
        from host.gathering import gathered

        expansions = expansions_of(found.hits, columns, self._threads)
        chunks = (
            gathered(found.hits, columns)
            if expansions is None
            else expand(expansions, columns, self._threads, self._arena)
        )
        return map(self._batch, chunks)

    def _batch(self, arrays: list[pa.Array]) -> Result:
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema), len(arrays[0])


def _is_large(prepared: Prepared, found: Found) -> bool:
    """Whether compiled expansion pays, which has to be loaded first."""
    if len(prepared) >= LARGE_BATCH:
        return True
    return sum(int(hits.sizes().sum()) for hits in found.hits) >= LARGE_RESULT


class CountsOutput:
    """One row a tuple, in order of arrival: the pairs that it completed."""

    schema = COUNTS_SCHEMA

    def __init__(
        self, options: JoinOptions, collector: Collector, stores: tuple[RowStore, RowStore]
    ) -> None:
        self._collector = collector

    def notice(self, prepared: Prepared) -> None:
        pass

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        counts = self._collector.counts(prepared, found)
        columns = [*tuple_columns(prepared), from_numbers(counts)]
        yield pa.RecordBatch.from_arrays(columns, schema=self.schema), int(counts.sum())


class AggregateOutput:
    """One row a tuple, in order of arrival: aggregates over the pairs that it completed."""

    def __init__(
        self, options: JoinOptions, collector: Collector, stores: tuple[RowStore, RowStore]
    ) -> None:
        self._collector = collector
        self._aggregates = options.parsed_aggregates
        self._magnitudes: dict[tuple[Side, str], float] = {}
        self.schema = result_schema(options)

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        counts, _ = self.collected(prepared, found)
        columns = [
            from_numbers(counts) if aggregate.side is None else _column(aggregate, prepared, found)
            for aggregate in self._aggregates
        ]
        every = [*tuple_columns(prepared), *columns]
        yield pa.RecordBatch.from_arrays(every, schema=self.schema), int(counts.sum())

    def collected(
        self, prepared: Prepared, found: Found
    ) -> tuple[np.ndarray, tuple[Totals, Totals]]:
        """Pairs of each tuple in order of arrival, and all measures over them."""
        counts = self._collector.counts(prepared, found)
        self._collector.totals(found)
        self.notice(prepared)
        self._check_sums(int(counts.max(initial=0)))
        return counts, found.totals

    def notice(self, prepared: Prepared) -> None:
        """Keep how large the values become that sums may go over."""
        for aggregate in self._aggregates:
            for measure in aggregate.measures:
                values = prepared.sides[measure.side].carried[measure.name]
                if measure.part is Part.VALUE and values.dtype.kind == "i":
                    name = (measure.side, measure.name)
                    seen = float(np.abs(values.astype(np.float64)).max(initial=0.0))
                    self._magnitudes[name] = max(seen, self._magnitudes.get(name, 0.0))

    def _check_sums(self, most_matches: int) -> None:
        """Refuse a sum that 64 bits may not hold, rather than let it wrap."""
        for aggregate in self._aggregates:
            for measure in aggregate.measures:
                largest = self._magnitudes.get((measure.side, measure.name), 0.0)
                if measure.part is Part.VALUE and largest * most_matches >= 2.0**63:
                    raise EvaluationError(
                        f"aggregate {aggregate.name!r} may not fit in 64 bits: "
                        "cast its column to double"
                    )


def _column(aggregate: Aggregate, prepared: Prepared, found: Found) -> pa.Array:
    """An aggregate over partners of one stream: NULL for the tuples of that stream."""
    assert aggregate.side is not None
    batch = prepared.sides[aggregate.side.other]
    places = batch.positions[batch.order]
    values = finished(aggregate, found.totals[batch.side])
    indices = np.full(len(prepared), -1)
    indices[places] = np.arange(len(places))
    if aggregate.function == "count":
        # A tuple that can match nothing has counted nothing.
        result = np.zeros(len(prepared), np.int64)
        result[places] = values.to_numpy()
        own = np.zeros(len(prepared), bool)
        own[batch.positions] = True
        return pa.array(result, mask=~own)
    return values.take(pa.array(indices, mask=indices < 0))


def tuple_columns(prepared: Prepared) -> tuple[pa.Array, pa.Array]:
    """The columns side and row of a batch, in order of arrival."""
    numbers = np.empty(len(prepared), np.int64)
    for batch in prepared.sides:
        batch.spread(batch.numbers, numbers)
    right = prepared.sides[Side.RIGHT]
    sides = _taking_turns(len(prepared)) if right.alternates else _sides(prepared)
    return sides, from_numbers(numbers)


def _sides(prepared: Prepared) -> pa.Array:
    text = np.full(len(prepared), ord("l"), np.uint8)
    text[prepared.sides[Side.RIGHT].positions] = ord("r")
    return _letters(text)


@lru_cache(maxsize=4)
def _taking_turns(rows: int) -> pa.Array:
    """Arrow arrays do not change: batches of one size may share theirs."""
    return _letters(np.tile(np.frombuffer(b"lr", np.uint8), rows // 2))


def _letters(text: np.ndarray) -> pa.Array:
    offsets = np.arange(len(text) + 1, dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(pa.string(), len(text), buffers)
