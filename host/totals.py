"""Sums and extremes over the matches of each probe, gathered from engines and from pairs."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from host.aggregates import Aggregate, Measure, Part
from host.keys import decode_column

__all__ = ["Totals", "finished", "over_runs"]

_LIMITS = np.iinfo(np.int64)
_NEUTRAL = {Part.LEAST: _LIMITS.max, Part.LARGEST: _LIMITS.min}


class Totals:
    """One array to a measure, one entry to a probe of the sorted batch."""

    def __init__(self, probes: int, measures: Sequence[Measure]) -> None:
        self.measures = measures
        self._probes = probes
        self._arrays: dict[str, np.ndarray] = {}

    def of(self, measure: Measure) -> np.ndarray:
        """Sum, least or largest, by the measure's part; of nothing, 0 or the neutral one."""
        found = self._arrays.get(measure.name)
        return self._fresh(measure, np.dtype(np.int64)) if found is None else found

    def add(self, measure: Measure, more: np.ndarray) -> None:
        """Take in what was found elsewhere for each probe."""
        held = self._held(measure, more.dtype)
        _COMBINE[measure.part](held, more, out=held)

    def add_pairs(self, measure: Measure, probe: np.ndarray, values: np.ndarray) -> None:
        """Take in one value for each pair."""
        _COMBINE[measure.part].at(self._held(measure, values.dtype), probe, values)

    def _held(self, measure: Measure, dtype: np.dtype) -> np.ndarray:
        if measure.name not in self._arrays:
            self._arrays[measure.name] = self._fresh(measure, dtype)
        return self._arrays[measure.name]

    def _fresh(self, measure: Measure, dtype: np.dtype) -> np.ndarray:
        return np.full(self._probes, _NEUTRAL.get(measure.part, 0), dtype)


_COMBINE: dict[Part, np.ufunc] = {
    Part.KNOWN: np.add,
    Part.VALUE: np.add,
    Part.LEAST: np.minimum,
    Part.LARGEST: np.maximum,
}


def over_runs(
    measure: Measure, values: np.ndarray, start: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """The measure over each nonempty run of positions; `values` are by position.

    Integer sums come from prefix sums, so a long run costs what a short one does. Sums of floats
    would lose digits to what stands before a run: they are added up.
    """
    if measure.part.is_sum and values.dtype.kind == "i":
        before = np.concatenate([[0], np.cumsum(values)])
        sums: np.ndarray = before[start + size] - before[start]
        return sums
    # One more value, so that a run may end at the last; every second stretch is between runs.
    edges = np.stack([start, start + size], axis=1).ravel()
    padded = np.append(values, values[-1:])
    reduced: np.ndarray = _COMBINE[measure.part].reduceat(padded, edges)[::2]
    return reduced


def finished(aggregate: Aggregate, totals: Totals) -> pa.Array:
    """The aggregate of each probe; NULL where it goes over nothing but NULLs."""
    measures = aggregate.measures
    known = totals.of(measures[0])
    if aggregate.function == "count":
        return pa.array(known)
    values, nothing = totals.of(measures[1]), known == 0
    if aggregate.function == "avg":
        with np.errstate(invalid="ignore"):
            return pa.array(values / np.maximum(known, 1), mask=nothing)
    assert aggregate.kind is not None
    if aggregate.function == "sum":
        return _sums(aggregate, values, nothing)
    decoded = decode_column(np.where(nothing, 0, values), aggregate.kind)
    return decoded.take(pa.array(np.arange(len(values)), mask=nothing))


def _sums(aggregate: Aggregate, values: np.ndarray, nothing: np.ndarray) -> pa.Array:
    if pa.types.is_decimal(aggregate.type):
        scaled = decode_column(values, pa.decimal128(18, aggregate.type.scale))
        wide = scaled.cast(aggregate.type)
        return wide.take(pa.array(np.arange(len(values)), mask=nothing))
    return pa.array(values, aggregate.type, mask=nothing)
