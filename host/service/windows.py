"""Windows: the join of one worker, brought to the epoch that is asked for out of the log."""

from dataclasses import fields
from typing import Any, NamedTuple

from host.errors import StateError
from host.options import JoinOptions
from host.service.answer import Answer
from host.service.epoch_rows import EpochRows, Tables, pieces_of
from host.service.job import Job
from host.service.log import EpochLog
from host.stream_join import StreamJoin
from hw.spec.windows import NOTHING_YET

__all__ = ["Share", "Windows"]


class Share(NamedTuple):
    """Which worker of how many, and how tuples are dealt to them."""

    routing: str
    worker: int
    workers: int

    @classmethod
    def of(cls, job: Job) -> "Share":
        return cls(job.routing, job.worker, job.workers)


class Windows:
    """A mirror of the log: it may be dropped at any moment, and `reached` makes it again.

    epoch  done last; None while the windows are not here
    """

    def __init__(
        self, log: EpochLog, rows: EpochRows, options: JoinOptions, share: Share
    ) -> None:
        self._log, self._rows, self._options, self._share = log, rows, options, share
        self._join: StreamJoin | None = None
        self.epoch: int | None = None

    @property
    def join(self) -> StreamJoin:
        assert self._join is not None
        return self._join

    def drop(self) -> None:
        self.epoch = None
        if self._join is not None:
            join, self._join = self._join, None
            join.close()

    def reached(self, epoch: int) -> int:
        """Stand where `epoch` begins; return how many epochs were replayed for that.

        A twin on another machine may begin the epoch meanwhile. It then deletes what the epoch
        does not need, perhaps while this one looks at it.
        """
        begun = self._log.has(epoch)
        try:
            return self._reach(epoch)
        except StateError:
            if begun or not self._log.has(epoch):
                raise
            self.drop()
            return self._reach(epoch)

    def _reach(self, epoch: int) -> int:
        if self.epoch is not None and self.epoch == epoch - 1:
            return 0
        self._log.check_order(epoch)
        first = self._log.oldest(epoch)
        if self.epoch is not None and self.epoch + 1 < first:
            self.drop()  # what follows these windows has expired, and they with it
        if self.epoch is None:
            self.drop()
            self._join = self._opened()
            self._join.begin_at(self._log.rows_before(first))
        else:
            first = self.epoch + 1
        for number in range(first, epoch):
            self._replay(number)
        self.epoch = epoch - 1
        return epoch - first

    def _opened(self) -> StreamJoin:
        options = {f.name: getattr(self._options, f.name) for f in fields(JoinOptions) if f.init}
        # Lateness is judged by the epoch's watermark, not tuple by tuple.
        return StreamJoin(**{**options, "lateness": None, "share": self._share})

    def _replay(self, epoch: int) -> None:
        tables = self._rows.read(epoch, self._log.manifest(epoch).parts)
        self.advance(epoch)
        for piece in pieces_of(tables):
            self.join.replay(*piece)
        self.join.take_late()

    def advance(self, epoch: int) -> None:
        """Move on to the watermark of an epoch."""
        watermark = self._log.watermark(epoch)
        if watermark != NOTHING_YET:
            self.join.advance(watermark, watermark)

    def push(self, tables: Tables, answer: Answer) -> None:
        """Join rows of the epoch that comes next."""
        for piece in pieces_of(tables):
            for batch in self.join.push(*piece):
                answer.add(batch)

    def tuples(self) -> tuple[int, int]:
        """How many of each stream are stored."""
        left, right = (
            sum(subwindow.stored for subwindow in chain) for chain in self.join.manager.chains
        )
        return left, right

    def counters(self) -> dict[str, Any]:
        metrics = self.join.metrics
        return {
            "tuples_left": metrics.tuples[0],
            "tuples_right": metrics.tuples[1],
            "late_left": metrics.late[0],
            "late_right": metrics.late[1],
            "pairs": metrics.pairs,
            "device_s": metrics.engine_s,
        }
