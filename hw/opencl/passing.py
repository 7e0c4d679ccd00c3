"""A batch that is matched without being stored: one sorted array, filled again and again."""

import numpy as np

from hw.opencl.memory import Pool
from hw.opencl.program import FAN, PADDING
from hw.opencl.subwindow import RID_BYTES, KeyArray, Subwindow
from hw.spec.tuples import key_dtype, key_limits

__all__ = ["PassingBatch"]

_SMALLEST_ROOM = 1 << 12


class PassingBatch(Subwindow):
    """A subwindow that holds the tuples of the last `take` and no others."""

    def __init__(self, pool: Pool, key_bits: int) -> None:
        super().__init__(pool, 0)
        self._bits = key_bits
        largest = key_limits(key_bits)[1]
        self._padding = np.full(FAN + PADDING, largest, key_dtype(key_bits))

    def take(self, tuples: np.ndarray) -> None:
        """Hold these instead, sorted as for an insert. No kernel may be using the others."""
        if self.main is None or len(tuples) > self.room:
            room = max(_SMALLEST_ROOM, 1 << max(0, len(tuples) - 1).bit_length())
            array = KeyArray(self._pool, self._bits, room)
            self.replace_main(array, self._pool.allocate(room * RID_BYTES), room)
            self.capacity = room
        main = self.main
        assert main is not None
        main.count = len(tuples)
        self.version += 1
        self.main_version += 1
        for column in self.columns.values():
            column.uploaded = 0
        keys = tuples["key"]
        self._pool.fill(self.rids, tuples["rid"])
        self._fill(main.keys, keys)
        for level in range(main.depth):
            keys = keys[::FAN]
            self._fill(main.index + int(main.levels[level]) * keys.itemsize, keys)

    def _fill(self, place: int, keys: np.ndarray) -> None:
        """Keys, and behind them what searches read of the last lines."""
        count = len(keys)
        behind = -(-count // FAN) * FAN + PADDING - count
        self._pool.fill(place, keys)
        self._pool.fill(place + count * keys.itemsize, self._padding[:behind])
