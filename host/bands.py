"""Which parts of a condition are sums of integers in closed bands, over one key of each stream."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np

from host.bounds import linear_intervals, predicate_intervals
from host.keys import KeyCodec, codec_of
from host.sql.expressions import Call, LinearTest, Node, sides_of
from hw.spec.predicates import Band, Predicate
from hw.spec.tuples import Side

__all__ = ["MOST_BANDS", "ExactBands", "Rank", "both", "either", "exact_bands"]

#: Intervals that one probe may ask for.
MOST_BANDS = 4

_ONE_SIDE = (frozenset({Side.LEFT}), frozenset({Side.RIGHT}))


class Rank(IntEnum):
    """How much a part narrows the search, best first."""

    EQUALITY = 0
    BAND = 1
    BANDS = 2
    INEQUALITY = 3
    EXCLUSION = 4


@dataclass(frozen=True)
class ExactBands:
    """Pairs whose sum `factors[0] * left + factors[1] * right` lies in one of the bands.

    left, right  expressions of one stream each, of exact types: the sum is of the integers that
                 stand for their values; of floats it is of their keys
    parts        the conjuncts that this is the meaning of
    """

    left: Node
    right: Node
    factors: tuple[int, int]
    bands: tuple[Band, ...]
    parts: tuple[Node, ...]

    @cached_property
    def codecs(self) -> tuple[KeyCodec, KeyCodec]:
        """Keys whose difference is the sum, if they fit; else keys of the values alone."""
        left, right = codec_of(self.left.type), codec_of(self.right.type)
        assert left is not None and right is not None
        scaled = left.scaled(-self.factors[0]), right.scaled(self.factors[1])
        return (scaled[0], scaled[1]) if scaled[0] and scaled[1] else (left, right)

    @cached_property
    def key_factors(self) -> tuple[int, int]:
        """The factors for sums of keys."""
        left, right = self.codecs
        return self.factors[0] // left.scale, self.factors[1] // right.scale

    @property
    def rank(self) -> Rank:
        ends = [end for band in self.bands for end in (band.lo, band.hi)]
        if len(ends) == 2 and ends[0] is not None and ends[0] == ends[1]:
            return Rank.EQUALITY
        if None not in ends:
            return Rank.BAND if len(self.bands) <= 1 else Rank.BANDS
        return Rank.INEQUALITY if ends.count(None) == 1 else Rank.EXCLUSION

    @cached_property
    def key_bands(self) -> tuple[Band, ...]:
        """The bands for sums of keys."""
        bias = sum(factor * codec.bias
                   for factor, codec in zip(self.key_factors, self.codecs, strict=True))
        return tuple(Band(None if band.lo is None else band.lo - bias,
                          None if band.hi is None else band.hi - bias) for band in self.bands)

    @cached_property
    def predicate(self) -> Predicate | None:
        """The same for the device's boundary generator, if no factor stands in the way."""
        if self.key_factors != (-1, 1):
            return None
        bands = self.key_bands
        if len(bands) == 2 and bands[0].lo is None and bands[1].hi is None:
            assert bands[0].hi is not None and bands[1].lo is not None
            return Predicate((Band(bands[0].hi + 1, bands[1].lo - 1),), negated=True)
        return Predicate(bands)

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        """Closed intervals of stored keys for probe keys of `side`, disjoint within a row."""
        predicate = self.predicate
        if predicate is not None:
            return predicate_intervals(predicate, side, keys)
        return linear_intervals(side, keys, self.key_factors, self.key_bands)

    def joined(self, other: "ExactBands") -> "ExactBands | None":
        """Both at once, if they are about the same sum and not too many bands come of it."""
        if _subject(self) != _subject(other):
            return None
        bands = both(self.bands, other.bands)
        if len(bands) > MOST_BANDS:
            return None
        return replace(self, bands=bands, parts=self.parts + other.parts)


def _subject(bands: ExactBands) -> tuple[Node, Node, tuple[int, int]]:
    return bands.left, bands.right, bands.factors


def exact_bands(node: Node) -> ExactBands | None:
    """The bands of a boolean expression about one sum, if it is that."""
    found = _any_number(node)
    if found is None or len(found.bands) > MOST_BANDS:
        return None
    return replace(found, parts=(node,))


def _any_number(node: Node) -> ExactBands | None:
    if isinstance(node, LinearTest):
        return _of_test(node)
    if not isinstance(node, Call) or node.name not in ("and", "or"):
        return None
    inner = [_any_number(arg) for arg in node.args]
    first = inner[0]
    if first is None:
        return None
    bands = first.bands
    for part in inner[1:]:
        if part is None or _subject(part) != _subject(first):
            return None
        bands = (both if node.name == "and" else either)(bands, part.bands)
    return replace(first, bands=bands)


def _of_test(test: LinearTest) -> ExactBands | None:
    if len(test.terms) != 2:
        return None
    (a, left), (b, right) = test.terms
    if (sides_of(left), sides_of(right)) != _ONE_SIDE:
        return None
    if codec_of(left.type) is None or codec_of(right.type) is None:
        return None
    bands = _outside(test.band) if test.negated else either((test.band,), ())
    return ExactBands(left, right, (a, b), bands, (test,))


def either(a: tuple[Band, ...], b: tuple[Band, ...]) -> tuple[Band, ...]:
    """The union, in bands that neither overlap nor touch."""
    return Predicate(a + b).bands


def both(a: tuple[Band, ...], b: tuple[Band, ...]) -> tuple[Band, ...]:
    """The intersection."""
    return either(tuple(_overlap(x, y) for x in a for y in b), ())


def _overlap(a: Band, b: Band) -> Band:
    lows = [lo for lo in (a.lo, b.lo) if lo is not None]
    highs = [hi for hi in (a.hi, b.hi) if hi is not None]
    return Band(max(lows, default=None), min(highs, default=None))


def _outside(band: Band) -> tuple[Band, ...]:
    """The complement."""
    if band.empty:
        return (Band(None, None),)
    below = () if band.lo is None else (Band(None, band.lo - 1),)
    return below + (() if band.hi is None else (Band(band.hi + 1, None),))
