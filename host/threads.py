"""A thread of one's own, which ends with the process whatever interrupted it."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

__all__ = ["Beside", "Started", "one_thread"]

T = TypeVar("T")


def one_thread(name: str) -> ThreadPoolExecutor:
    """An executor of one thread, which runs already.

    Another thread starts it. Where a signal's exception cuts a start short, the executor never
    learns of its thread, and the interpreter would wait for that for ever at its end.
    """
    made: list[ThreadPoolExecutor] = []

    def make() -> None:
        executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        executor.submit(int).result()
        made.append(executor)

    starter = threading.Thread(target=make, daemon=True)
    starter.start()
    starter.join()
    return made[0]


class Started(Generic[T]):
    """A call that a Beside does; `result` waits for what it gives or raises."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        # Simple queues are compiled: to hand a call over takes a few microseconds.
        self._outcome: queue.SimpleQueue[tuple[T | None, BaseException | None]]
        self._outcome = queue.SimpleQueue()

    def run(self) -> None:
        """In the thread beside."""
        try:
            self._outcome.put((self.call(), None))
        except BaseException as error:
            self._outcome.put((None, error))

    def result(self) -> T:
        """To be asked once."""
        value, error = self._outcome.get()
        if error is not None:
            raise error
        return value  # type: ignore[return-value]


class Beside:
    """A thread for pieces of work so short that a future would cost as much as it saves."""

    def __init__(self, name: str) -> None:
        self._calls: queue.SimpleQueue[Started[Any] | None] = queue.SimpleQueue()
        # A process whose program forgets to close it ends all the same.
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def start(self, call: Callable[[], T]) -> Started[T]:
        """Do it there, after what was started before."""
        started = Started(call)
        self._calls.put(started)
        return started

    def close(self) -> None:
        """End the thread when all that was started is done."""
        self._calls.put(None)
        self._thread.join()

    def _serve(self) -> None:
        while (started := self._calls.get()) is not None:
            started.run()
