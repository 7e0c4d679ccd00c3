"""The index-based window join, tuple by tuple: figures 10b and 12 of the PIM-Tree paper, again."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.figures import figure
from bench.rounds import Job, best_in_turn
from host.indexes.window_join import WindowJoin
from hw.spec.predicates import Band, Predicate

__all__ = ["run"]

Progress = Callable[[str], None]


class _Turning:
    """A join whose windows are full, and the arrivals that turn them over."""

    def __init__(self, rows: int, structure: str, threads: int) -> None:
        self.rows = rows
        # The paper's match rate is two.
        reach = (1 << 32) // rows
        self.join = WindowJoin(Predicate((Band(-reach, reach),)), (rows, rows), structure, threads)
        self.random = np.random.default_rng(9)
        self._arrivals(2 * rows + rows // 4)()

    def job(self) -> Callable[[], object]:
        """A round: an eighth of each window, after which a T_I is merged."""
        return self._arrivals(self.rows // 4)

    def _arrivals(self, count: int) -> Callable[[], object]:
        keys = self.random.integers(-(1 << 31), 1 << 31, count).astype(np.int32)
        return lambda: self.join.push(np.arange(count) % 2, keys)


def run(progress: Progress, quick: bool) -> dict[str, Any]:
    """One thread on three structures, and two threads on PIM-Tree."""
    rows, rounds = (1 << 12, 1) if quick else (1 << 20, 20)
    progress(f"index-based window joins over {rows:,} rows a side")
    made = {
        "B+-tree": _Turning(rows, "btree", 1),
        "IM-Tree": _Turning(rows, "im", 1),
        "PIM-Tree": _Turning(rows, "pim", 1),
        "PIM-Tree, two threads": _Turning(rows, "pim", 2),
    }
    jobs: list[Job] = [one.job for one in made.values()]
    seconds = dict(zip(made, best_in_turn(*jobs, rounds=rounds), strict=True))
    for one in made.values():
        one.join.close()
    compared = [
        ("PIM-Tree", "B+-tree", 1.4, "PIM-Tree, figure 10b"),
        ("PIM-Tree, two threads", "PIM-Tree", 1.3, "PIM-Tree, figure 12a"),
    ]
    return {
        "rows": rows,
        "tuples_per_s": {name: rows // 4 / took for name, took in seconds.items()},
        "figures": [
            figure(
                f"{ours} over {theirs}", seconds[theirs] / seconds[ours], at_least=least,
                seconds=seconds[ours], peer_seconds=seconds[theirs], paper=paper,
            )
            for ours, theirs, least, paper in compared
        ],
    }
