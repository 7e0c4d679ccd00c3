"""What RaP-Table and WiB+-Tree have in common: their tuples lie unsorted in an LLAT."""

import numpy as np

from host.indexes.index import Intervals
from host.indexes.llat import Llat
from host.records import Runs

__all__ = ["OverLlat"]

_EVERYTHING = np.array([np.iinfo(np.int64).min]), np.array([np.iinfo(np.int64).max])


class OverLlat:
    """The part of host.indexes.index.Index that only looks at the LLAT."""

    @property
    def _table(self) -> Llat:
        raise NotImplementedError

    @property
    def rids(self) -> np.ndarray:
        return self._table.rids

    def __len__(self) -> int:
        raise NotImplementedError

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        raise NotImplementedError

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        runs = self.find(_EVERYTHING, 2 * len(self) + 1)
        assert runs is not None
        slots = np.concatenate([p for _, p in runs.chunks(1 << 20)] or [np.empty(0, np.int64)])
        keys, rids = self._table.keys[slots], self._table.rids[slots]
        order = np.lexsort((rids, keys))
        return keys[order], rids[order]

    def archive(self) -> None:
        """Nothing changes: PanJoin leaves partitions and leaves unsorted (III-E)."""
