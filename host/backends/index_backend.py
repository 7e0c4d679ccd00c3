"""The papers' structures as an engine in host memory: each subwindow is one of host.indexes."""

from collections.abc import Sequence

import numpy as np

from host.backend import PlainBackend, Probes, check_room
from host.candidates import Candidates, ListedCandidates, RunCandidates
from host.indexes import Index, Intervals, make_index
from host.sorted_search import records_in
from hw.spec.params import JoinParams
from hw.spec.tuples import Side, key_dtype, tuple_dtype

__all__ = ["IndexBackend"]


class IndexBackend(PlainBackend):
    """Subwindows that are the named structure, each made with its stream's last as a pattern.

    `probe`, `rids` and `tuples` speak of the tuples in sorted order, which is made when it is
    asked for and kept until the next insert; `find` and `counts` ask the structure itself.
    """

    name = "numpy"

    def __init__(self, params: JoinParams, structure: str) -> None:
        self.params = params
        self.structure = structure
        self._indexes: dict[tuple[Side, int], Index] = {}
        self._newest: dict[Side, Index | None] = dict.fromkeys(Side)
        self._sorted: dict[tuple[Side, int], tuple[np.ndarray, np.ndarray]] = {}

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self.create_as(side, subwindow, capacity, self.structure)

    def create_as(
        self, side: Side, subwindow: int, capacity: int, structure: str, buffer: int | None = None
    ) -> None:
        """Begin a subwindow of that structure; `buffer` is BI-Sort's insertion buffer."""
        before = self._newest[side]
        if before is not None:
            before.archive()
        made = make_index(structure, capacity, self.params.key_bits, before, buffer)
        self._indexes[side, subwindow] = self._newest[side] = made

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._indexes[side, subwindow]
        check_room(len(tuples), len(target), target.capacity)
        self._sorted.pop((side, subwindow), None)
        target.insert(tuples["key"].astype(np.int64), np.ascontiguousarray(tuples["rid"]))
        if len(target) == target.capacity:
            target.archive()

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        return records_in([self._ascending(stored, number)[0] for number in subwindows], probes)

    def find(
        self, stored: Side, subwindows: Sequence[int], probes: Probes
    ) -> Sequence[Candidates]:
        return [self._candidates(stored, number, probes) for number in subwindows]

    def _candidates(self, stored: Side, number: int, probes: Probes) -> Candidates:
        """Runs of slots; records over sorted tuples where these would be many."""
        index, runs = self._indexes[stored, number], None
        count, bands = probes.intervals.shape
        if not probes.negated and bands:
            runs = index.find(_flat(probes), len(index) + count * bands)
        if runs is None:
            records = self.probe(stored, [number], probes)[0]
            return RunCandidates(records, self.rids(stored, number))
        return ListedCandidates(runs, index.rids, count * bands, bands)

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        wanted = _flat(probes)
        total = np.zeros(len(probes), np.int64)
        for number in subwindows:
            index = self._indexes[stored, number]
            found = index.count(wanted).reshape(probes.intervals.shape).sum(axis=1)
            total += len(index) - found if probes.negated else found
        return total

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        found: np.ndarray = records_in([tuples["key"].copy()], probes)[0]
        return found

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        return self._ascending(side, subwindow)[1]

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        keys, rids = self._ascending(side, subwindow)
        result = np.empty(len(keys), tuple_dtype(self.params.key_bits))
        result["key"], result["rid"] = keys, rids
        return result

    def _ascending(self, side: Side, subwindow: int) -> tuple[np.ndarray, np.ndarray]:
        place = side, subwindow
        if place not in self._sorted:
            keys, rids = self._indexes[place].ascending()
            self._sorted[place] = keys.astype(key_dtype(self.params.key_bits)), rids
        return self._sorted[place]

    def expire(self, side: Side, subwindow: int) -> None:
        del self._indexes[side, subwindow]
        self._sorted.pop((side, subwindow), None)

    def close(self) -> None:
        self._indexes.clear()
        self._sorted.clear()


def _flat(probes: Probes) -> Intervals:
    """Bounds of all bands of all probes, probe by probe."""
    wanted = probes.intervals.ravel()
    return wanted["lo"].astype(np.int64), wanted["hi"].astype(np.int64)
