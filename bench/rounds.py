"""How times are taken: in turn, in one run, the best of several rounds, all on two cores."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["THREADS", "Job", "best_in_turn", "two_cores"]

#: What each side of a comparison may use.
THREADS = 2

#: Prepares a round, and returns what of it is timed.
Job = Callable[[], Callable[[], object]]


def best_in_turn(*jobs: Job, rounds: int) -> list[float]:
    """Seconds of each job, the best of the rounds; in every round each has its turn."""
    best = [float("inf")] * len(jobs)
    for _ in range(rounds):
        for number, job in enumerate(jobs):
            work = job()
            begin = time.perf_counter()
            work()
            best[number] = min(best[number], time.perf_counter() - begin)
    return best


@contextmanager
def two_cores() -> Iterator[None]:
    """Threads and processes that begin in here run on two cores, where there are more."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:THREADS])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
