"""What the nested loop and the hash table have in common: tuples lie in the order they came."""

import numpy as np

__all__ = ["Arrived"]


class Arrived:
    """The part of host.indexes.index.Index that needs no structure."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._keys = np.empty(capacity, np.int64)
        self._rids = np.zeros(capacity, np.uint32)
        self._held = 0

    def __len__(self) -> int:
        return self._held

    @property
    def rids(self) -> np.ndarray:
        return self._rids[: self._held]

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        end = self._held + len(keys)
        self._keys[self._held : end] = keys
        self._rids[self._held : end] = rids
        self._held = end

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        order = np.lexsort((self.rids, self._keys[: self._held]))
        return self._keys[order], self._rids[order]

    def archive(self) -> None:
        """Nothing changes."""
