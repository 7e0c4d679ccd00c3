"""A join with a full window, and the batches that keep it turning over."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import host
from bench.workload import BATCH, SCHEMA, BandWorkload

__all__ = ["Feed"]


class Feed:
    """A StreamJoin over a full window; a round pushes as many tuples as a subwindow has.

    A round so has its share of everything that does not happen in each push: tiers merged into
    main arrays, subwindows completed, begun and expired. A round of fewer `pushes` is as dear as
    the average one: the newest subwindow is half full in the middle of it.

    batch        tuples of each stream in a push
    pushes       in a round, where it is to be shorter than that
    windows      keys in the two windows when the feed is made, in order of arrival
    tuples       of both streams in a round
    found        pairs of the last round
    """

    def __init__(
        self,
        workload: BandWorkload,
        batch: int = BATCH,
        pushes: int | None = None,
        **options: Any,
    ) -> None:
        self.workload = workload
        self.batch = batch
        self.join = host.StreamJoin(
            on=workload.on, window=f"rows {workload.rows}", left=SCHEMA, right=SCHEMA, **options
        )
        self.pushes = pushes or max(1, self.join.manager.chains[0].rows // batch)
        self.tuples = 2 * batch * self.pushes
        self.found = 0
        ahead = self._ahead() if pushes else workload.rows // 8
        self._fill(workload.batch(ahead), workload.batch(ahead))
        stored = [workload.batch(workload.rows) for _ in range(2)]
        self._fill(*stored)
        self.windows = tuple(rows.column("x").to_numpy().copy() for rows in stored)

    def round(self) -> Callable[[], None]:
        """Make the batches of a round; what is returned pushes them and reads the results."""
        batches = [
            (self.workload.batch(self.batch), self.workload.batch(self.batch))
            for _ in range(self.pushes)
        ]

        def push() -> None:
            before = self.join.metrics.pairs
            for left, right in batches:
                self.push(left, right)
            self.found = self.join.metrics.pairs - before

        return push

    def push(self, left: pa.RecordBatch | None, right: pa.RecordBatch | None) -> int:
        """One push, read to its end: the rows of its result."""
        return sum(result.num_rows for result in self.join.push(left=left, right=right))

    def probe(self, left: pa.RecordBatch) -> int:
        """Pairs of left tuples alone: each sees exactly the right window as it stands."""
        before = self.join.metrics.pairs
        self.push(left, None)
        return self.join.metrics.pairs - before

    def close(self) -> None:
        self.join.close()

    def _ahead(self) -> int:
        """Tuples before a window's worth that leave the newest subwindow half full in a round."""
        rows = self.join.manager.chains[0].rows
        return (rows // 2 - self.batch * self.pushes // 2 - self.workload.rows) % rows

    def _fill(self, left: pa.RecordBatch, right: pa.RecordBatch) -> None:
        for first in range(0, left.num_rows, BATCH):
            self.push(left.slice(first, BATCH), right.slice(first, BATCH))
