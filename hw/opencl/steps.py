"""What several insertions have to do, step by step, side by side."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import TASK_WORDS

__all__ = ["Step", "Steps"]


class Step(NamedTuple):
    """A kernel that takes tasks, its work items, and one task."""

    kernel: Any
    items: int
    task: tuple[int, ...]


class Steps:
    """Launches steps. What two insertions do at the same time is one launch with two tasks."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._words = HostArray(pool, np.uint64)

    def run(self, insertions: Sequence[Sequence[Step]]) -> None:
        """Queue all of them; each insertion's own steps follow one another."""
        self._words.reserve(TASK_WORDS * sum(map(len, insertions)))
        used = 0
        for together in zip_longest(*insertions):
            launches: dict[tuple[int, int], list[Step]] = {}
            for step in together:
                if step is not None:
                    launches.setdefault((id(step.kernel), step.items), []).append(step)
            for steps in launches.values():
                self._launch(steps, used)
                used += len(steps)

    def _launch(self, steps: Sequence[Step], used: int) -> None:
        words = self._words.host
        for number, step in enumerate(steps, used):
            first = TASK_WORDS * number
            words[first : first + len(step.task)] = step.task
        if not self._pool.shared:
            self._words.upload(TASK_WORDS * (used + len(steps)))
        place = self._words.place + TASK_WORDS * words.itemsize * used
        self._pool.launch(steps[0].kernel, (steps[0].items, len(steps)), place)
