"""Event-time progress of one stream: which tuples are late, and how far its watermark is."""

import numpy as np

from hw.spec.windows import NOTHING_YET

__all__ = ["Watermark"]


class Watermark:
    """The largest event time seen minus the allowed lateness, or what the user promised.

    Without a lateness nothing is late by itself, and the watermark moves only by `advance`.
    """

    def __init__(self, lateness_us: int | None) -> None:
        self.lateness_us = lateness_us
        self.newest = NOTHING_YET
        self.promised = NOTHING_YET

    @property
    def time(self) -> int:
        """Every later tuple that is not late has at least this time."""
        if self.lateness_us is None or self.newest == NOTHING_YET:
            return self.promised
        return max(self.promised, NOTHING_YET, self.newest - self.lateness_us)

    def advance(self, time: int) -> None:
        """Promise that what comes earlier than `time` from now on is late."""
        self.promised = max(self.promised, time)

    def observe(self, times: np.ndarray, known: np.ndarray) -> np.ndarray | None:
        """Mark the late ones of the next tuples in order of arrival, and move on."""
        if self.lateness_us is None:
            late = times < self.promised if self.promised != NOTHING_YET else None
            return late & known if late is not None else None
        seen = np.where(known, times, NOTHING_YET)
        # The largest time among the tuples that arrived before each.
        newest = np.maximum.accumulate(np.concatenate([[self.newest], seen]))
        self.newest = int(newest[-1])
        before = newest[:-1]
        in_reach = before >= NOTHING_YET + self.lateness_us
        floor = np.where(in_reach, before - self.lateness_us, NOTHING_YET)
        return known & (times < np.maximum(floor, self.promised))
