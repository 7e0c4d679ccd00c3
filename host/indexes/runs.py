"""Runs as compiled code lists them: arrays that grow, and an end for each interval."""

import numpy as np
from numba import njit

from host.records import Runs

__all__ = ["add_run", "as_runs", "new_runs"]


def as_runs(found: tuple[np.ndarray, np.ndarray], most: int) -> Runs | None:
    """(ends, runs) of intervals 0, 1, ...: the runs of interval i are the ones before ends[i].

    None if there are more than `most`: then only the last end is right.
    """
    ends, runs = found
    total = int(ends[-1]) if len(ends) else 0
    if total > most:
        return None
    counts = np.diff(ends, prepend=0)
    return Runs(np.repeat(np.arange(len(ends)), counts), runs[0, :total], runs[1, :total])


@njit(cache=True, nogil=True)
def new_runs(room):  # type: ignore[no-untyped-def]
    """Starts and sizes, with room for that many."""
    return np.empty((2, max(room, 16)), np.int64)


@njit(cache=True, nogil=True)
def add_run(runs, held, start, size):  # type: ignore[no-untyped-def]
    """Put a run behind the `held` ones; the array, which may be another."""
    if held == runs.shape[1]:
        grown = np.empty((2, 2 * held), np.int64)
        grown[:, :held] = runs
        runs = grown
    runs[0, held] = start
    runs[1, held] = size
    return runs
