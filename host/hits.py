"""What a batch of probes found in one subwindow: records, and pairs out of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from host.preprocess import SideBatch
from hw.spec.tuples import NOT, RECORD

__all__ = ["Hits", "Runs"]


@dataclass(frozen=True)
class Runs:
    """Half-open runs of positions, several of them to a probe, as flat arrays.

    probe    which probe (index into the sorted batch) a run belongs to, ascending
    start    first position
    size     positions
    """

    probe: np.ndarray
    start: np.ndarray
    size: np.ndarray

    @staticmethod
    def of(records: np.ndarray, stored: int) -> "Runs":
        """The nonempty runs of records of shape (probes, runs) in a main array of `stored`."""
        if _is_not(records):
            records = _outside(records, stored)
        start = records["start"].astype(np.int64)
        size = records["end"].astype(np.int64) - start
        probe, run = np.nonzero(size)
        return Runs(probe, start[probe, run], size[probe, run])

    def only(self, wanted: np.ndarray) -> "Runs":
        """The runs of the probes in that mask."""
        chosen = wanted[self.probe]
        return Runs(self.probe[chosen], self.start[chosen], self.size[chosen])

    def chunks(self, most_pairs: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, position) of every pair, in order, in arrays of bounded length."""
        ends = np.cumsum(self.size)
        total = int(ends[-1]) if len(ends) else 0
        for begin in range(0, total, most_pairs):
            stop = min(begin + most_pairs, total)
            first = int(np.searchsorted(ends, begin, "right"))
            last = int(np.searchsorted(ends, stop, "left")) + 1
            # A run may begin in one chunk and end in another: clip it to this one.
            run_ends = np.minimum(ends[first:last], stop)
            run_begins = np.maximum(ends[first:last] - self.size[first:last], begin)
            sizes = run_ends - run_begins
            shift = self.start[first:last] - (ends[first:last] - self.size[first:last])
            yield (
                np.repeat(self.probe[first:last], sizes),
                np.arange(begin, stop) + np.repeat(shift, sizes),
            )


def _is_not(records: np.ndarray) -> bool:
    """Whether these are `not` records; all of a probe command are, or none."""
    return bool(records.size) and bool(records["end"].flat[0] & NOT)


def _outside(records: np.ndarray, stored: int) -> np.ndarray:
    """`not` records as the two runs around them."""
    result = np.zeros((len(records), 2), RECORD)
    result["end"][:, 0] = records["start"][:, 0]
    result["start"][:, 1] = records["end"][:, 0] & ~NOT
    result["end"][:, 1] = stored
    return result


@dataclass(frozen=True)
class Hits:
    """Records of the sorted probes of `probe` in one subwindow of the other stream.

    records      shape (probes, runs)
    rids         the mirror: rid of each position
    base         number in the stream of rid 0
    times        event time by rid, where the window is of time
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
    times: np.ndarray | None
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
        ends = self.records["end"] & ~NOT
        named = (ends - self.records["start"]).sum(axis=1, dtype=np.int64)
        sizes = len(self.rids) - named if _is_not(self.records) else named
        if self.unseen is not None:
            sizes[self.unseen] = 0
        return sizes

    def counts(self, most_pairs: int) -> np.ndarray:
        """Matches of each probe, exact; only partly covered subwindows look at single tuples."""
        if self.covered is None and not self.in_batch:
            return self.sizes()
        if self.covered is None:
            counts, partial = np.zeros(len(self.records), np.int64), self.runs
        else:
            counts, partial = self.sizes(), self.runs.only(~self.covered)
            counts[~self.covered] = 0
        for probe, position in partial.chunks(most_pairs):
            kept, _ = self.filtered(probe, position)
            counts += np.bincount(kept, minlength=len(counts))
        return counts

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
        place = row if self.times is None else self.times[rid]
        keep = (place >= self.first[probe]) & (place <= self.last[probe])
        if self.in_batch:
            keep &= row < self.probe.before[self.probe.order[probe]]
        return probe[keep], row[keep]
