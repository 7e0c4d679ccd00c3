"""Counts and sums of a batch by one command to each worker, where its engine can.

The engine is told what each probe sees of every subwindow and of the batch itself, so that no
record and no pair leaves it.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future

from host.aggregates import Measure, Part
from host.backend import Backend, Probes, Summary
from host.chain import Chain
from host.hits import Found
from host.preprocess import Prepared, SideBatch
from host.stretches import Stretch
from host.views import View, view_of
from host.worker import Worker
from hw.spec.tuples import Side

__all__ = ["Summaries"]

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

    def find(self, prepared: Prepared, probes: Sequence[Probes], found: Found) -> bool:
        """Add what the batch finds to `found`; False, and nothing added, where it cannot be."""
        if self._refused:
            self._refused -= 1
            return False
        asked = [self._ask(prepared, probes[side]) for side in Side]
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

    def _ask(self, prepared: Prepared, probes: Probes) -> list[Future[Summary | None]] | None:
        """One command to each worker that holds something the probes see."""
        if not len(probes):
            return []
        chain = self._chains[probes.side.other]
        view = view_of(chain.window, prepared.sides[probes.side])
        stretches: list[list[Stretch]] = [[] for _ in self._workers]
        for worker, stretch in _stretches(chain, view):
            if stretch is None:
                return None
            stretches[worker].append(stretch)
        own = _own_batch(prepared.sides[chain.side], view)
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


def _stretches(chain: Chain, view: View) -> Iterator[tuple[int, Stretch | None]]:
    """The worker and the stretch of every subwindow that some probe sees.

    None where places do not follow arrivals and some probe sees a part.
    """
    some, all_see = view.some, view.all_see
    for subwindow in chain:
        if not subwindow.stored or subwindow.largest < some[0] or subwindow.smallest > some[1]:
            continue
        covered = all_see[0] <= subwindow.smallest and subwindow.largest <= all_see[1]
        sight = None if covered else view.of(subwindow)
        if sight is None and not covered:
            yield subwindow.worker, None
            return
        carried = {name: array.values for name, array in subwindow.carried.items()}
        yield subwindow.worker, Stretch(subwindow.number, None, sight, carried, subwindow.nulls)


def _own_batch(stored: SideBatch, view: View) -> list[Stretch] | None:
    """The tuples of the other stream in the batch: those that arrived before are seen."""
    if not len(stored.order):
        return []
    sight = view.of_batch(stored)
    if sight is None:
        return None
    tuples = stored.tuples(0, len(stored), stored.first)
    nulls = {name for name, values in stored.carried.items() if not values.all()}
    return [Stretch(None, tuples, sight, stored.carried, nulls)]
