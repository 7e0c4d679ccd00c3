"""PanJoin step 2, preprocessing: join fields out of the tuples, late ones marked, keys sorted."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pyarrow as pa

from host.aggregates import Measure, measure_values
from host.arrivals import Arrivals
from host.arrow_arrays import is_microseconds
from host.chain import TIME
from host.condition import JoinCondition
from host.errors import InputError
from host.sharing import Share
from host.sorting import sorted_by_key
from host.threads import Beside
from host.two_keys import Rectangles, ascending, keyed_twice
from host.watermark import Watermark
from hw.spec.tuples import Side, tuple_dtype
from hw.spec.windows import TimeWindow, Window

__all__ = ["Prepared", "SideBatch", "Preprocessor"]


#: Tuples from which on the streams of a batch are prepared by a thread each. Below, the other one
#: is waited for longer than it works.
_LARGE_BATCH = 1 << 16


@dataclass(frozen=True)
class SideBatch:
    """The tuples of one stream in a batch.

    rows       all of them as they came, in order of arrival
    first      number in the stream of the first
    numbers    number of each in its input
    positions  place of each in the batch's order of arrival, both streams counted
    before     tuples of the other stream, from its beginning, that arrived before each
    carried    arrays that are stored with the tuples: event times in microseconds (TIME, time
               windows only), and what aggregates are made of
    late       which are late, or None where nothing can be
    order      offsets of those that can match, ascending by key, then by arrival
    keys       their keys, in that order
    stored     which tuples go into the window; None is all (see host.sharing)
    seconds    their second keys, where two predicates are searched at once
    rectangles what they want of both keys, in that case
    words      keys and offsets together, where host.sorting has made them
    alternates whether it takes turns with the other stream, tuple by tuple, left first
    """

    side: Side
    rows: pa.RecordBatch
    first: int
    numbers: np.ndarray
    positions: np.ndarray
    before: np.ndarray
    carried: dict[str, np.ndarray]
    late: np.ndarray | None
    order: np.ndarray
    keys: np.ndarray
    stored: np.ndarray | None = None
    seconds: np.ndarray | None = None
    rectangles: Rectangles | None = None
    words: np.ndarray | None = None
    alternates: bool = False

    def __len__(self) -> int:
        return len(self.positions)

    def spread(self, values: np.ndarray, into: np.ndarray) -> None:
        """Write a value for each tuple to its place in the batch's order of arrival."""
        if self.alternates:
            into[self.side :: 2] = values
        else:
            into[self.positions] = values

    def spread_sorted(self, values: np.ndarray, into: np.ndarray) -> None:
        """The same of values in the order of `order`; the rest of the places is left alone."""
        if self.alternates:
            into[self.side :: 2][self.order] = values
        else:
            into[self.positions[self.order]] = values

    @property
    def times(self) -> np.ndarray | None:
        return self.carried.get(TIME)

    def tuples(self, begin: int, end: int, base: int) -> np.ndarray:
        """Sorted tuples to store of the offsets in [begin, end), rids counted from row `base`."""
        order, keys = self.order, self.keys
        chosen = None if self.stored is None else self.stored[order]
        if begin > 0 or end < len(self):
            within = (order >= begin) & (order < end)
            chosen = within if chosen is None else chosen & within
        if chosen is not None:
            order, keys = order[chosen], keys[chosen]
        if self.seconds is not None:
            return self._keyed_twice(keys, order + (self.first - base), chosen)
        if chosen is None and self.words is not None:
            # The rid is the upper half, in which nothing is carried from the key.
            words, moved = self.words, (self.first - base) << 32
            tuples: np.ndarray = words + np.uint64(moved) if moved else words
            return tuples.view(tuple_dtype(32))
        result = np.empty(len(order), tuple_dtype(keys.dtype.itemsize * 8))
        result["key"] = keys
        result["rid"] = order + (self.first - base)
        return result

    def _keyed_twice(
        self, keys: np.ndarray, rids: np.ndarray, chosen: np.ndarray | None
    ) -> np.ndarray:
        assert self.seconds is not None
        if chosen is None:
            return keyed_twice(keys, rids, self.seconds, self._by_second)
        seconds = self.seconds[chosen]
        return keyed_twice(keys, rids, seconds, ascending(seconds))

    @cached_property
    def _by_second(self) -> np.ndarray:
        """Places in `order` by second key; probes alone may do without."""
        assert self.seconds is not None
        return ascending(self.seconds)


