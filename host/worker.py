"""One engine's life: open, feed, drain, close."""

import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from host.backend import Backend
from host.threads import one_thread

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """A backend, and a thread that talks to it; commands run one by one, in the order given.

    They are given by one thread at a time.
    """

    def __init__(self, number: int, open_backend: Callable[[], Backend]) -> None:
        self.number = number
        self._busy_s = 0.0
        self._thread = one_thread(f"watersmeet-worker-{number}")
        self.backend = self._thread.submit(open_backend).result()
        self._last: Future[Any] | None = None

    @property
    def busy_s(self) -> float:
        """The time that the engine itself has worked: in calls, and beside them if it queues."""
        return self._busy_s + float(getattr(self.backend, "beside_s", 0.0))

    def run(self, command: Callable[[Backend], T]) -> Future[T]:
        """Do `command` with the backend after everything that was asked before."""
        future = self._thread.submit(self._timed, command)
        self._last = future
        return future

    def call(self, command: Callable[[Backend], T]) -> T:
        """The same, in the caller's thread: nothing has to wake up where nothing is under way."""
        if self._last is not None:
            wait([self._last])
            self._last = None
        return self._timed(command)

    def here(self, command: Callable[[Backend], T]) -> Future[T]:
        """As `call`, but what it gives or raises is told by a future, as by `run`."""
        future: Future[T] = Future()
        try:
            future.set_result(self.call(command))
        except Exception as error:
            future.set_exception(error)
        return future

    def _timed(self, command: Callable[[Backend], T]) -> T:
        begin = time.perf_counter()
        try:
            return command(self.backend)
        finally:
            self._busy_s += time.perf_counter() - begin

    def close(self) -> None:
        """Release the engine and end the thread."""
        self._thread.submit(self.backend.close).result()
        self._thread.shutdown()
