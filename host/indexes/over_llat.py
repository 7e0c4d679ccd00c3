"""What RaP-Table and WiB+-Tree have in common: their tuples lie unsorted in an LLAT."""

from abc import ABC, abstractmethod

import numpy as np

from host.indexes.index import Intervals
from host.indexes.llat import Llat
from host.records import Runs

__all__ = ["OverLlat"]

_EVERYTHING = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])


class OverLlat(ABC):
    """The part of host.indexes.index.Index that only looks at the LLAT."""

    @property
    @abstractmethod
    def _table(self) -> Llat:
        """Where the tuples lie."""

    @property
    def rids(self) -> np.ndarray:
        return self._table.rids

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def find(self, wanted: Intervals, most: int) -> Runs | None:
        """As Index has it."""

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        runs = self.find(_EVERYTHING, 2 * len(self) + 1)
        assert runs is not None
        slots = np.concatenate([p for _, p in runs.chunks(1 << 20)] or [np.empty(0, np.int64)])
        keys, rids = self._table.keys[slots], self._table.rids[slots]
        order = np.lexsort((rids, keys))
        return keys[order], rids[order]

    def archive(self) -> None:  # noqa: B027  (doing nothing is its work)
        """Nothing changes: PanJoin leaves partitions and leaves unsorted (III-E)."""
