"""The engine on any OpenCL device: PoCL on the CPU out of the box, a GPU where there is one."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from host.aggregates import Measure
from host.backend import Probes, Question, RecordFinder, Summary, check_room
from host.backends.device_errors import device_errors
from host.candidates import Candidates, RunCandidates
from host.totals import Totals
from hw.opencl.aggregation import AggregationEngine, Column
from hw.opencl.collection import CollectionEngine, Matches, Order
from hw.opencl.devices import choose
from hw.opencl.distribution import DistributionEngine
from hw.opencl.frontier import Watched
from hw.opencl.insertion import InsertionEngine
from hw.opencl.memory import Pool
from hw.opencl.paper_insertion import PaperInsertionEngine
from hw.opencl.passing import PassingBatch
from hw.opencl.probing import Batch, Counting, ProbingEngine
from hw.opencl.program import open_program
from hw.opencl.subwindow import Subwindow
from hw.spec.params import JoinParams
from hw.spec.tuples import Side, key_dtype, tuple_dtype

__all__ = ["OpenCLBackend"]

#: Makes a subwindow, for a while, of tuples that are not stored.
_PassingBy = Callable[[Side, np.ndarray], Subwindow]


class OpenCLBackend(RecordFinder):
    """Backend over hw.opencl; see host.backend.Backend for what every engine promises.

    params.mode "tiered" keeps a sorted insertion tier before each main array; "paper" is PanJoin's
    own BI-Sort with an unsorted insertion buffer, the baseline. A full subwindow is one sorted
    array, any other may be two: records then have twice as many runs. With a negated predicate
    all runs of a probe carry NOT, and what matches lies outside of all of them.
    """

    name = "opencl"

    def __init__(self, params: JoinParams, device: str | None = None, **engine: Any) -> None:
        self.params = params
        self._windows: tuple[dict[int, Subwindow], dict[int, Subwindow]] = ({}, {})
        with device_errors():
            self._open(device, engine)

    def _open(self, device: str | None, engine: dict[str, Any]) -> None:
        self.device = choose(device)
        program = open_program(self.device, self.params.key_bits)
        self._queue = program.open_queue()
        self._pool = Pool(self.device, program.context, self._queue, engine.pop("shared", None))
        insertion = InsertionEngine if self.params.mode == "tiered" else PaperInsertionEngine
        self._insertion = insertion(program, self._pool, self.params, **engine)
        self._passing = [PassingBatch(self._pool, self.params.key_bits) for _ in Side]
        self._probing = ProbingEngine(program, self._pool, self.params.key_bits)
        self._distribution = DistributionEngine(program, self._pool, self.params.key_bits)
        self._collection = CollectionEngine(program, self._pool, self._probing)
        self._aggregation = AggregationEngine(program, self._pool, self._probing)

    @property
    def queues(self) -> bool:
        """Whether an insertion goes on when its call has returned: errors are told by the next."""
        return self._insertion.QUEUES

    @property
    def beside_s(self) -> float:
        """Seconds that such insertions took beside the caller."""
        return self._pool.beside_s

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self._windows[side][subwindow] = Subwindow(self._pool, capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        self.insert_all([(side, subwindow, tuples)])

    def insert_all(self, batches: Sequence[tuple[Side, int, np.ndarray]]) -> None:
        into = [(self._windows[side][number], tuples) for side, number, tuples in batches]
        for window, tuples in into:
            check_room(len(tuples), window.count, window.capacity)
        with device_errors():
            self._insertion.insert(into)

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        with device_errors():
            return self._probing.probe(self._in_order(stored, subwindows), _batch(probes))

    def find(
        self, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        """Records of a subwindow that is one sorted array come without the runs of a tier."""
        records = self.probe(stored, subwindows, probes)
        tiers = max(1, records.shape[2] // self._probing.bands)
        found = []
        for number, of_window in zip(subwindows, records, strict=True):
            window = self._windows[stored][number]
            runs = of_window if window.tier_count > 0 else of_window[:, ::tiers]
            found.append(RunCandidates(runs, self.rids(stored, number), window.main_count))
        return found

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        with device_errors(), self._passing_by() as passing:
            stored = passing(probes.side.other, tuples)
            records: np.ndarray = self._probing.probe([stored], _batch(probes))[0]
        return records

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        window = self._windows[side][subwindow]
        self._pool.finish()
        rids = self._pool.view(window.rids, np.uint32, window.count)
        rids.flags.writeable = False
        return rids

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        window = self._windows[side][subwindow]
        self._pool.finish()
        result = np.empty(window.count, tuple_dtype(self.params.key_bits))
        dtype, first = key_dtype(self.params.key_bits), 0
        for array in (window.main, window.tier):
            if array:
                last = first + array.count
                result["key"][first:last] = self._pool.view(array.keys, dtype, array.count)
                first = last
        result["rid"] = self.rids(side, subwindow)
        return result

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        """Matches of each probe in all those subwindows together, int64; no record is made."""
        with device_errors():
            counts = self._probing.count(
                [Counting(self._listed(stored, subwindows), _batch(probes))]
            )
        assert counts is not None  # nothing had to be looked at
        return counts[0]

    def pairs(
        self,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        chunk: int = 1 << 20,
        order: Order = "none",
        arrival: np.ndarray | None = None,
    ) -> Iterator[Matches]:
        """Probe, and yield the matches in pieces of at most `chunk`, expanded on the device.

        See hw.opencl.collection: Matches has (probe, rid, subwindow), and "outer" and "strict"
        follow `arrival`, places in the batch in the order that is wanted. Nothing else may be
        asked of the engine before the last piece was taken, or the rest was given up.
        """
        with device_errors():
            windows = self._in_order(stored, subwindows)
            yield from self._collection.collect(windows, _batch(probes), chunk, order, arrival)

    def aggregates(
        self,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        name: str,
        values: Sequence[np.ndarray],
        extremes: bool = True,
    ) -> np.ndarray:
        """count, sum, least and largest of a stored column over the matches of each probe.

        `values` has the column of each subwindow by rid, int64 or float64; values of rids that
        were passed before under this `name` are taken as known. Returns aggregate_dtype, see
        hw.opencl.aggregation. Without `extremes`, least and largest are left out.
        """
        with device_errors():
            windows = self._in_order(stored, subwindows)
            column = Column(name, values, extremes)
            found = self._aggregation.aggregate(windows, _batch(probes), [column])
        assert found is not None  # nothing had to be looked at
        return found[0]

    def aggregate(
        self,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        measure: Measure,
        values: Sequence[np.ndarray],
    ) -> np.ndarray:
        extremes = not measure.part.is_sum
        found = self.aggregates(stored, subwindows, probes, measure.name, values, extremes)
        return _measured(measure, found)

    def summarise(self, questions: Sequence[Question]) -> list[Summary] | None:
        if any(one.probes.negated for one in questions):
            return None  # what is seen of a subwindow is not known, only what of a run
        with device_errors():
            self._watch(questions)
        if any(one.measures for one in questions):
            found = [self._aggregated(question) for question in questions]
            answers = [one for one in found if one is not None]
            return answers if len(answers) == len(found) else None
        with device_errors(), self._passing_by() as passing:
            counts = self._probing.count([
                Counting(
                    self._windows_of(one, passing), _batch(one.probes),
                    [stretch.sight for stretch in one.stretches],
                )
                for one in questions
            ])
        return None if counts is None else [(one, []) for one in counts]

    def _watch(self, questions: Sequence[Question]) -> None:
        """Have frontiers made of what is stored: under way while the batch is put in its place."""
        watched = []
        for one in questions:
            sights = {
                number: stretch.sight
                for stretch in one.stretches
                if (number := stretch.number) is not None
            }
            windows = self._listed(one.stored, list(sights))
            if one.measures:
                self._order(windows)
            watched.append(
                Watched(one.probes.side, len(one.probes), windows, list(sights.values()))
            )
        self._probing.frontiers.make(watched)

    def _aggregated(self, question: Question) -> Summary | None:
        stretches, measures = question.stretches, question.measures
        columns = [
            Column(
                measure.name, [stretch.carried[measure.name] for stretch in stretches],
                extremes=not measure.part.is_sum,
            )
            for measure in measures
        ]
        with device_errors(), self._passing_by() as passing:
            windows = self._windows_of(question, passing)
            sights = [stretch.sight for stretch in stretches]
            if not columns:
                counts = self._probing.count([Counting(windows, _batch(question.probes), sights)])
                return None if counts is None else (counts[0], [])
            self._order(windows)
            found = self._aggregation.aggregate(windows, _batch(question.probes), columns, sights)
        if found is None:
            return None
        totals = [_measured(*each) for each in zip(measures, found, strict=True)]
        return found[0]["count"].copy(), totals

    def _windows_of(self, question: Question, passing: _PassingBy) -> list[Subwindow]:
        """The stretches as subwindows."""
        side = question.stored
        windows = self._windows[side]
        return [
            windows[stretch.number]  # type: ignore[index]
            if stretch.tuples is None
            else passing(side, stretch.tuples)
            for stretch in question.stretches
        ]

    @contextmanager
    def _passing_by(self) -> Iterator[_PassingBy]:
        """Gives tuples that are not stored as a subwindow, until it is left; one of each side."""
        made: list[Subwindow] = []

        def passed(side: Side, tuples: np.ndarray) -> Subwindow:
            if not isinstance(self._insertion, PaperInsertionEngine):
                self._passing[side].take(tuples)
                return self._passing[side]
            made.append(Subwindow(self._pool, len(tuples)))
            self._insertion.insert([(made[-1], tuples)])
            return made[-1]

        yield passed
        for subwindow in made:
            subwindow.free()

    def distribute(self, tuples: np.ndarray, cores: int, turn: int = 0) -> list[np.ndarray]:
        """A sorted batch dealt to cores in turn, by rid; each part is sorted too."""
        with device_errors():
            return self._distribution.distribute(tuples, cores, turn)

    def expire(self, side: Side, subwindow: int) -> None:
        self._pool.finish()  # it may just have been filled
        self._windows[side].pop(subwindow).free()

    def close(self) -> None:
        self._windows = ({}, {})
        self._queue.finish()
        self._pool.close()

    def _in_order(self, side: Side, subwindows: Sequence[int]) -> list[Subwindow]:
        """The subwindows, each able to give runs: the paper's buffer is sorted for that."""
        windows = self._listed(side, subwindows)
        self._order(windows)
        return windows

    def _order(self, windows: Sequence[Subwindow]) -> None:
        if isinstance(self._insertion, PaperInsertionEngine):
            for window in windows:
                self._insertion.order(window)

    def _listed(self, side: Side, subwindows: Sequence[int]) -> list[Subwindow]:
        return [self._windows[side][number] for number in subwindows]


def _measured(measure: Measure, found: np.ndarray) -> np.ndarray:
    """One measure of aggregates that were found, as Totals has it."""
    totals = Totals(len(found), (measure,))
    chosen = found["sum" if measure.part.is_sum else measure.part.value]
    matched = found["count"] > 0
    totals.add_pairs(measure, np.flatnonzero(matched), chosen[matched])
    return totals.of(measure)


def _batch(probes: Probes) -> Batch:
    return Batch(probes.side, probes.keys, probes.predicate, probes.wanted)
