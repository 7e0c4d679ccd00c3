"""BI-Sort in numpy: always available, and the yardstick for the others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from host.backend import Probes
from host.errors import WindowFull
from hw.spec.params import JoinParams
from hw.spec.tuples import NOT, RECORD, Side, key_dtype, tuple_dtype

__all__ = ["NumpyBackend"]

#: Steps that a search for a run's end walks before it searches.
_WALK = 3


@dataclass
class _Subwindow:
    """A main array: keys ascend, equal keys keep their order of arrival."""

    capacity: int
    keys: np.ndarray
    rids: np.ndarray


class NumpyBackend:
    """Each subwindow is two parallel sorted arrays, keys and rids, in host memory."""

    name = "numpy"

    def __init__(self, params: JoinParams) -> None:
        self.params = params
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        keys = np.empty(0, key_dtype(self.params.key_bits))
        self._subwindows[side, subwindow] = _Subwindow(capacity, keys, np.empty(0, np.uint32))

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._subwindows[side, subwindow]
        held, more = len(target.keys), len(tuples)
        if held + more > target.capacity:
            raise WindowFull(
                f"{more} tuples do not fit in a subwindow of {target.capacity} that holds {held}"
            )
        if not held:
            target.keys, target.rids = tuples["key"].copy(), tuples["rid"].copy()
            return
        # Behind equal keys that came before: the merge is stable.
        places = np.searchsorted(target.keys, tuples["key"], "right") + np.arange(more)
        stays = np.ones(held + more, bool)
        stays[places] = False
        target.keys = _merged(target.keys, tuples["key"], places, stays)
        target.rids = _merged(target.rids, tuples["rid"], places, stays)

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        wanted = probes.intervals
        # Strided fields would be copied by each search: take a band's bounds once.
        bounds = [
            (wanted["lo"][:, band].copy(), wanted["hi"][:, band].copy())
            for band in range(wanted.shape[1])
        ]
        records = np.empty((len(subwindows), *wanted.shape), RECORD)
        for row, subwindow in zip(records, subwindows, strict=True):
            keys = self._subwindows[stored, subwindow].keys
            for band, (lo, hi) in enumerate(bounds):
                start = np.searchsorted(keys, lo, "left")
                row["start"][:, band] = start
                row["end"][:, band] = _ends(keys, start, hi)
        if probes.negated:
            records["end"] |= NOT
        return records

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        return self._subwindows[side, subwindow].rids

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        source = self._subwindows[side, subwindow]
        result = np.empty(len(source.keys), tuple_dtype(self.params.key_bits))
        result["key"], result["rid"] = source.keys, source.rids
        return result

    def expire(self, side: Side, subwindow: int) -> None:
        del self._subwindows[side, subwindow]

    def close(self) -> None:
        self._subwindows.clear()


def _ends(keys: np.ndarray, start: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """First position from `start` on whose key is above `hi`.

    Most runs are short, so walk first, as PanJoin's rebounding search does, and search only for
    the runs that are still open. An empty interval has lo > hi, and its run ends at once.
    """
    end = start.copy()
    still = np.arange(len(start))
    for _ in range(_WALK):
        still = still[end[still] < len(keys)]
        still = still[keys[end[still]] <= hi[still]]
        if not len(still):
            return end
        end[still] += 1
    end[still] = np.maximum(np.searchsorted(keys, hi[still], "right"), end[still])
    return end


def _merged(
    held: np.ndarray, more: np.ndarray, places: np.ndarray, stays: np.ndarray
) -> np.ndarray:
    result = np.empty(len(stays), held.dtype)
    result[places] = more
    result[stays] = held
    return result
