"""Index: the interface that every structure of a subwindow keeps."""

from typing import ClassVar, Protocol

import numpy as np

from host.records import Runs

__all__ = ["Index", "Intervals"]

#: Bounds of closed intervals, lo and hi, int64 each; empty where lo > hi.
Intervals = tuple[np.ndarray, np.ndarray]


class Index(Protocol):
    """The tuples of one subwindow, arranged so that an interval of keys is found soon.

    Keys are int64 (a 32-bit key fits), rids uint32. Compiled code does all the work and holds no
    interpreter lock; `count` and `find` change nothing, so several threads may ask at a time.
    Intervals may come in any order; batches in which they ascend are the fast ones.

    capacity  tuples that it takes at most
    rids      rid of each slot; what `find` names are slots
    """

    name: ClassVar[str]
    capacity: int

    def __len__(self) -> int:
        """Tuples that it holds."""

    @property
    def rids(self) -> np.ndarray:
        """By slot, read only; valid until the next insert."""

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        """Take a batch that ascends by key, then by rid; the caller has seen that it fits.

        Its rids are greater than all before. Both arrays stay the caller's.
        """

    def count(self, wanted: Intervals) -> np.ndarray:
        """int64: tuples in each interval."""

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        """The slots of the tuples in each interval, as runs; None if they are more than `most`."""

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys and rids of all tuples by key, then by rid."""

    def archive(self) -> None:
        """Hear that no more tuples come (BiStream IV-B: the subindex becomes inactive)."""

    def _check(self) -> None:
        """Assert that the structure is as its paper says; for tests."""
