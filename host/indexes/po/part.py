"""A PO-Join batch (SPO-Join 3.3, 3.4): tuples that do not change, by two keys at once.

The permutation array ties their two orders together, so that two predicates are two runs of
positions and a pair is a position that is in both. Three ways to find those are at hand, and
each question takes the one that should cost least.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from host.indexes.po.bitset import added_counts, added_sums, listings
from host.indexes.po.listing import Listing, PairColumn, pairs_of, picked, repeated, taken
from host.indexes.po.offsets import offsets
from host.indexes.po.order import Order
from host.indexes.po.runs import Runs, groups_of
from host.indexes.po.strips import Strips
from host.indexes.po.table import CornerTable
from host.indexes.po.threads import Threads
from host.two_keys import Rectangles

__all__ = ["MANY_RECTANGLES", "Part"]

#: Nanoseconds, measured: a strip that is met, a tuple looked at in it, a bit that is set, an end
#: of a run that is looked up among the bits, a tuple compared beside a corner of the table.
_MEET, _SEE, _SET, _LOOK, _COMPARE = 30.0, 1.5, 2.5, 50.0, 0.5
_SMALLEST_SHIFT, _LARGEST_SHIFT = 6, 12
#: Rectangles from which on they are dealt to several threads, and how many make a piece where
#: pieces cost nothing.
MANY_RECTANGLES, _FINE = 1 << 13, 1 << 12
#: Rectangles whose cost is looked at closely before all of them are.
_SAMPLE = 256


@dataclass(frozen=True)
class _Sample:
    """Runs of some rectangles, and how many there are in all."""

    runs: Runs
    count: int

    @property
    def each(self) -> float:
        """Rectangles that one of the sample stands for."""
        return self.count / max(1, len(self.runs))


class Part:
    """Tuples in the order of each of their keys."""

    def __init__(self, firsts: Order, seconds: Order) -> None:
        self.firsts = firsts
        self.seconds = seconds
        self._strips: Strips | None = None
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.firsts)

    @cached_property
    def permutation(self) -> np.ndarray:
        """First position of each second position (SPO-Join, Algorithm 2)."""
        if not len(self):
            return np.empty(0, np.uint32)
        base = self.firsts.rids.min()
        places = np.empty(int(self.firsts.rids.max() - base) + 1, np.uint32)
        places[self.firsts.rids - base] = np.arange(len(self), dtype=np.uint32)
        return places[self.seconds.rids - base]

    @cached_property
    def inverse(self) -> np.ndarray:
        """Second position of each first position."""
        result = np.empty_like(self.permutation)
        result[self.permutation] = np.arange(len(self), dtype=np.uint32)
        return result

    @cached_property
    def _table(self) -> CornerTable:
        return CornerTable.of(self.permutation)

    def merged(self, newer: "Part") -> "Part":
        return Part(self.firsts.merged(newer.firsts), self.seconds.merged(newer.seconds))

    def only(self, begin: int, end: int) -> "Part":
        """The tuples with a rid in [begin, end)."""
        return Part(self.firsts.only(begin, end), self.seconds.only(begin, end))

    def runs(self, wanted: Rectangles) -> Runs:
        """Offsets of the rectangles in both orders."""
        first, end = offsets(self.firsts.keys, *wanted.first)
        return Runs(first, end, wanted, self.seconds.keys)

    def counts(self, wanted: Rectangles, threads: Threads | None = None) -> np.ndarray:
        """int64: tuples in each rectangle; many rectangles are dealt to threads."""
        sample = self._sample(wanted)
        by_bits = self._bits_cost(sample)
        strips = self._strips_for(sample, by_bits)
        if strips is not None:
            return _dealt(threads, wanted, strips.counts, _FINE)
        if self._table_cost(sample) < by_bits:
            permutation, inverse, table = self.permutation, self.inverse, self._table
            return _dealt(
                threads, wanted,
                lambda piece, totals: table.counts(
                    permutation, inverse, self.runs(piece).by_first, totals
                ),
                _FINE,
            )
        return self._by_bits(wanted, threads, None)

    def sums(
        self, wanted: Rectangles, values: np.ndarray, threads: Threads | None = None
    ) -> np.ndarray:
        """int64: int64 `values` (by rid) summed over the tuples in each rectangle."""
        sample = self._sample(wanted)
        weights = values[self.firsts.rids]
        strips = self._strips_for(sample, self._bits_cost(sample))
        if strips is not None:
            return _dealt(
                threads, wanted, lambda piece, totals: strips.sums(piece, totals, weights), _FINE
            )
        return self._by_bits(wanted, threads, weights)

    def pairs(self, wanted: Rectangles, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, rid) of every tuple in a rectangle, in arrays of at most `most`."""
        for probe, found in self._listings(wanted, most):
            yield from pairs_of(found, most, probe, self.firsts.rids)

    def columns(
        self, wanted: Rectangles, most: int, columns: Sequence[PairColumn]
    ) -> Iterator[list[np.ndarray]]:
        """The same as columns of pairs."""
        for probe, found in self._listings(wanted, most):
            own = [None if column.own is None else column.own[probe] for column in columns]
            for listing in found:
                yield [
                    picked(self._arranged(column), listing)
                    if values is None
                    else repeated(values, listing)
                    for column, values in zip(columns, own, strict=True)
                ]

    def _arranged(self, column: PairColumn) -> np.ndarray:
        """A column of the tuples in their first order, in which rectangles' tuples are near.

        It is made once: the tuples do not change any more.
        """
        name = column.words.name
        if name not in self._columns:
            self._columns[name] = taken(column.words, column.base, self.firsts.rids)
        return self._columns[name]

    def _listings(
        self, wanted: Rectangles, most: int
    ) -> Iterator[tuple[np.ndarray, Iterator[Listing]]]:
        """All positions in rectangles, with the probe of each rectangle in the listings' order."""
        strips = self._strips_for(self._sample(wanted), self._listing_cost(wanted))
        if strips is not None:
            yield wanted.probe, strips.listings(wanted, most)
            return
        runs = self.runs(wanted)
        first, end, low, high = runs.by_second
        for places, name in groups_of(runs, len(self)):
            prefix = name == "prefix"
            # Seen from its far end, a suffix is a prefix.
            bound = high[places] if prefix else len(self) - low[places]
            order = _ascending(bound)
            chosen = places if order is None else places[order]
            bound = bound if order is None else bound[order]
            permutation = self.permutation if prefix else self.permutation[::-1].copy()
            yield (
                wanted.probe[runs.order[chosen]],
                listings(permutation, bound, first[chosen], end[chosen], most),
            )

    def _by_bits(
        self, wanted: Rectangles, threads: Threads | None, weights: np.ndarray | None
    ) -> np.ndarray:
        """What lies below the upper bounds without what lies below the lower ones."""
        permutation = self.permutation

        def work(piece: Rectangles, totals: np.ndarray) -> None:
            runs = self.runs(piece)
            first, end, low, high = runs.by_second
            for bound, sign in ((high, 1), (low, -1)):
                if not bound.any():
                    continue
                found = np.zeros(len(runs), np.int64)
                order = _ascending(bound)
                ordered = (bound, first, end)
                if order is not None:
                    ordered = (bound[order], first[order], end[order])
                if weights is None:
                    added_counts(permutation, *ordered, sign, found)
                else:
                    added_sums(permutation, *ordered, sign, found, weights)
                totals[runs.order if order is None else runs.order[order]] += found

        # Each piece sets all bits anew.
        return _dealt(threads, wanted, work, None)

    def _sample(self, wanted: Rectangles) -> "_Sample":
        """A few of the rectangles, which stand for all."""
        step = max(1, -(-len(wanted) // _SAMPLE))
        return _Sample(self.runs(wanted.every(step)), len(wanted))

    def _strips_for(self, sample: "_Sample", limit: float) -> Strips | None:
        """Strips, if they cost less than `limit` nanoseconds."""
        runs = sample.runs
        mean = float((runs.end - runs.first).mean()) if len(runs) else 0.0
        shift = min(max(int(mean).bit_length(), _SMALLEST_SHIFT), _LARGEST_SHIFT)
        if sample.count * _MEET * (mean / (1 << shift) + 1) > limit:
            return None
        strips = self._strips
        if strips is None or abs(strips.shift - shift) > 1:
            self._strips = strips = Strips.of(
                self.permutation, shift, self.firsts.keys, self.seconds.keys
            )
        if np.isinf(limit):
            return strips
        met, seen = strips.cost(runs.wanted)
        return strips if sample.each * (_MEET * met + _SEE * seen) < limit else None

    def _bits_cost(self, sample: "_Sample") -> float:
        """Nanoseconds of a count by bits: a pass for each bound that is one."""
        passes = 1 + sample.runs.bounded[0]
        return passes * (_SET * len(self) + _LOOK * self._ends(sample.runs) * sample.count)

    def _listing_cost(self, wanted: Rectangles) -> float:
        """Nanoseconds of a list by bits, which hold a prefix or a suffix; without end, if neither
        is wanted.
        """
        if not len(self):
            return np.inf
        lo, hi = wanted.second
        below, above = lo > self.seconds.keys[0], hi < self.seconds.keys[-1]
        if (below & above).any():
            return np.inf
        passes = int(below.any()) + int((~below).any())
        return passes * _SET * len(self) + _LOOK * len(wanted)

    def _table_cost(self, sample: "_Sample") -> float:
        """Nanoseconds of a count by corners of the table."""
        corners = self._ends(sample.runs) * sum(sample.runs.bounded)
        width = max(1 << _SMALLEST_SHIFT, len(self) >> 10)
        return float(sample.count * corners * (_LOOK + _COMPARE * width))

    def _ends(self, runs: Runs) -> int:
        """Ends of runs of first positions that are not those of all tuples."""
        return int(runs.first.any()) + int((runs.end < len(self)).any())

    def _check(self) -> None:
        """Assert what the paper says of the arrays; for tests."""
        for order in (self.firsts, self.seconds):
            assert (order.keys[:-1] <= order.keys[1:]).all()
        assert (self.firsts.rids[self.permutation] == self.seconds.rids).all()
        assert (self.permutation[self.inverse] == np.arange(len(self))).all()
        if self._strips is not None:
            self._strips._check(self.permutation, self.firsts.keys, self.seconds.keys)


def _ascending(bound: np.ndarray) -> np.ndarray | None:
    """The order in which the bounds ascend; None if they do."""
    return np.argsort(bound, kind="stable") if (bound[1:] < bound[:-1]).any() else None


def _dealt(
    threads: Threads | None, wanted: Rectangles,
    work: Callable[[Rectangles, np.ndarray], None], grain: int | None,
) -> np.ndarray:
    """What `work` adds up for each rectangle; pieces of about `grain` are dealt to threads.

    Without a grain there are as many pieces as threads.
    """
    totals = np.zeros(len(wanted), np.int64)
    if threads is None or len(wanted) < MANY_RECTANGLES:
        work(wanted, totals)
        return totals
    fine = 0 if grain is None else len(wanted) // grain
    pieces = wanted.split(max(threads.count, fine))
    ends = np.cumsum([len(piece) for piece in pieces])
    threads.together([
        partial(work, piece, totals[end - len(piece) : end])
        for piece, end in zip(pieces, ends, strict=True)
    ])
    return totals
