"""Records `<start, end>` of one subwindow: how many positions they name, and which."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hw.spec.tuples import NOT, RECORD

__all__ = ["Runs", "plain", "sizes"]


def sizes(records: np.ndarray, stored: int) -> np.ndarray:
    """Matches of each probe: differences of its records, shape (probes, runs)."""
    ends = records["end"] & ~NOT
    named = (ends - records["start"]).sum(axis=1, dtype=np.int64)
    return stored - named if _is_not(records) else named


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
        records = plain(records, stored)
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
            clipped = run_ends - run_begins
            shift = self.start[first:last] - (ends[first:last] - self.size[first:last])
            yield (
                np.repeat(self.probe[first:last], clipped),
                np.arange(begin, stop) + np.repeat(shift, clipped),
            )


def plain(records: np.ndarray, stored: int) -> np.ndarray:
    """The same without NOT: records of the positions that match."""
    return _outside(records, stored) if _is_not(records) else records


def _is_not(records: np.ndarray) -> bool:
    """Whether these are `not` records; all of a probe command are, or none."""
    return bool(records.size) and bool(records["end"].flat[0] & NOT)


def _outside(records: np.ndarray, stored: int) -> np.ndarray:
    """`not` records as plain ones: what lies before, between and behind them.

    An engine that keeps a subwindow in several sorted arrays names a run in each.
    """
    order = np.argsort(records["start"], axis=1, kind="stable")
    ordered = np.take_along_axis(records, order, axis=1)
    probes, runs = records.shape
    result = np.zeros((probes, runs + 1), RECORD)
    result["end"][:, :runs] = ordered["start"]
    result["start"][:, 1:] = ordered["end"] & ~NOT
    result["end"][:, runs] = stored
    return result