@dataclass(frozen=True)
class Prepared:
    """A batch, ready to be sent: steps 1 and 2 are done.

    watermarks  of both streams after its last tuple
    """

    sides: tuple[SideBatch, SideBatch]
    watermarks: tuple[int, int]

    def __len__(self) -> int:
        return len(self.sides[0]) + len(self.sides[1])


class Preprocessor:
    """Turns arrivals into prepared batches; keeps each stream's count and watermark."""

    def __init__(
        self,
        condition: JoinCondition,
        window: Window,
        time_columns: tuple[str, str] | None,
        watermarks: tuple[Watermark, Watermark],
        measures: tuple[Sequence[Measure], Sequence[Measure]] = ((), ()),
        share: Share | None = None,
    ) -> None:
        self.measures = measures
        self.share = share
        self.condition = condition
        self.window = window
        self.time_columns = time_columns
        self.watermarks = watermarks
        self.totals = [0, 0]
        self._beside = Beside("watersmeet-sort")

    def close(self) -> None:
        """End its thread."""
        self._beside.close()

    def prepare(self, arrivals: Arrivals) -> Prepared:
        left, right = self._sides(arrivals, list(self.totals))
        for side in Side:
            self.totals[side] += len(arrivals.positions[side])
        return Prepared((left, right), (self.watermarks[0].time, self.watermarks[1].time))

    def _sides(self, arrivals: Arrivals, totals: list[int]) -> tuple[SideBatch, SideBatch]:
        """Both streams, which share nothing: side by side where the batch is worth it."""
        if len(arrivals) < _LARGE_BATCH:
            left, right = (self._side(side, arrivals, totals) for side in Side)
            return left, right
        beside = self._beside.start(partial(self._side, Side.RIGHT, arrivals, totals))
        left = self._side(Side.LEFT, arrivals, totals)
        return left, beside.result()

    def _side(self, side: Side, arrivals: Arrivals, totals: list[int]) -> SideBatch:
        rows, positions = arrivals.rows[side], arrivals.positions[side]
        keys, seconds, matchable = self.condition.encode_both(side, rows)
        carried = {
            measure.name: measure_values(measure, rows.column(measure.column))
            for measure in self.measures[side]
        }
        late = None
        if isinstance(self.window, TimeWindow):
            assert self.time_columns is not None
            times, known = event_times(side, self.time_columns[side], rows)
            carried[TIME] = times
            late = self.watermarks[side].observe(times, known)
            matchable = _both(matchable, known)
            if late is not None:
                matchable = _both(matchable, ~late)
        stored = None
        if self.share is not None:
            probed = self.share.probed(side, rows)
            matchable = _both(matchable, probed)
            stored = self.share.stored(side, totals[side], len(positions))
        order, keys, tuples = sorted_by_key(keys, matchable)
        seconds = None if seconds is None else seconds[order]
        if arrivals.alternates:
            first = totals[side.other] + side
            before = np.arange(first, first + len(positions))
        else:
            # Whatever stands before a tuple and is not of its stream is of the other.
            before = positions - np.arange(len(positions)) + totals[side.other]
        return SideBatch(
            side=side,
            rows=rows,
            first=totals[side],
            numbers=arrivals.numbers[side],
            positions=positions,
            before=before,
            carried=carried,
            late=late,
            order=order,
            keys=keys,
            stored=stored,
            seconds=seconds,
            rectangles=self._rectangles(side, keys, seconds),
            words=tuples,
            alternates=arrivals.alternates,
        )

    def _rectangles(
        self, side: Side, keys: np.ndarray, seconds: np.ndarray | None
    ) -> Rectangles | None:
        beside = self.condition.second_keys
        if seconds is None or beside is None:
            return None
        first, second = self.condition.intervals(side, keys), beside.intervals(side, seconds)
        return Rectangles.of(first, second)


def _both(one: np.ndarray | None, other: np.ndarray | None) -> np.ndarray | None:
    """Which rows are among both; None is all of them."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def event_times(side: Side, name: str, rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """Microseconds of a timestamp or date column, and which are known (not NULL)."""
    column = rows.column(name)
    if is_microseconds(column.type) and not column.null_count:
        return column.view(pa.int64()).to_numpy(), np.ones(len(column), bool)
    try:
        instants = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)))
    except pa.ArrowInvalid:
        raise InputError(
            f"time {side.letter}.{name} has a value that is no whole number of microseconds "
            "in 64 bits: round it"
        ) from None
    known = np.ones(len(column), bool)
    if instants.null_count:
        known = instants.is_valid().to_numpy(zero_copy_only=False)
        instants = instants.fill_null(0)
    return instants.cast(pa.int64()).to_numpy(zero_copy_only=False), known
