"""What a batch of probes found in one subwindow: records, and pairs out of them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from host.chain import TIME
from host.preprocess import SideBatch
from host.records import Runs, sizes
from host.totals import Totals

__all__ = ["Found", "Hits"]

#: Positions to a probe from which on sums are cheaper than looking at every one.
_MANY = 8
_RIDS = 1 << 32


@dataclass(frozen=True)
class Hits:
    """Records of the sorted probes of `probe` in one subwindow of the other stream.

    records      shape (probes, runs)
    rids         the mirror: rid of each position
    base         number in the stream of rid 0
    carried      arrays by rid: event times (TIME) where the window is of time, measures
    first, last  the closed interval of places that each probe sees
    covered      probes whose window covers the whole subwindow, so that every record holds;
                 None if it is so for all
    unseen       probes that see nothing of the subwindow; None if there are none
    in_batch     the stored tuples are of the same batch: only those that arrived before count
    """

    probe: SideBatch
    records: np.ndarray
    rids: np.ndarray
    base: int
    carried: dict[str, np.ndarray]
    first: np.ndarray
    last: np.ndarray
    covered: np.ndarray | None
    unseen: np.ndarray | None
    in_batch: bool = False

    @cached_property
    def runs(self) -> Runs:
        runs = Runs.of(self.records, len(self.rids))
        return runs if self.unseen is None else runs.only(~self.unseen)

    def sizes(self) -> np.ndarray:
        """Candidates of each probe, before the exact filter: differences of records."""
        found = sizes(self.records, len(self.rids))
        if self.unseen is not None:
            found[self.unseen] = 0
        return found

    def counts(self, most_pairs: int) -> np.ndarray:
        """Matches of each probe, exact; only partly covered subwindows look at single tuples."""
        if self.covered is None and not self.in_batch:
            return self.sizes()
        if self.covered is None:
            counts, partial = np.zeros(len(self.records), np.int64), self.runs
        else:
            counts, partial = self.sizes(), self.runs.only(~self.covered)
            counts[~self.covered] = 0
        edges = self.edges if self.has_many(partial) else None
        if edges is not None:
            np.add.at(counts, partial.probe, self._sums(partial, edges, None))
            return counts
        for probe, position in partial.chunks(most_pairs):
            kept, _ = self.filtered(probe, position)
            counts += np.bincount(kept, minlength=len(counts))
        return counts

    def sums(self, values: np.ndarray) -> np.ndarray | None:
        """Sums of int64 `values` (by rid) over each probe's matches; None if pairs are better."""
        edges = self.edges if self.has_many(self.runs) else None
        if edges is None:
            return None
        totals = np.zeros(len(self.records), np.int64)
        np.add.at(totals, self.runs.probe, self._sums(self.runs, edges, values))
        return totals

    def has_many(self, runs: Runs) -> bool:
        """Whether these runs have so many positions that single ones should not be looked at."""
        return int(runs.size.sum()) > _MANY * (len(self.records) + len(self.rids) // _MANY)

    @cached_property
    def edges(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The rids [first, end) that each probe sees, if its places follow the arrivals."""
        if TIME in self.carried:
            times = self.carried[TIME]
            if (times[1:] < times[:-1]).any():
                return None
            first = np.searchsorted(times, self.first, "left")
            end = np.searchsorted(times, self.last, "right")
        else:
            # Places may be as far away as 64 bits reach.
            first = np.maximum(self.first, self.base) - self.base
            end = np.minimum(self.last, self.base + _RIDS) - self.base + 1
        if self.in_batch:
            end = np.minimum(end, self.probe.before[self.probe.order] - self.base)
        return first, np.maximum(first, end)

    def _sums(
        self, runs: Runs, edges: tuple[np.ndarray, np.ndarray], values: np.ndarray | None
    ) -> np.ndarray:
        from host.edges import sums_over_runs  # compiled, so only where it is worth it

        first, end = edges
        return sums_over_runs(runs, self.rids, first[runs.probe], end[runs.probe], values)

    def pairs(self, runs: Runs, most_pairs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, stored row number) of the matches in `runs`, exact, in bounded chunks."""
        for probe, position in runs.chunks(most_pairs):
            yield self.filtered(probe, position)

    def filtered(self, probe: np.ndarray, position: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Drop what the probe's window does not cover (PanJoin III-G1, the filter)."""
        rid = self.rids[position]
        row = rid.astype(np.int64) + self.base
        if self.covered is None and not self.in_batch:
            return probe, row
        place = self.carried[TIME][rid] if TIME in self.carried else row
        keep = (place >= self.first[probe]) & (place <= self.last[probe])
        if self.in_batch:
            keep &= row < self.probe.before[self.probe.order[probe]]
        return probe[keep], row[keep]


@dataclass
class Found:
    """What a batch found.

    counted  for each stream, matches of its sorted probes that the engines only counted
    totals   for each stream, its probes' measures over those
    hits     the others: those of a stream's probes come oldest subwindow first
    """

    counted: tuple[np.ndarray, np.ndarray]
    totals: tuple[Totals, Totals]
    hits: list[Hits] = field(default_factory=list)
