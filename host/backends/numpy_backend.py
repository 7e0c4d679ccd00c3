"""BI-Sort in numpy: always available, and the yardstick for the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.backend import PlainBackend, Probes, check_room
from host.pages import empty_pages
from host.sorted_search import records_in
from hw.spec.params import JoinParams
from hw.spec.tuples import Side, key_dtype, tuple_dtype

__all__ = ["NumpyBackend"]

_SMALLEST_ROOM = 1 << 12


@dataclass(frozen=True)
class _Buffer:
    """Room for a main array, in two parallel arrays."""

    keys: np.ndarray
    rids: np.ndarray

    @staticmethod
    def of(rows: int, key_bits: int) -> "_Buffer":
        return _Buffer(empty_pages(rows, key_dtype(key_bits)), empty_pages(rows, np.uint32))


@dataclass
class _Subwindow:
    """A main array: keys ascend, equal keys keep their order of arrival."""

    capacity: int
    buffer: _Buffer
    count: int = 0

    @property
    def keys(self) -> np.ndarray:
        return self.buffer.keys[: self.count]

    @property
    def rids(self) -> np.ndarray:
        return self.buffer.rids[: self.count]


class NumpyBackend(PlainBackend):
    """Each subwindow is two parallel sorted arrays, keys and rids, in host memory.

    A merge writes into the stream's spare buffer and leaves the old one as the next spare:
    arrays that grow by a batch at a time would leave the heap in pieces.
    """

    name = "numpy"

    def __init__(self, params: JoinParams) -> None:
        self.params = params
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}
        self._spare = {side: self._room(0) for side in Side}

    def _room(self, rows: int) -> _Buffer:
        return _Buffer.of(rows, self.params.key_bits)

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self._subwindows[side, subwindow] = _Subwindow(capacity, self._room(0))

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._subwindows[side, subwindow]
        held, more = target.count, len(tuples)
        check_room(more, held, target.capacity)
        into = self._take_spare(side, held + more, target.capacity)
        # Behind equal keys that came before: the merge is stable.
        places = np.searchsorted(target.keys, tuples["key"], "right") + np.arange(more)
        stays = np.ones(held + more, bool)
        stays[places] = False
        _merge(into.keys, target.keys, tuples["key"], places, stays)
        _merge(into.rids, target.rids, tuples["rid"], places, stays)
        left, target.buffer, target.count = target.buffer, into, held + more
        # The larger one stays: a passing small subwindow must not cost the spare.
        if into is self._spare[side] or len(left.keys) > len(self._spare[side].keys):
            self._spare[side] = left

    def _take_spare(self, side: Side, rows: int, capacity: int) -> _Buffer:
        """Room for `rows` tuples: the spare buffer, or one of twice the size."""
        spare = self._spare[side]
        if rows <= len(spare.keys) <= max(capacity, rows):
            return spare
        return self._room(min(max(2 * rows, _SMALLEST_ROOM), max(capacity, rows)))

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        return records_in([self._subwindows[stored, number].keys for number in subwindows], probes)

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        found: np.ndarray = records_in([tuples["key"].copy()], probes)[0]
        return found

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        return self._subwindows[side, subwindow].rids

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        source = self._subwindows[side, subwindow]
        result = np.empty(source.count, tuple_dtype(self.params.key_bits))
        result["key"], result["rid"] = source.keys, source.rids
        return result

    def expire(self, side: Side, subwindow: int) -> None:
        del self._subwindows[side, subwindow]

    def close(self) -> None:
        self._subwindows.clear()


def _merge(
    into: np.ndarray, held: np.ndarray, more: np.ndarray, places: np.ndarray, stays: np.ndarray
) -> None:
    merged = into[: len(stays)]
    merged[places] = more
    merged[stays] = held
