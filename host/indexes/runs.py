"""Runs as compiled code lists them: into arrays that grow between calls."""

from collections.abc import Callable
from typing import Any

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.index import Intervals
from host.records import Runs

__all__ = ["add_run", "list_runs"]


def list_runs(
    kernel: Callable[..., Any], state: tuple[Any, ...], wanted: Intervals, most: int
) -> Runs | None:
    """The runs that `kernel(*state, lo, hi, done, held, ends, runs)` lists for each interval.

    It goes on from interval `done` with `held` runs before, and gives the two back: fewer than all
    intervals if the room was too short for the next. None if there are more runs than `most`.
    """
    count = len(wanted[0])
    ends, runs = np.zeros(count, np.int64), np.empty((2, max(16, count + count // 4)), np.int64)
    done = held = 0
    while True:
        done, held = kernel(*state, *wanted, done, held, ends, runs)
        if held > most or (done < count and runs.shape[1] > most):
            return None
        if done == count:
            break
        grown = np.empty((2, 4 * runs.shape[1]), np.int64)
        grown[:, :held] = runs[:, :held]
        runs = grown
    probe = np.repeat(np.arange(count), np.diff(ends, prepend=0))
    return Runs(probe, runs[0, :held], runs[1, :held])


@compiled
def add_run(runs, held, start, size):  # type: ignore[no-untyped-def]
    """Put a run behind the `held` ones, if there is room; how many there are then."""
    if held < runs.shape[1]:
        runs[0, held] = start
        runs[1, held] = size
    return held + 1
