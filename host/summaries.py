"""Counts and sums of a batch by one command to each worker, where its engine can.

The engine is told what each probe sees of every subwindow and of the batch itself, so that no
record and no pair leaves it.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np

from host.aggregates import Measure, Part
from host.backend import Backend, Probes, Summary
from host.chain import TIME, Chain, Subwindow
from host.hits import Found
from host.preprocess import Prepared, SideBatch
from host.stretches import Stretch, edges_of, sight_of
from host.worker import Worker
from hw.spec.tuples import Side

__all__ = ["Seen", "Summaries"]

#: The places that each sorted probe sees, first and last.
Seen = tuple[np.ndarray, np.ndarray]

#: Batches for which an engine that could not is not asked again.
_PATIENCE = 64


class Summaries:
    """Asks workers for summaries; engines that have none are left alone for a while."""

    def __init__(
        self,
        chains: Sequence[Chain],
        workers: Sequence[Worker],
        measures: tuple[Sequence[Measure], Sequence[Measure]],
    ) -> None:
        self._chains, self._workers, self._measures = chains, workers, measures
        self._refused = 0

    def find(
        self, prepared: Prepared, probes: Sequence[Probes], seen: Sequence[Seen], found: Found
    ) -> bool:
        """Add what the batch finds to `found`; False, and nothing added, where it cannot be."""
        if self._refused:
            self._refused -= 1
            return False
        asked = [self._ask(prepared, probes[side], seen[side]) for side in Side]
        if any(futures is None for futures in asked):
            return False
        answers = [[future.result() for future in futures or ()] for futures in asked]
        if any(summary is None for summaries in answers for summary in summaries):
            self._refused = _PATIENCE
            return False
        for side, summaries in zip(Side, answers, strict=True):
            for summary in summaries:
                self._add(side, summary, found)
        return True

    def _add(self, side: Side, summary: Summary | None, found: Found) -> None:
        assert summary is not None
        counts, totals = summary
        found.counted[side][:] += counts
        for measure, total in zip(self._measures[side.other], totals, strict=True):
            found.totals[side].add(measure, total)

    def _ask(
        self, prepared: Prepared, probes: Probes, seen: Seen
    ) -> list[Future[Summary | None]] | None:
        """One command to each worker that holds something the probes see."""
        if not len(probes):
            return []
        chain, span = self._chains[probes.side.other], _Span.of(seen)
        stretches: list[list[Stretch]] = [[] for _ in self._workers]
        for subwindow in chain:
            if not subwindow.stored or not span.touches(subwindow):
                continue
            stretch = _stretch_of(subwindow, seen, span)
            if stretch is None:
                return None
            stretches[subwindow.worker].append(stretch)
        own = _own_batch(prepared.sides[probes.side], prepared.sides[chain.side], seen)
        if own is None:
            return None
        stretches[chain.turn] += own
        return [
            worker.run(self._command(chain.side, mine, probes))
            for worker, mine in zip(self._workers, stretches, strict=True)
            if mine
        ]

    def _command(
        self, stored: Side, stretches: list[Stretch], probes: Probes
    ) -> Callable[[Backend], Summary | None]:
        measures = self._measures[stored]
        # Where nothing is NULL, what is known are all matches.
        asked = [
            measure
            for measure in measures
            if measure.part is not Part.KNOWN
            or any(measure.name in stretch.nulls for stretch in stretches)
        ]

        def command(backend: Backend) -> Summary | None:
            summary = backend.summarise(stored, stretches, probes, asked)
            if summary is None:
                return None
            counts, found = summary
            totals = iter(found)
            return counts, [next(totals) if one in asked else counts for one in measures]

        return command


@dataclass(frozen=True)
class _Span:
    """Places that some probe sees, and those that all see; both ends belong to it."""

    some: tuple[int, int]
    all_see: tuple[int, int]

    @staticmethod
    def of(seen: Seen) -> "_Span":
        first, last = seen
        some = int(first.min()), int(last.max())
        return _Span(some, (int(first.max()), int(last.min())))

    def touches(self, subwindow: Subwindow) -> bool:
        return subwindow.largest >= self.some[0] and subwindow.smallest <= self.some[1]

    def covers(self, subwindow: Subwindow) -> bool:
        return self.all_see[0] <= subwindow.smallest and subwindow.largest <= self.all_see[1]


def _stretch_of(subwindow: Subwindow, seen: Seen, span: _Span) -> Stretch | None:
    """None where places do not follow arrivals and some probe sees a part."""
    carried = {name: array.values for name, array in subwindow.carried.items()}
    if span.covers(subwindow):
        return Stretch(subwindow.number, None, None, carried, subwindow.nulls)
    edges = edges_of(*seen, subwindow.base, subwindow.times)
    if edges is None:
        return None
    return Stretch(subwindow.number, None, sight_of(*edges), carried, subwindow.nulls)


def _own_batch(probe: SideBatch, stored: SideBatch, seen: Seen) -> list[Stretch] | None:
    """The tuples of the other stream in the batch: those that arrived before are seen."""
    if not len(stored.order):
        return []
    edges = edges_of(*seen, stored.first, stored.carried.get(TIME))
    if edges is None:
        return None
    first, end = edges
    end = np.minimum(end, probe.before[probe.order] - stored.first)
    tuples = stored.tuples(0, len(stored), stored.first)
    nulls = {name for name, values in stored.carried.items() if not values.all()}
    return [Stretch(None, tuples, sight_of(first, end), stored.carried, nulls)]
