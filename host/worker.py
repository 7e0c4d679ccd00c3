"""One engine's life: open, feed, drain, close."""

import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from host.backend import Backend
from host.threads import one_thread

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """A backend and the one thread that may talk to it; commands run in the order given.

    `busy_s` is the time that the engine itself has worked.
    """

    def __init__(self, number: int, open_backend: Callable[[], Backend]) -> None:
        self.number = number
        self.busy_s = 0.0
        self._thread = one_thread(f"watersmeet-worker-{number}")
        self.backend = self._thread.submit(open_backend).result()

    def run(self, command: Callable[[Backend], T]) -> Future[T]:
        """Do `command` with the backend after everything that was asked before."""
        return self._thread.submit(self._timed, command)

    def _timed(self, command: Callable[[Backend], T]) -> T:
        begin = time.perf_counter()
        try:
            return command(self.backend)
        finally:
            self.busy_s += time.perf_counter() - begin

    def close(self) -> None:
        """Release the engine and end the thread."""
        self._thread.submit(self.backend.close).result()
        self._thread.shutdown()
