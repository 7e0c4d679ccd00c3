"""What the joins of running queries are doing: collected from the queries' progress."""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from spark_bridge.metrics import TOTAL, join_of

__all__ = ["Board", "JoinListener", "JoinState"]


@dataclass
class JoinState:
    """A join of a query as its last micro-batch left it; `pairs`, `tuples`, `late` since the start.

    state           'running', 'ended', or 'failed: ' and what Spark said
    tuples_per_s    of the last micro-batch, by the time that Spark took for all of it
    window          tuples that the workers hold, left and right
    workers         that answered for the last micro-batch
    """

    query: str
    join: str
    name: str = ""
    state: str = "running"
    batch: int = -1
    tuples: int = 0
    pairs: int = 0
    late: int = 0
    tuples_per_s: float = 0.0
    pairs_per_s: float = 0.0
    batch_s: float = 0.0
    device_s: float = 0.0
    window: tuple[int, int] = (0, 0)
    state_bytes: int = 0
    workers: int = 0
    changed_s: float = 0.0

    def take(self, batch: int, seconds: float, metrics: Mapping[str, Any]) -> None:
        """Add what one micro-batch reported."""
        tuples = metrics["tuples_left"] + metrics["tuples_right"]
        self.batch, self.batch_s = batch, seconds
        self.tuples += tuples
        self.pairs += metrics["pairs"]
        self.late += metrics["late_left"] + metrics["late_right"]
        self.tuples_per_s = tuples / seconds if seconds else 0.0
        self.pairs_per_s = metrics["pairs"] / seconds if seconds else 0.0
        self.device_s = metrics["device_s"]
        self.window = (metrics["window_left"], metrics["window_right"])
        self.state_bytes = metrics["state_bytes"]
        self.workers = metrics["workers"]
        self.changed_s = time.time()


class Board:
    """The states of all joins, written by a listener and read by whoever shows them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[tuple[str, str], JoinState] = {}
        self._names: dict[str, str] = {}

    def states(self) -> list[JoinState]:
        """Copies, in the order in which the joins began."""
        with self._lock:
            return [JoinState(**asdict(state)) for state in self._states.values()]

    def started(self, query: str, name: str | None) -> None:
        with self._lock:
            self._names[query] = name or query[:8]

    def progressed(
        self, query: str, batch: int, seconds: float, observed: Mapping[str, Any]
    ) -> None:
        """Metrics of one micro-batch: name of the observation -> a row of metrics."""
        # A join that was called for twice did its work once: either report is the whole.
        joins = {join_of(name): row.get(TOTAL) for name, row in observed.items()}
        joins.pop(None, None)
        with self._lock:
            for join, metrics in joins.items():
                assert join is not None and metrics is not None
                fresh = JoinState(query, join, self._names.get(query, query[:8]))
                state = self._states.setdefault((query, join), fresh)
                state.state = "running"
                state.take(batch, seconds, metrics)

    def ended(self, query: str, failure: str | None) -> None:
        with self._lock:
            for state in self._states.values():
                if state.query == query:
                    state.state = f"failed: {_first_line(failure)}" if failure else "ended"


class JoinListener(StreamingQueryListener):
    """Fills a board; `attach` it to a session."""

    def __init__(self, board: Board) -> None:
        self.board = board

    def attach(self, spark: SparkSession) -> "JoinListener":
        spark.streams.addListener(self)
        return self

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.board.started(str(event.id), event.name)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        done = event.progress
        observed = {name: row.asDict(recursive=True) for name, row in done.observedMetrics.items()}
        self.board.progressed(str(done.id), done.batchId, done.batchDuration / 1000, observed)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing came, and nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.board.ended(str(event.id), event.exception)


def _first_line(text: str | None) -> str:
    """The one sentence of a join's own error, or the beginning of Spark's."""
    own = re.search(r"host\.errors\.\w+: (.*)", text or "")
    return own[1] if own else (text or "").partition("\n")[0][:200]
