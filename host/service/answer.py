"""What a worker answers to one command: made once, read by as many clients as ask."""

import os
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

__all__ = ["Answer", "Late"]

#: Bytes of an answer that stay in memory; what is more goes to a temporary file.
MEMORY_BYTES = 64 << 20

#: Late rows of one stream, with its letter.
Late = tuple[str, pa.RecordBatch]


class Answer:
    """Results as Arrow messages, in memory or spilled; readers follow while it is made.

    `schema` is set first, then `add` and `finish` or `fail` are called, by one thread. Nobody sees
    a result before `open`, which any thread may call: until then all of them may be taken back.
    The file has no name, so that it goes with the process.
    """

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.schema: pa.Schema | None = None
        self.late: list[Late] = []
        self.report: dict[str, Any] = {}
        self.error: BaseException | None = None
        self._messages: list[pa.Buffer | tuple[int, int]] = []
        self._held = 0
        self._spill: BinaryIO | None = None
        self._spilled = 0
        self._changed = threading.Condition()
        self._is_open = False
        self.ended = False

    def add(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        message = batch.serialize()
        spills = self._held + message.size > MEMORY_BYTES
        place = self._spill_out(message) if spills else None
        self._held += 0 if spills else message.size
        with self._changed:
            self._messages.append(place or message)
            self._changed.notify_all()

    def _spill_out(self, message: pa.Buffer) -> tuple[int, int]:
        if self._spill is None:
            self._spill = tempfile.TemporaryFile()  # noqa: SIM115
        place = (self._spilled, message.size)
        self._spill.write(message)
        self._spill.flush()
        self._spilled += message.size
        return place

    def open(self) -> None:
        """Let readers have what there is, and what comes."""
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def take_back(self) -> None:
        """Begin anew; nobody has read anything."""
        assert not self._is_open
        self._messages, self._held = [], 0
        self._close_spill()

    def take_over(self, other: "Answer") -> None:
        """Begin with all that another one holds, which nobody has read."""
        self._spill, self._spilled, other._spill = other._spill, other._spilled, None
        with self._changed:
            self._messages, self._held = other._messages, other._held
            self._changed.notify_all()

    def finish(self, report: dict[str, Any], late: list[Late]) -> None:
        self.report, self.late = report, late
        self._is_open = True
        self._end()

    def fail(self, error: BaseException) -> None:
        if not self._is_open:
            self.take_back()
        self.error = error
        self._end()

    def _end(self) -> None:
        with self._changed:
            self.ended = True
            self._changed.notify_all()

    def messages(self, patience_s: float | None = None) -> Iterator[pa.Buffer | None]:
        """All of them from the first on, as they come; None after each `patience_s` without one.

        What making them raised is raised here. The schema is known before the first message.
        """
        number = 0
        while True:
            with self._changed:
                came = self._changed.wait_for(lambda: self._has(number), patience_s)  # noqa: B023
                if came and number == len(self._messages):
                    break
                message = self._messages[number] if came else None
            if came:
                number += 1
            yield self._read(*message) if isinstance(message, tuple) else message
        if self.error is not None:
            raise self.error

    def _has(self, number: int) -> bool:
        return self.ended or (self._is_open and number < len(self._messages))

    def _read(self, start: int, size: int) -> pa.Buffer:
        assert self._spill is not None
        return pa.py_buffer(os.pread(self._spill.fileno(), size, start))

    def __del__(self) -> None:
        self._close_spill()  # with the last reader, wherever that is

    def _close_spill(self) -> None:
        if self._spill is not None:
            self._spill.close()
            self._spill, self._spilled = None, 0
