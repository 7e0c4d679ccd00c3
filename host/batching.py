"""Batch mode (PanJoin III-E): tuples are packed when there are enough or when they waited."""

import time
from collections import deque
from collections.abc import Iterator

import pyarrow as pa

from host.arrivals import Arrivals
from host.arrow_arrays import is_microseconds
from host.options import JoinOptions
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow, TimeWindow

__all__ = ["Batcher"]

#: A batch is not made smaller than this for the window's sake.
_LEAST_ROWS = 1 << 10


class Batcher:
    """Collects arrivals into batches of at most `batch` tuples of a stream.

    A batch is cut smaller where it would be long against the window: its tuples meet each other
    before the window is looked at, so most of what they find would be dropped again.
    """

    def __init__(self, options: JoinOptions) -> None:
        self._options = options
        self._window = options.parsed_window
        self._collected: Arrivals | None = None
        self._since = 0.0
        self._packed: deque[Arrivals] = deque()
        self._most_rows = options.batch
        if isinstance(self._window, RowWindow):
            rows = max(self._window.left, self._window.right)
            self._most_rows = min(options.batch, max(_LEAST_ROWS, rows // 2))

    def __bool__(self) -> bool:
        """Whether a batch is ready."""
        return bool(self._packed)

    def add(self, arrivals: Arrivals) -> None:
        """Collect what arrived next; whole batches are ready at once."""
        if self._collected is None:
            self._since = time.monotonic()
        whole = arrivals if self._collected is None else self._collected + arrivals
        pieces = deque(whole.cut(self._most_rows))
        self._collected = pieces.pop()
        for piece in pieces:
            self._pack(piece)

    def tick(self) -> None:
        """Pack what has waited for the maximum collecting time."""
        if time.monotonic() - self._since >= self._options.linger:
            self.flush()

    def flush(self) -> None:
        """Pack what is there."""
        if self._collected is not None:
            self._pack(self._collected)
            self._collected = None

    def take(self) -> Arrivals:
        """The next batch."""
        return self._packed.popleft()

    @property
    def waiting(self) -> list[Arrivals]:
        """Everything that was not taken, in order of arrival."""
        return [*self._packed, *([self._collected] if self._collected is not None else [])]

    def _pack(self, piece: Arrivals) -> None:
        self._packed.extend(piece.cut(self._fitting_rows(piece)))

    def _fitting_rows(self, piece: Arrivals) -> int:
        """Rows that span about half the window, judged by the first and last event times."""
        if not isinstance(self._window, TimeWindow):
            return self._most_rows
        width_us = max(1, self._window.hi_us - self._window.lo_us)
        rows = max(batch.num_rows for batch in piece.rows)
        stretches = max(self._spans_us(piece), default=0) // width_us + 1
        return min(self._most_rows, max(_LEAST_ROWS, rows // stretches))

    def _spans_us(self, piece: Arrivals) -> Iterator[int]:
        assert self._options.time_columns is not None
        for side in Side:
            times = piece.rows[side].column(self._options.time_columns[side])
            if len(times):
                ends = [times[0], times[len(times) - 1]]
                if not is_microseconds(times.type):
                    ends = [end.cast(pa.timestamp("us"), safe=False) for end in ends]
                first, last = (end.value for end in ends)
                if first is not None and last is not None:
                    yield abs(last - first)
