"""SPO-Join as an engine in host memory: subwindows that search two predicates at once."""

from collections.abc import Sequence

import numpy as np

from host.aggregates import Measure
from host.backend import Probes, Question, Summary, check_room
from host.candidates import Candidates
from host.collect import CHUNK_PAIRS
from host.indexes.po import PoIndex, part_of
from host.indexes.po.candidates import PoCandidates
from host.indexes.po.threads import Threads
from host.totals import Totals
from hw.spec.params import JoinParams
from hw.spec.tuples import Side, tuple_dtype

__all__ = ["PoBackend"]


class PoBackend:
    """Each subwindow is a PoIndex; tuples and probes have two keys (host.two_keys)."""

    name = "numpy"

    def __init__(self, params: JoinParams) -> None:
        self.params = params
        self._indexes: dict[tuple[Side, int], PoIndex] = {}
        self._threads = Threads()

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self._indexes[side, subwindow] = PoIndex(capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._indexes[side, subwindow]
        check_room(len(tuples), len(target), target.capacity)
        target.insert(tuples)

    def find(
        self, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        return [self._find(stored, number, probes) for number in subwindows]

    def _find(self, stored: Side, number: int, probes: Probes) -> PoCandidates:
        assert probes.rectangles is not None
        return self._indexes[stored, number].find(probes.rectangles, self._threads)

    def find_among(self, tuples: np.ndarray, probes: Probes) -> Candidates:
        assert probes.rectangles is not None
        return PoCandidates(probes.rectangles, (part_of(tuples),), None, self._threads)

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        total = np.zeros(len(probes), np.int64)
        for number in subwindows:
            total += self._find(stored, number, probes).sizes()
        return total

    def aggregate(
        self,
        stored: Side,
        subwindows: Sequence[int],
        probes: Probes,
        measure: Measure,
        values: Sequence[np.ndarray],
    ) -> np.ndarray:
        totals = Totals(len(probes), (measure,))
        for number, column in zip(subwindows, values, strict=True):
            found = self._find(stored, number, probes)
            if measure.part.is_sum and column.dtype.kind == "i":
                totals.add(measure, found.total(column))
                continue
            for probe, rid in found.pairs(CHUNK_PAIRS):
                totals.add_pairs(measure, probe, column[rid])
        return totals.of(measure)

    def insert_all(self, batches: Sequence[tuple[Side, int, np.ndarray]]) -> None:
        for batch in batches:
            self.insert(*batch)

    def summarise(self, questions: Sequence[Question]) -> list[Summary] | None:
        return None

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        keys, rids = self._indexes[side, subwindow].ascending()
        result = np.empty(len(keys), tuple_dtype(self.params.key_bits))
        result["key"], result["rid"] = keys, rids
        return result

    def expire(self, side: Side, subwindow: int) -> None:
        del self._indexes[side, subwindow]

    def close(self) -> None:
        self._threads.close()
        self._indexes.clear()
