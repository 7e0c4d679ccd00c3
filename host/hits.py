"""What a batch of probes found in one subwindow: candidates, and exact pairs out of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from host.candidates import Candidates
from host.chain import TIME
from host.preprocess import SideBatch
from host.stretches import edges_of
from host.totals import Totals
from host.views import Seen, Span
from hw.spec.tuples import Side
from hw.spec.windows import Coverage, Sight, coverage

__all__ = ["Found", "Hits"]


@dataclass(frozen=True)
class Hits:
    """Candidates of the sorted probes of `probe` in one subwindow of the other stream.

    base         number in the stream of rid 0
    carried      arrays by rid: event times (TIME) where the window is of time, measures
    seen         the places that each probe sees
    look         asks which rids each probe sees; None where places do not follow arrivals
    span         first and last place of the subwindow; None if every probe sees all of it, so that
                 every candidate holds
    in_batch     the stored tuples are of the same batch: only those that arrived before count
    kept         room for what is made of the subwindow and lasts as long as it
    """

    probe: SideBatch
    candidates: Candidates
    base: int
    carried: dict[str, np.ndarray]
    seen: Seen
    look: Callable[[], Sight | None]
    span: Span | None
    in_batch: bool = False
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def partly(self) -> bool:
        """Whether candidates are still to be filtered by what their probes see."""
        return self.span is not None or self.in_batch

    @cached_property
    def sight(self) -> Sight | None:
        """Which rids each probe sees; None where places do not follow arrivals."""
        return self.look()

    @cached_property
    def _covers(self) -> np.ndarray | None:
        """Coverage of the subwindow by each probe; None if all see the whole."""
        return None if self.span is None else coverage(*self.seen.places, *self.span)

    @cached_property
    def covered(self) -> np.ndarray | None:
        """Probes whose window covers the whole subwindow; None if it is so for all."""
        whole = None if self._covers is None else self._covers == Coverage.WHOLE
        return None if whole is None or whole.all() else whole

    @cached_property
    def seeing(self) -> np.ndarray | None:
        """Probes that see something of the subwindow; None if all do."""
        some = None if self._covers is None else self._covers != Coverage.NONE
        return None if some is None or some.all() else some

    def sizes(self) -> np.ndarray:
        """Candidates of each probe, before the exact filter."""
        found = self.candidates.sizes()
        if self.seeing is not None:
            found[~self.seeing] = 0
        return found

    def counts(self, most_pairs: int) -> np.ndarray:
        """Matches of each probe, exact; only partly covered subwindows look at single tuples."""
        if self.covered is None and not self.in_batch:
            return self.sizes()
        if self.covered is None:
            counts, partial = np.zeros(len(self.probe.order), np.int64), self.seeing
        else:
            counts, partial = self.sizes(), ~self.covered
            counts[partial] = 0
            if self.seeing is not None:
                partial = partial & self.seeing
        sums = self._sums(partial, None)
        if sums is not None:
            return counts + sums
        for probe, rid in self.candidates.pairs(most_pairs, partial):
            kept, _ = self.filtered(probe, rid)
            counts += np.bincount(kept, minlength=len(counts))
        return counts

    def sums(self, values: np.ndarray) -> np.ndarray | None:
        """Sums of int64 `values` (by rid) over each probe's matches; None if pairs are better."""
        return self._sums(self.seeing, values)

    def _sums(self, only: np.ndarray | None, values: np.ndarray | None) -> np.ndarray | None:
        if not self.candidates.has_many(only) or self.edges is None:
            return None
        return self.candidates.sums(*self.edges, values, only)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The rids [first, end) that each probe sees, if its places follow the arrivals."""
        times = self.carried.get(TIME)
        edges = edges_of(*self.seen.places, self.base, times, self.probe.order)
        if edges is None:
            return None
        first, end = edges
        if self.in_batch:
            end = np.minimum(end, self.probe.before[self.probe.order] - self.base)
        return first, np.maximum(first, end)

    def pairs(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, stored row number) of the matches, exact, in bounded chunks.

        `only` is a mask of the probes that are asked for.
        """
        for probe, rid in self.matches(most_pairs, only):
            yield probe, rid.astype(np.int64) + self.base

    def matches(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The same with rids in place of row numbers."""
        if self.seeing is not None:
            only = self.seeing if only is None else only & self.seeing
        for probe, rid in self.candidates.pairs(most_pairs, only):
            yield self.filtered(probe, rid)

    def filtered(self, probe: np.ndarray, rid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop what the probe's window does not cover (PanJoin III-G1, the filter)."""
        if self.covered is None and not self.in_batch:
            return probe, rid
        row = rid.astype(np.int64) + self.base
        place = self.carried[TIME][rid] if TIME in self.carried else row
        first, last = self.seen.places
        keep = (place >= first[probe]) & (place <= last[probe])
        if self.in_batch:
            keep &= row < self.probe.before[self.probe.order[probe]]
        return probe[keep], rid[keep]


@dataclass
class Found:
    """What a batch found.

    counted  for each stream, matches of its sorted probes that were only counted; None is no match
    totals   for each stream, its probes' measures over those
    hits     the others: those of a stream's probes come oldest subwindow first
    """

    totals: tuple[Totals, Totals]
    counted: list[np.ndarray | None] = field(default_factory=lambda: [None, None])
    hits: list[Hits] = field(default_factory=list)

    def count(self, side: Side, matches: np.ndarray) -> None:
        """Add matches of each sorted probe of a stream; the array is not the caller's any more."""
        before = self.counted[side]
        self.counted[side] = matches if before is None else before + matches
