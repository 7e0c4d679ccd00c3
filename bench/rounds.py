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


def best_in_turn(*jobs: Job, rounds: int, turn_s: float = 0.0) -> list[float]:
    """Seconds of each job, the best of the rounds; in every round each has its turn.

    In its turn a job is done once, and again while it has taken less than `turn_s`: a noisy
    machine is then as kind to a short job as to a long one.
    """
    best = [float("inf")] * len(jobs)
    for _ in range(rounds):
        for number, job in enumerate(jobs):
            best[number] = min(best[number], _best_of_turn(job, turn_s))
    return best


def _best_of_turn(job: Job, turn_s: float) -> float:
    best = spent = _timed(job)
    while spent < turn_s:
        seconds = _timed(job)
        best, spent = min(best, seconds), spent + seconds
    return best


def _timed(job: Job) -> float:
    work = job()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


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
