"""What probes with two predicates match, before their windows are looked at."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from host.indexes.po.listing import PairColumn, taken
from host.indexes.po.mutable import Mutable
from host.indexes.po.part import MANY_RECTANGLES, Part
from host.indexes.po.threads import Threads
from host.two_keys import Rectangles

__all__ = ["PoCandidates"]

T = TypeVar("T")

#: Candidates to a probe from which on sums are cheaper than looking at every one.
_MANY = 64
#: Rids of which the pairs are looked at one by one.
_FEW = 256
_CHUNK = 1 << 16


@dataclass(frozen=True)
class PoCandidates:
    """Those in immutable parts, and in a mutable part if there is one: host.candidates."""

    wanted: Rectangles
    parts: tuple[Part, ...]
    mutable: Mutable | None = None
    threads: Threads | None = None

    @cached_property
    def _sizes(self) -> np.ndarray:
        found = np.zeros(len(self.wanted), np.int64)
        for part in self.parts:
            found += part.counts(self.wanted, self.threads)
        if self.mutable is not None:
            found += self.mutable.counts(self.wanted)
        return self.wanted.by_probe(found)

    def _pieces(self, wanted: Rectangles) -> list[Rectangles]:
        if self.threads is None or len(wanted) < MANY_RECTANGLES:
            return [wanted]
        for part in self.parts:
            part.permutation  # noqa: B018  (made once, before several threads want it)
        return wanted.split(self.threads.count)

    def sizes(self) -> np.ndarray:
        return self._sizes.copy()

    def pairs(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        wanted = self.wanted.only(only)
        yield from self._over_parts(wanted, lambda part, piece: part.pairs(piece, most_pairs))
        if self.mutable is not None:
            which, rid = self.mutable.pairs(wanted)
            for begin in range(0, len(which), most_pairs):
                chosen = slice(begin, begin + most_pairs)
                yield wanted.probe[which[chosen]], rid[chosen]

    def columns(
        self, most_pairs: int, columns: Sequence[PairColumn], only: np.ndarray | None = None
    ) -> Iterator[list[np.ndarray]]:
        """The same as columns of pairs, which are written where the pairs are found."""
        wanted = self.wanted.only(only)
        yield from self._over_parts(
            wanted, lambda part, piece: part.columns(piece, most_pairs, columns)
        )
        if self.mutable is not None:
            which, rid = self.mutable.pairs(wanted)
            probe = wanted.probe[which]
            yield [
                taken(column.words, column.base, rid) if column.own is None else column.own[probe]
                for column in columns
            ]

    def _over_parts(
        self, wanted: Rectangles, source: Callable[[Part, Rectangles], Iterator[T]]
    ) -> Iterator[T]:
        """What `source` gives for all parts, many rectangles in several threads."""
        pieces = self._pieces(wanted)
        sources = (source(part, piece) for part in self.parts for piece in pieces)
        if self.threads is None or len(pieces) == 1:
            for one in sources:
                yield from one
        else:
            yield from self.threads.ahead(sources)

    def has_many(self, only: np.ndarray | None = None) -> bool:
        sizes = self._sizes if only is None else self._sizes[only]
        return int(sizes.sum()) > _MANY * len(sizes)

    def total(self, values: np.ndarray) -> np.ndarray:
        """int64 `values` (by rid) summed over all candidates of each probe."""
        found = np.zeros(len(self.wanted), np.int64)
        for part in self.parts:
            found += part.sums(self.wanted, values, self.threads)
        totals = self.wanted.by_probe(found)
        if self.mutable is not None:
            which, rid = self.mutable.pairs(self.wanted)
            np.add.at(totals, self.wanted.probe[which], values[rid])
        return totals

    def sums(
        self, first: np.ndarray, end: np.ndarray, values: np.ndarray | None,
        only: np.ndarray | None = None,
    ) -> np.ndarray:
        parts = self.parts
        if self.mutable is not None and len(self.mutable):
            parts = (*parts, self.mutable.as_part())
        totals = np.zeros(self.wanted.probes, np.int64)
        asked = np.ones(len(first), bool) if only is None else only
        for part in parts:
            if len(part):
                rids = part.firsts.rids
                span = (int(rids.min()), int(rids.max()) + 1)
                totals += self._sums_in(part, span, asked, (first, end), values)
        return totals

    def _sums_in(
        self, part: Part, span: tuple[int, int], asked: np.ndarray,
        seen: tuple[np.ndarray, np.ndarray], values: np.ndarray | None,
    ) -> np.ndarray:
        """Sums in one part, whose rids are in `span`.

        Probes that see all of it are summed at once. For the others it is cut in two by rids:
        a window has two edges, so that a probe is in few pieces that it sees in part.
        """
        first, end = seen
        totals = np.zeros(self.wanted.probes, np.int64)
        if not len(part):
            return totals
        whole = asked & (first <= span[0]) & (end >= span[1])
        partly = asked & ~whole & (first < span[1]) & (end > span[0])
        if whole.any():
            wanted = self.wanted.only(whole)
            over = part.counts(wanted) if values is None else part.sums(wanted, values)
            totals += wanted.by_probe(over)
        if not partly.any():
            return totals
        if span[1] - span[0] <= _FEW:
            return totals + self._looked_at(part, partly, seen, values)
        middle = (span[0] + span[1]) // 2
        for piece in ((span[0], middle), (middle, span[1])):
            totals += self._sums_in(part.only(*piece), piece, partly, seen, values)
        return totals

    def _looked_at(
        self, part: Part, asked: np.ndarray, seen: tuple[np.ndarray, np.ndarray],
        values: np.ndarray | None,
    ) -> np.ndarray:
        totals = np.zeros(self.wanted.probes, np.int64)
        wanted = self.wanted.only(asked)
        for probe, rid in part.pairs(wanted, _CHUNK):
            keep = (rid >= seen[0][probe]) & (rid < seen[1][probe])
            np.add.at(totals, probe[keep], 1 if values is None else values[rid[keep]])
        return totals
