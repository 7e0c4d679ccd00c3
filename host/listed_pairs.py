"""ListedPairs: the pairs of hits with few of them, listed once for all columns.

Where most runs are empty, walking along them for each column costs more than the pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.hits import Hits
from host.rowstore import Words
from host.run_columns import list_pairs, write_picked, write_taken
from hw.spec.tuples import Side

__all__ = ["FEW", "ListedPairs"]

#: To so many candidates a run, on average, lists are better than runs.
FEW = 4


@dataclass(frozen=True)
class ListedPairs:
    """One sequence of pairs: uint32 `probes`, by their place among the sorted ones, and `rids`."""

    hits: Hits
    probes: np.ndarray
    rids: np.ndarray

    @staticmethod
    def of(
        hits: Hits, records: np.ndarray, runs: int, rids: np.ndarray,
        sight: tuple[np.ndarray, np.ndarray], partly: bool, candidates: int,
    ) -> "ListedPairs":
        """For the arguments see Expansion; `candidates` is the positions of all records."""
        return ListedPairs(hits, *list_pairs(records, runs, rids, *sight, partly, candidates))

    @property
    def pairs(self) -> int:
        return len(self.rids)

    def write(
        self, side: Side, words: Words, own: np.ndarray, begin: int, size: int, out: np.ndarray
    ) -> None:
        """As Expansion.write."""
        stretch = slice(begin, begin + size)
        if side is self.hits.probe.side:
            write_picked(own, self.probes[stretch], out)
        else:
            write_taken(words.ring, words.place(self.hits.base), self.rids[stretch], out)

    def arrange(self, columns: Sequence[tuple[Side, Words]]) -> None:
        """Lists gain nothing from columns in the order of positions."""
