"""The words that every layer shares: numpy and the standard library only."""

from hw.spec.params import JoinParams
from hw.spec.predicates import Band, Predicate, compare
from hw.spec.tuples import NOT, PAIR, RECORD, Side, interval_dtype, key_dtype, tuple_dtype
from hw.spec.windows import NoWindow, RowWindow, TimeWindow, Window, parse_window

__all__ = [
    "NOT",
    "PAIR",
    "RECORD",
    "Band",
    "JoinParams",
    "NoWindow",
    "Predicate",
    "RowWindow",
    "Side",
    "TimeWindow",
    "Window",
    "compare",
    "interval_dtype",
    "key_dtype",
    "parse_window",
    "tuple_dtype",
]
