"""IBWJ, the index-based window join of the PIM-Tree paper: tuple by tuple, on as many threads."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from host.indexes import ibwj
from host.indexes.compiling import compiled
from host.indexes.forest import LEAF, clear
from host.indexes.two_part import insert, two_part
from hw.spec.predicates import Predicate
from hw.spec.tuples import Side

__all__ = ["WindowJoin"]

_APART = 8
#: Arrivals that go through the queue at a time.
_QUEUE = 1 << 16


class WindowJoin:
    """Two streams over row windows, each with one index of its whole window.

    structure    'btree' (expired tuples are deleted one by one, one thread), 'im' or 'pim'
    threads      that take tasks from the work queue
    task         tuples of a task
    merge_ratio  T_I's share of the window when it is merged: the paper's 1/8 for one thread. For
                 several it has 1; here larger trees cost two threads more than further merges
    trees        of a PIM-Tree's T_I, at most

    The predicate must be one band. Equal to the batch engines in result: tests hold them together.
    """

    def __init__(
        self, predicate: Predicate, rows: tuple[int, int], structure: str = "pim",
        threads: int = 1, task: int = 8, merge_ratio: float = 1 / 8, trees: int = 1024,
    ) -> None:  # fmt: skip
        if len(predicate.bands) != 1 or predicate.negated:
            raise ValueError(f"the predicate must be one band, not {predicate}")
        if structure not in ("btree", "im", "pim"):
            raise ValueError(f"structure must be btree, im or pim, not {structure}")
        if structure == "btree" and threads > 1:
            raise ValueError(f"a single B+-tree has no locks: threads must be 1, not {threads}")
        self.predicate = predicate
        self.removes = structure == "btree"
        self.threads, self.task = threads, task
        self._rows = np.array(rows)
        self._thresholds = [max(1, int(size * merge_ratio)) for size in rows]
        self._slack = max(rows) // 4 + 64 * task * threads
        parts = trees if structure == "pim" else 1
        self._streams = [self._stream(size, parts) for size in rows]
        self._pushed = [0, 0]
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def _stream(self, rows: int, trees: int) -> ibwj.Stream:
        # A single tree holds the window and what its splits leave empty, a T_I all until a merge.
        most = 2 * rows + _QUEUE if self.removes else max(self._thresholds)
        mutable = most + 2 * self._slack + 2 * self.task * self.threads
        places = 1 << (rows + _QUEUE + 2 * self._slack - 1).bit_length()
        tree = two_part(1 if self.removes else rows + 1, mutable, trees)
        return ibwj.Stream(
            tree, np.zeros(places, np.int64), np.full(places, -1),
            np.zeros(trees * _APART, np.int64), np.zeros(4 * _APART, np.int64),
        )  # fmt: skip

    def push(self, sides: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Matches of each arrival, in order of arrival, and its partners' numbers, in no order."""
        parts = [
            self._run(sides[begin : begin + _QUEUE], keys[begin : begin + _QUEUE])
            for begin in range(0, len(sides), _QUEUE)
        ]
        if not parts:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])

    def _run(self, sides: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        work = self._queued(sides, keys)
        if self._pool is None:
            return work.counts, self._alone(work)
        asked = [self._pool.submit(self._beside, work, t) for t in range(self.threads)]
        found = [future.result() for future in asked]
        ibwj.propagate(work)
        ordered = np.empty(work.offsets[-1], np.int64)
        for thread, matches in enumerate(found):
            _gather(work.owner == thread, work.at, work.counts, work.offsets, matches, ordered)
        return work.counts, ordered

    def _alone(self, work: ibwj.Work) -> np.ndarray:
        if self.removes:
            self._make_room(len(work.side))
        found, done, held = np.empty(4 * len(work.side), np.int64), 0, 0
        how = (*self._streams, self.removes, min(self._thresholds))
        while True:
            done, held = ibwj.join_alone(work, *how, done, held, found)
            if done == len(work.side):
                return found[:held]
            found = np.concatenate([found, np.empty_like(found)])

    def _beside(self, work: ibwj.Work, thread: int) -> np.ndarray:
        """One of the threads."""
        found, mine = np.empty(4 * len(work.side), np.int64), np.zeros(2 * _APART, np.int64)
        how = (*self._streams, thread, self.task, min(self._thresholds), self._slack)
        while not ibwj.join_beside(work, *how, mine, found):
            found = np.concatenate([found, np.empty_like(found)])
        return found[: mine[0]]

    def _make_room(self, arrivals: int) -> None:
        """Build a B+-tree anew when deleted tuples have left too many leaves empty."""
        for side, stream in enumerate(self._streams):
            trees = stream.tree.trees
            if trees.used[0] + arrivals // (LEAF // 2) + 2 <= len(trees.size):
                continue
            # The arrivals' own keys are in the window already, and not yet in the tree.
            end = int(stream.words[0])
            numbers = np.arange(max(0, end - int(self._rows[side])), end)
            keys = stream.keys[numbers & (len(stream.keys) - 1)]
            order = np.argsort(keys, kind="stable")
            clear(trees)
            rids = numbers[order].astype(np.uint32)
            insert(stream.tree, int(stream.tree.shape[4]), keys[order], rids)

    def _queued(self, sides: np.ndarray, keys: np.ndarray) -> ibwj.Work:
        """Arrivals as the work queue has them, their keys in the windows."""
        count, long = len(sides), keys.astype(np.int64)
        wanted = np.empty((2, count), np.int64)
        number, latest = np.empty(count, np.int64), np.empty(count, np.int64)
        for side in Side:
            mine = sides == side
            intervals = self.predicate.intervals(side, keys[mine])[:, 0]
            wanted[0, mine], wanted[1, mine] = intervals["lo"], intervals["hi"]
            before = self._pushed[side] + np.cumsum(mine) - mine
            number[mine], latest[~mine] = before[mine], before[~mine]
            stream = self._streams[side]
            stream.keys[number[mine] & (len(stream.keys) - 1)] = long[mine]
        for side in Side:
            self._pushed[side] += int((sides == side).sum())
        words = np.zeros(8 * _APART, np.int64)
        words[7 * _APART] = -1
        done, counts, owner, at = (np.zeros(count, np.int64) for _ in range(4))
        return ibwj.Work(
            sides.astype(np.int64), wanted[0], wanted[1], number, latest,
            done, counts, owner, at,
            np.zeros(count + 1, np.int64), self._rows, words,
        )  # fmt: skip

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()


@compiled
def _gather(mine, at, counts, offsets, buffer, ordered):  # type: ignore[no-untyped-def]
    """Copy one thread's matches to their places in the output."""
    for place in range(len(mine)):
        if mine[place]:
            for match in range(counts[place]):
                ordered[offsets[place] + match] = buffer[at[place] + match]
