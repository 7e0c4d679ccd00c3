"""What probes match among some stored tuples, before their windows are looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from host.records import Runs, sizes

__all__ = ["Candidates", "ListedCandidates", "RunCandidates"]

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


class _OverRuns:
    """What all candidates do that are runs of positions, `rids` the rid of each position."""

    rids: np.ndarray

    @property
    def all_runs(self) -> Runs:
        raise NotImplementedError

    @property
    def probes(self) -> int:
        raise NotImplementedError

    def _runs(self, only: np.ndarray | None) -> Runs:
        return self.all_runs if only is None else self.all_runs.only(only)

    def pairs(
        self, most_pairs: int, only: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for probe, position in self._runs(only).chunks(most_pairs):
            yield probe, self.rids[position]

    def has_many(self, only: np.ndarray | None = None) -> bool:
        positions = int(self._runs(only).size.sum())
        return positions > _MANY * (self.probes + len(self.rids) // _MANY)

    def sums(
        self, first: np.ndarray, end: np.ndarray, values: np.ndarray | None,
        only: np.ndarray | None = None,
    ) -> np.ndarray:
        from host.edges import sums_over_runs  # compiled, so only where it is worth it

        runs = self._runs(only)
        totals = np.zeros(self.probes, np.int64)
        over = sums_over_runs(runs, self.rids, first[runs.probe], end[runs.probe], values)
        np.add.at(totals, runs.probe, over)
        return totals


@dataclass(frozen=True)
class RunCandidates(_OverRuns):
    """Records of shape (probes, runs), and `rids`, the mirror: rid of each position.

    `main` is how many of these are of the first sorted array, whose tuples arrived before those of
    the second; None where there is but one.
    """

    records: np.ndarray
    rids: np.ndarray
    main: int | None = None

    @cached_property
    def all_runs(self) -> Runs:
        return Runs.of(self.records, len(self.rids))

    @property
    def probes(self) -> int:
        return len(self.records)

    def sizes(self) -> np.ndarray:
        """Differences of records."""
        return sizes(self.records, len(self.rids))


@dataclass(frozen=True)
class ListedCandidates(_OverRuns):
    """Runs as a structure lists them, over slots of its own; `rids` is the rid of each slot.

    `lists` has the runs of each interval, `bands` of which make a probe.
    """

    lists: Runs
    rids: np.ndarray
    intervals: int
    bands: int = 1

    @cached_property
    def all_runs(self) -> Runs:
        lists, bands = self.lists, self.bands
        return lists if bands == 1 else Runs(lists.probe // bands, lists.start, lists.size)

    @property
    def probes(self) -> int:
        return self.intervals // self.bands

    def sizes(self) -> np.ndarray:
        before = np.concatenate([[0], np.cumsum(self.all_runs.size)])
        ends = np.searchsorted(self.all_runs.probe, np.arange(self.probes + 1))
        totals: np.ndarray = np.diff(before[ends])
        return totals
