"""Threads for one engine (SPO-Join, Algorithm 4: as many as there are cores).

Kernels hold no interpreter lock, so that threads of one process are enough.
"""

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Threads"]

T = TypeVar("T")

#: Long beside the 0.1 ms that it takes to wake a thread.
_HANDED_OVER_S = 1e-3


class Threads:
    """One for each core that this process may use, the caller's own among them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or _cores()
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="watersmeet-po")

    def together(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """What the tasks return, in their order.

        The caller's thread takes tasks, too, and waits for none that is not begun: where cores
        are busy with something else it does them all.
        """
        results: list[T | None] = [None] * len(tasks)
        rest = iter(enumerate(tasks))

        def run() -> None:
            for number, task in rest:
                results[number] = task()

        others = [self._pool.submit(run) for _ in range(min(self.count, len(tasks)) - 1)]
        try:
            run()
        finally:
            for other in others:
                if not other.cancel():
                    other.result()
        return results  # type: ignore[return-value]

    def ahead(self, sources: Iterable[Iterator[T]]) -> Iterator[T]:
        """Everything of all sources; the next items are made while one is used.

        Items of one source keep their order. A thread makes items for about a millisecond before
        it hands them over, and nothing waits for a reader: as many are held as there are threads.
        """
        rest = iter(sources)
        running: deque[tuple[Future[list[T]], Iterator[T]]] = deque()

        def start(source: Iterator[T] | None) -> None:
            if source is not None:
                running.append((self._pool.submit(_some, source), source))

        for _ in range(self.count):
            start(next(rest, None))
        while running:
            future, source = running.popleft()
            items = future.result()
            start(source if items else next(rest, None))
            yield from items

    def close(self) -> None:
        self._pool.shutdown()


def _some(source: Iterator[T]) -> list[T]:
    """The next items that take about a millisecond, one at least; none if there is none left."""
    end, items = time.perf_counter() + _HANDED_OVER_S, []
    for item in source:
        items.append(item)
        if time.perf_counter() >= end:
            break
    return items


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
