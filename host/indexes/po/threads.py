"""Threads for one engine (SPO-Join, Algorithm 4: as many as there are cores).

Kernels hold no interpreter lock, so that threads of one process are enough.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["Threads"]

T = TypeVar("T")


class Threads:
    """One for each core that this process may use, the caller's own among them."""

    def __init__(self, count: int | None = None) -> None:
        self.count = count or _cores()
        self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="watersmeet-po")

    def together(self, tasks: Sequence[Callable[[], T]]) -> list[T]:
        """What the tasks return, in their order; the first runs in the caller's thread."""
        others = [self._pool.submit(task) for task in tasks[1:]]
        return [tasks[0](), *(other.result() for other in others)]

    def ahead(self, sources: Iterable[Iterator[T]]) -> Iterator[T]:
        """Everything of all sources; the next items are made while one is used.

        Items of one source keep their order. As many are held as there are threads.
        """
        rest = iter(sources)
        running: deque[tuple[Future[T | None], Iterator[T]]] = deque()

        def start(source: Iterator[T] | None) -> None:
            if source is not None:
                running.append((self._pool.submit(next, source, None), source))

        for _ in range(self.count):
            start(next(rest, None))
        while running:
            future, source = running.popleft()
            item = future.result()
            start(next(rest, None) if item is None else source)
            if item is not None:
                yield item

    def close(self) -> None:
        self._pool.shutdown()


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
