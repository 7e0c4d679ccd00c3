"""Backend: the interface that every engine keeps, and its contract."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from host.aggregates import Measure
from host.candidates import Candidates, RunCandidates
from host.errors import WindowFull
from host.records import Runs, sizes
from host.stretches import Stretch
from host.totals import Totals, over_runs
from host.two_keys import Rectangles
from hw.spec.predicates import Predicate
from hw.spec.tuples import Side

__all__ = [
    "PASSING", "Backend", "PlainBackend", "Probes", "Question", "RecordBackend", "RecordFinder",
    "Summary", "check_room",
]


@dataclass(frozen=True)
class Probes:
    """A sorted batch of probe tuples of stream `side`.

    Either `keys` (ascending) with a `predicate` that the engine's boundary generator turns into
    intervals, or, where a bound is not a constant distance away (floats, scaled decimals), the
    explicit `wanted` intervals of shape (probes, bands), disjoint in each row. Where two
    predicates are searched at once, `rectangles` are what both want.
    """

    side: Side
    keys: np.ndarray
    predicate: Predicate | None = None
    wanted: np.ndarray | None = None
    rectangles: Rectangles | None = None

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def negated(self) -> bool:
        """Whether records carry NOT: what they do not name is what matches."""
        return self.wanted is None and self.predicate is not None and self.predicate.negated

    @cached_property
    def intervals(self) -> np.ndarray:
        """Closed intervals of stored keys, shape (probes, bands)."""
        if self.wanted is not None:
            return self.wanted
        assert self.predicate is not None
        return self.predicate.intervals(self.side, self.keys)


#: int64 matches of each probe, and the array of each measure as Totals has it.
Summary = tuple[np.ndarray, list[np.ndarray]]


@dataclass(frozen=True)
class Question:
    """Matches that each probe sees in stretches of the other stream, and measures over them."""

    probes: Probes
    stretches: Sequence[Stretch]
    measures: Sequence[Measure] = ()

    @property
    def stored(self) -> Side:
        return self.probes.side.other


class Backend(Protocol):
    """One engine with its memory: any number of subwindows of both streams.

    The manager calls it from one thread at a time, and only in ways that the commands of
    hw.spec.commands can say. A subwindow is named by its stream and a number that is never used
    twice. Every call is synchronous.
    """

    name: str

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        """Begin an empty subwindow that takes up to `capacity` tuples."""

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        """Merge tuples (tuple_dtype, ascending by key, then by rid) into the main array.

        Equal keys keep their order of arrival. Raises WindowFull, and changes nothing, where
        they do not fit. Only the newest subwindow of a stream is ever asked to take tuples.
        """

    def insert_all(self, batches: Sequence[tuple[Side, int, np.ndarray]]) -> None:
        """Insert into several subwindows: (side, subwindow, tuples), each another subwindow."""

    def find(
        self, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        """What each probe matches in each subwindow, valid until the next insert."""

    def find_among(self, tuples: np.ndarray, probes: Probes) -> Candidates:
        """The same of tuples that are not stored: those of a batch meet each other so."""

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        """int64: the matches of each probe in all those subwindows together."""

    def aggregate(
        self,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        measure: Measure,
        values: Sequence[np.ndarray],
    ) -> np.ndarray:
        """The measure over the matches of each probe in all those subwindows together.

        `values` has the measure (int64 or float64) of each subwindow by rid; where nothing
        matches, the entry is what Totals begins with.
        """

    def summarise(self, questions: Sequence[Question]) -> list[Summary] | None:
        """Answers to questions of different streams; at most one stretch of each is no subwindow.

        None where the engine cannot tell what is seen, or where it would have to look at too
        many tuples: candidates are the way then.
        """

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        """A copy of the main array (tuple_dtype) in order of position, for snapshots."""

    def expire(self, side: Side, subwindow: int) -> None:
        """Forget the subwindow and free its memory."""

    def close(self) -> None:
        """Release the device; nothing else may be called after it."""


class RecordBackend(Backend, Protocol):
    """An engine that answers with records: it keeps its subwindows sorted by key."""

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        """RECORD of shape (subwindows, probes, runs): which positions each probe matches.

        A position counts in the order that `rids` gives; `runs` may exceed the bands where an
        engine keeps a subwindow in more than one sorted array. Empty runs have start == end.
        The records are the caller's: no later call touches them.
        """

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        """RECORD of shape (probes, runs): positions in `tuples`, sorted as for an insert."""

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        """The mirror: rid (uint32) of every position, read only.

        Valid until the next insert into that subwindow, or until it expires.
        """


#: Name of the passing subwindow that a batch's own tuples are matched in.
PASSING = 0xFFFF_FFFE


def check_room(more: int, held: int, capacity: int) -> None:
    """Raise WindowFull where so many more tuples do not fit into a subwindow."""
    if held + more > capacity:
        raise WindowFull(
            f"{more} tuples do not fit in a subwindow of {capacity} that holds {held}"
        )


class RecordFinder:
    """`find` and `find_among` of an engine that answers with records, and knows no windows."""

    def insert_all(
        self: Backend, batches: Sequence[tuple[Side, int, np.ndarray]]
    ) -> None:
        for batch in batches:
            self.insert(*batch)

    def summarise(self, questions: Sequence[Question]) -> list[Summary] | None:
        return None

    def find(
        self: RecordBackend, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        records = self.probe(stored, subwindows, probes)
        return [
            RunCandidates(found, self.rids(stored, number))
            for number, found in zip(subwindows, records, strict=True)
        ]

    def find_among(self: RecordBackend, tuples: np.ndarray, probes: Probes) -> Candidates:
        return RunCandidates(self.match(tuples, probes), tuples["rid"])


class PlainBackend(RecordFinder):
    """`counts`, `match` and `aggregate` by the other calls, where there is no better way."""

    def counts(
        self: RecordBackend, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> np.ndarray:
        total = np.zeros(len(probes), np.int64)
        for number, records in zip(
            subwindows, self.probe(stored, subwindows, probes), strict=True
        ):
            total += sizes(records, len(self.rids(stored, number)))
        return total

    def match(self: RecordBackend, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        stored = probes.side.other
        self.create(stored, PASSING, len(tuples))
        self.insert(stored, PASSING, tuples)
        records = self.probe(stored, [PASSING], probes)[0]
        self.expire(stored, PASSING)
        return records

    def aggregate(
        self: RecordBackend,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        measure: Measure,
        values: Sequence[np.ndarray],
    ) -> np.ndarray:
        totals = Totals(len(probes), (measure,))
        found = self.probe(stored, subwindows, probes)
        for number, records, column in zip(subwindows, found, values, strict=True):
            rids = self.rids(stored, number)
            runs = Runs.of(records, len(rids))
            if len(runs.probe):
                over = over_runs(measure, column[rids], runs.start, runs.size)
                totals.add_pairs(measure, runs.probe, over)
        return totals.of(measure)
