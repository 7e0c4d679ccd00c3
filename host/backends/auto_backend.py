"""The engine of index='auto': each subwindow where the chooser puts it."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from host.aggregates import Measure
from host.backend import Backend, Probes, Question, Summary
from host.candidates import Candidates
from host.chooser import Choice, Chooser
from host.totals import Totals
from hw.spec.tuples import Side

__all__ = ["AutoBackend"]


class Hosted(Backend, Protocol):
    """An engine whose subwindows may be of several structures."""

    def create_as(
        self, side: Side, subwindow: int, capacity: int, structure: str, buffer: int | None = None
    ) -> None:
        """Begin a subwindow of that structure; `buffer` is BI-Sort's insertion buffer."""


class AutoBackend:
    """Subwindows in `engine`, which keeps sorted arrays, or in `hosted`, in host memory.

    A subwindow stays where it was created; `choices` has why. See host.backend.Backend.
    """

    def __init__(self, engine: Backend, hosted: Hosted, batch: int) -> None:
        self.name = engine.name
        self.chooser = Chooser(batch, engine.name)
        self.choices: dict[tuple[Side, int], Choice] = {}
        self._engine = engine
        self._hosted = hosted

    @property
    def beside_s(self) -> float:
        """As OpenCLBackend has it."""
        return getattr(self._engine, "beside_s", 0.0)

    def _of(self, side: Side, number: int) -> Backend:
        return self._hosted if self.choices[side, number].hosted else self._engine

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        choice = self.chooser.decide(side, capacity)
        self.choices[side, subwindow] = choice
        if choice.hosted:
            self._hosted.create_as(side, subwindow, capacity, choice.structure, choice.buffer)
        else:
            self._engine.create(side, subwindow, capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        self.insert_all([(side, subwindow, tuples)])

    def insert_all(self, batches: Sequence[tuple[Side, int, np.ndarray]]) -> None:
        for engine in (self._engine, self._hosted):
            engine.insert_all([one for one in batches if self._of(one[0], one[1]) is engine])
        for side, _, tuples in batches:
            self.chooser.see_batch(side, tuples["key"])

    def _each(
        self, stored: Side, subwindows: Sequence[int],
        ask: Callable[[Backend, list[int]], Sequence[Candidates]],
    ) -> list[Candidates]:  # fmt: skip
        """What the engines answer for their own subwindows, in the order asked."""
        answers: dict[int, Candidates] = {}
        for engine in (self._engine, self._hosted):
            mine = [number for number in subwindows if self._of(stored, number) is engine]
            if mine:
                answers |= dict(zip(mine, ask(engine, mine), strict=True))
        return [answers[number] for number in subwindows]

    def find(
        self, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        return self._each(
            stored, subwindows, lambda engine, mine: engine.find(stored, mine, probes)
        )

    def find_among(self, tuples: np.ndarray, probes: Probes) -> Candidates:
        return self._hosted.find_among(tuples, probes)

    def summarise(self, questions: Sequence[Question]) -> list[Summary] | None:
        """The engine's, where it has all of them."""
        asked = [(one.stored, stretch.number) for one in questions for stretch in one.stretches]
        if any(self.choices[stored, n].hosted for stored, n in asked if n is not None):
            return None
        return self._engine.summarise(questions)

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        total = np.zeros(len(probes), np.int64)
        for engine in (self._engine, self._hosted):
            mine = [number for number in subwindows if self._of(stored, number) is engine]
            if mine:
                total += engine.counts(stored, mine, probes)
        self.chooser.see_matches(len(probes), int(total.sum()))
        return total

    def aggregate(
        self, stored: Side, subwindows: Sequence[int], probes: Probes, measure: Measure,
        values: Sequence[np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        totals = Totals(len(probes), (measure,))
        for engine in (self._engine, self._hosted):
            mine = [
                (number, column)
                for number, column in zip(subwindows, values, strict=True)
                if self._of(stored, number) is engine
            ]
            if mine:
                numbers, columns = zip(*mine, strict=True)
                totals.add(measure, engine.aggregate(stored, numbers, probes, measure, columns))
        return totals.of(measure)

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        return self._of(side, subwindow).tuples(side, subwindow)

    def expire(self, side: Side, subwindow: int) -> None:
        self._of(side, subwindow).expire(side, subwindow)
        del self.choices[side, subwindow]

    def close(self) -> None:
        self._engine.close()
        self._hosted.close()
