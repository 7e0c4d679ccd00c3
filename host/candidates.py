"""What probes match among some stored tuples, before their windows are looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from host.records import Runs, sizes

__all__ = ["Candidates", "RunCandidates"]

#: Positions to a probe from which on sums are cheaper than looking at every one.
_MANY = 8


class Candidates(Protocol):
    """Stored tuples that the keys of each probe want, in one subwindow or in one batch.

    `only` is a mask of the probes that are asked for, None for all of them.
    """

    def sizes(self) -> np.ndarray:
        """int64: how many each probe has."""

    def pairs(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(probe, rid) of every one, in arrays of at most `most_pairs`."""

    def has_many(self, only: np.ndarray | None = None) -> bool:
        """Whether there are so many that single ones should not be looked at."""

    def sums(
        self, first: np.ndarray, end: np.ndarray, values: np.ndarray | None,
        only: np.ndarray | None = None,
    ) -> np.ndarray:
        """int64 for each probe: `values` (by rid; None is 1 each) summed over its candidates
        whose rid is in [first, end) of that probe; 0 for probes that are not asked for.
        """


@dataclass(frozen=True)
class RunCandidates:
    """Records of shape (probes, runs), and `rids`, the mirror: rid of each position."""

    records: np.ndarray
    rids: np.ndarray

    @cached_property
    def _all_runs(self) -> Runs:
        return Runs.of(self.records, len(self.rids))

    def _runs(self, only: np.ndarray | None) -> Runs:
        return self._all_runs if only is None else self._all_runs.only(only)

    def sizes(self) -> np.ndarray:
        """Differences of records."""
        return sizes(self.records, len(self.rids))

    def pairs(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for probe, position in self._runs(only).chunks(most_pairs):
            yield probe, self.rids[position]

    def has_many(self, only: np.ndarray | None = None) -> bool:
        positions = int(self._runs(only).size.sum())
        return positions > _MANY * (len(self.records) + len(self.rids) // _MANY)

    def sums(
        self, first: np.ndarray, end: np.ndarray, values: np.ndarray | None,
        only: np.ndarray | None = None,
    ) -> np.ndarray:
        from host.edges import sums_over_runs  # compiled, so only where it is worth it

        runs = self._runs(only)
        totals = np.zeros(len(self.records), np.int64)
        over = sums_over_runs(runs, self.rids, first[runs.probe], end[runs.probe], values)
        np.add.at(totals, runs.probe, over)
        return totals
