"""Counts and sums of a batch by one command to each worker, where its engine can.

The engine is told what each probe sees of every subwindow and of the batch itself, so that no
record and no pair leaves it.
"""

from collections.abc import Callable, Iterator, Sequence

from host.aggregates import Measure, Part
from host.backend import Backend, Probes, Question, Summary
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
        asked: list[list[Question]] = [[] for _ in self._workers]
        for side in Side:
            if not self._ask(prepared, probes[side], asked):
                return False
        answers = self._answers(asked)
        if any(summaries is None for summaries in answers):
            self._refused = _PATIENCE
            return False
        for questions, summaries in zip(asked, answers, strict=True):
            for question, summary in zip(questions, summaries or (), strict=True):
                self._add(question, summary, found)
        return True

    def _answers(self, asked: list[list[Question]]) -> list[list[Summary] | None]:
        """Of each worker; the last one's questions are put by this thread."""
        commands = [_command(questions) for questions in asked]
        *others, last = self._workers
        under_way = [
            worker.run(command) for worker, command in zip(others, commands, strict=False)
        ]
        mine = last.call(commands[-1])
        return [*(future.result() for future in under_way), mine]

    def _add(self, question: Question, summary: Summary, found: Found) -> None:
        counts, totals = summary
        side = question.probes.side
        found.count(side, counts)
        asked = dict(zip(question.measures, totals, strict=True))
        for measure in self._measures[side.other]:
            found.totals[side].add(measure, asked.get(measure, counts))

    def _ask(
        self, prepared: Prepared, probes: Probes, asked: list[list[Question]]
    ) -> bool:
        """Ask each worker that holds something the probes see; False where it cannot be said."""
        if not len(probes):
            return True
        chain = self._chains[probes.side.other]
        view = view_of(chain.window, prepared.sides[probes.side])
        stretches: list[list[Stretch]] = [[] for _ in self._workers]
        for worker, stretch in _stretches(chain, view):
            if stretch is None:
                return False
            stretches[worker].append(stretch)
        own = _own_batch(prepared.sides[chain.side], view)
        if own is None:
            return False
        stretches[chain.turn] += own
        for questions, mine in zip(asked, stretches, strict=True):
            if mine:
                questions.append(Question(probes, mine, self._asked(chain.side, mine)))
        return True

    def _asked(self, stored: Side, stretches: list[Stretch]) -> list[Measure]:
        """The measures that are no counts: where nothing is NULL, what is known are all."""
        return [
            measure
            for measure in self._measures[stored]
            if measure.part is not Part.KNOWN
            or any(measure.name in stretch.nulls for stretch in stretches)
        ]


def _command(questions: list[Question]) -> Callable[[Backend], list[Summary] | None]:
    return lambda backend: backend.summarise(questions) if questions else []


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
