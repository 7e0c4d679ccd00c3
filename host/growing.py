"""Arrays that are only ever appended to."""

import numpy as np

__all__ = ["Growing"]

_SMALLEST_ROOM = 1 << 10


class Growing:
    """A numpy array with room to spare: appending costs the same however it is split."""

    def __init__(self, values: np.ndarray) -> None:
        self._room = values
        self._used = len(values)

    @property
    def values(self) -> np.ndarray:
        """What was appended so far."""
        return self._room[: self._used]

    def append(self, more: np.ndarray) -> None:
        needed = self._used + len(more)
        if needed > len(self._room):
            grown = np.empty(max(2 * needed, _SMALLEST_ROOM), self._room.dtype)
            grown[: self._used] = self.values
            self._room = grown
        self._room[self._used : needed] = more
        self._used = needed
