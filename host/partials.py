"""Counts and aggregates of a join that several workers share: parts of each, and their sum.

A worker gives, for a tuple, the pairs that it found itself and the totals of every measure over
them; a tuple of which it found nothing comes from the one worker whose turn it is. `combine` makes
of the parts what one worker would have given.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from host.aggregates import Aggregate, Measure, Part
from host.arrow_arrays import from_mask, from_numbers
from host.collect import Collector
from host.errors import EvaluationError
from host.hits import Found
from host.options import JoinOptions
from host.output import (
    COUNTS_SCHEMA,
    AggregateOutput,
    CountsOutput,
    Output,
    PairsOutput,
    Result,
    result_schema,
    tuple_columns,
)
from host.preprocess import Prepared
from host.rowstore import RowStore
from host.sharing import Share
from host.totals import Totals, finished
from hw.spec.tuples import Side

__all__ = ["PartialOutput", "combine", "output_of", "partial_schema"]


def partial_schema(options: JoinOptions) -> pa.Schema:
    """side, row, matches, and a number for each measure, for partners of left and of right."""
    fields = [
        pa.field(f"{side.letter} {measure.name}", _type(options, measure))
        for side in Side
        for measure in options.measures(side)
    ]
    return pa.schema([*COUNTS_SCHEMA, *fields])


def _type(options: JoinOptions, measure: Measure) -> pa.DataType:
    kind = options.schema(measure.side).field(measure.column).type
    floating = measure.part is Part.VALUE and pa.types.is_floating(kind)
    return pa.float64() if floating else pa.int64()


class PartialOutput(AggregateOutput):
    """What one worker of several knows of each tuple of a batch."""

    def __init__(
        self,
        options: JoinOptions,
        collector: Collector,
        stores: tuple[RowStore, RowStore],
        share: Share,
    ) -> None:
        super().__init__(options, collector, stores)
        self._options, self._share = options, share
        self.schema = partial_schema(options)

    def results(self, prepared: Prepared, found: Found) -> Iterator[Result]:
        counts, totals = self.collected(prepared, found)
        columns = [*tuple_columns(prepared), from_numbers(counts)]
        for side in Side:
            for measure in self._options.measures(side):
                columns.append(_column(measure, prepared, totals[side.other]))
        rows = pa.RecordBatch.from_arrays(columns, schema=self.schema)
        turn = rows.column("row").to_numpy() % self._share.workers == self._share.worker
        yield rows.filter(from_mask(turn | (counts > 0))), int(counts.sum())


def _column(measure: Measure, prepared: Prepared, totals: Totals) -> pa.Array:
    """The measure's total over each tuple's partners; NULL where it has none of that stream."""
    batch = prepared.sides[measure.side.other]
    places, values = batch.positions[batch.order], totals.of(measure)
    spread = np.zeros(len(prepared), values.dtype)
    spread[places] = values
    unknown = np.ones(len(prepared), bool)
    unknown[places] = False
    return pa.array(spread, mask=unknown)


def combine(options: JoinOptions, partials: pa.Table) -> pa.RecordBatch:
    """The rows that one worker would give, by side and row; parts of a tuple must all be here."""
    sides = partials["side"].combine_chunks().to_numpy(zero_copy_only=False) == "r"
    numbers = partials["row"].to_numpy()
    order = np.lexsort((numbers, sides))
    sides, numbers = sides[order], numbers[order]
    fresh = np.ones(len(order), bool)
    fresh[1:] = (sides[1:] != sides[:-1]) | (numbers[1:] != numbers[:-1])
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(fresh) - 1
    ended = _Groups(options, partials, group, sides[fresh], numbers[fresh])
    return ended.rows()


def output_of(
    options: JoinOptions,
    collector: Collector,
    stores: tuple[RowStore, RowStore],
    share: Share | None,
) -> Output:
    """What a join gives by its options, or a worker of several for it."""
    if share is not None and share.workers > 1 and options.emit != "pairs":
        return PartialOutput(options, collector, stores, share)
    return _WHOLE[options.emit](options, collector, stores)


_WHOLE: dict[str, type[PairsOutput | CountsOutput | AggregateOutput]] = {
    "pairs": PairsOutput,
    "counts": CountsOutput,
    "aggregate": AggregateOutput,
}


class _Groups:
    """Parts of tuples, gathered: `group` has the tuple of each part."""

    def __init__(
        self,
        options: JoinOptions,
        partials: pa.Table,
        group: np.ndarray,
        sides: np.ndarray,
        numbers: np.ndarray,
    ) -> None:
        self._options, self._partials = options, partials
        self._group, self._sides, self._numbers = group, sides, numbers
        self._totals = [
            Totals(len(sides), options.measures(Side.LEFT)),
            Totals(len(sides), options.measures(Side.RIGHT)),
        ]

    def rows(self) -> pa.RecordBatch:
        for side in Side:
            for measure in self._options.measures(side):
                self._add(measure)
        matches = np.zeros(len(self._sides), np.int64)
        np.add.at(matches, self._group, self._partials["matches"].to_numpy())
        counted = from_numbers(matches)
        columns: list[pa.Array] = [pa.array(np.where(self._sides, "r", "l"), pa.string())]
        columns.append(from_numbers(self._numbers))
        if self._options.emit == "counts":
            columns.append(counted)
        for one in self._options.parsed_aggregates:
            columns.append(counted if one.side is None else self._finished(one))
        return pa.RecordBatch.from_arrays(columns, schema=result_schema(self._options))

    def _add(self, measure: Measure) -> None:
        column = self._partials[f"{measure.side.letter} {measure.name}"].combine_chunks()
        known = column.is_valid().to_numpy(zero_copy_only=False)
        values = column.drop_null().to_numpy()
        self._totals[measure.side].add_pairs(measure, self._group[known], values)
        if measure.part is Part.VALUE and values.dtype.kind == "i":
            sums = np.zeros(len(self._sides))
            np.add.at(sums, self._group[known], values.astype(np.float64))
            if np.abs(sums).max(initial=0.0) >= 2.0**63:
                raise EvaluationError(
                    f"a sum over {measure.side.letter}.{measure.column} does not fit in 64 bits: "
                    "cast its column to double"
                )

    def _finished(self, aggregate: Aggregate) -> pa.Array:
        """NULL for the tuples of the stream that it goes over."""
        assert aggregate.side is not None
        values = finished(aggregate, self._totals[aggregate.side])
        own = self._sides == (aggregate.side is Side.LEFT)
        return values.take(pa.array(np.arange(len(own)), mask=~own))
