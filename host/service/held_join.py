"""HeldJoin: one worker's windows between commands, and the rule of epochs.

With c the epoch that was done last, a command for epoch e is

    e = c + 1   applied, once what it is made of is durable
    e = c       answered again from what was kept: a retry, or a twin
    e < c       refused, it has passed
    otherwise   applied after the windows were rebuilt or healed from the log up to e - 1

The windows are only a mirror of the log: whatever fails, they are dropped and made again.
"""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from host.errors import EpochError, StateError
from host.options import JoinOptions
from host.options_json import from_plain
from host.service.answer import Answer, Late
from host.service.job import Job
from host.service.log import EpochLog
from host.spool import Part, read_part
from host.stream_join import StreamJoin
from hw.spec.tuples import Side
from hw.spec.windows import NOTHING_YET

__all__ = ["HeldJoin"]

#: Rows of a stream that are pushed at once.
_PUSH_ROWS = 1 << 20

#: Rows of the two streams.
Tables = tuple[pa.Table, pa.Table]


#: Counters that every worker has alike.
_OF_ALL = ("tuples_left", "tuples_right", "late_left", "late_right")


class _Share(NamedTuple):
    routing: str
    worker: int
    workers: int


class HeldJoin:
    """The join of one worker; commands run one after another in a thread of its own.

    So a client that dies or reads slowly changes nothing: what was begun is ended, and kept for
    the next one that asks. `engine` are the options of the daemon's device.
    """

    def __init__(self, job: Job, engine: dict[str, Any]) -> None:
        self._options = from_plain(job.options, workers=1, **engine)
        self._log = EpochLog(job.directory, self._options)
        self._log.check_plan(job.options)
        self._directory = job.directory
        self._share = _Share(job.routing, job.worker, job.workers)
        self._join: StreamJoin | None = None
        self._epoch: int | None = None  # done last, if the windows are here
        self._answer: Answer | None = None  # to the last command, made or in the making
        self._late: list[Late] = []  # of the last epoch
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="watersmeet-held-join")
        self._used = time.monotonic()

    @property
    def epoch(self) -> int | None:
        """The epoch that was done last, if the windows are here."""
        return self._epoch

    @property
    def unused_s(self) -> float:
        """Seconds since it had something to do."""
        with self._lock:
            running = self._answer is not None and not self._answer.ended
            return 0.0 if running else time.monotonic() - self._used

    def run(self, job: Job) -> Answer:
        """The answer to a command, to be read while it is made."""
        with self._lock:
            self._used = time.monotonic()
            last = self._answer
            if last is not None and last.error is None:
                if job.epoch == last.epoch:
                    return last
                if job.epoch < last.epoch:
                    raise EpochError(
                        f"epoch {job.epoch} of {self._directory} has passed: "
                        f"epoch {last.epoch} was begun"
                    )
            answer = self._answer = Answer(job.epoch)
            self._thread.submit(self._make, job, answer)
            return answer

    def close(self) -> None:
        """Let go of the windows; the log has all that they are made of."""
        self._thread.submit(self._drop).result()
        self._thread.shutdown()

    def _make(self, job: Job, answer: Answer) -> None:
        begin = time.perf_counter()
        try:
            report = self._discard(job) if job.discard else self._apply(job, answer)
            report |= {"epoch": job.epoch, "seconds": time.perf_counter() - begin}
            answer.finish(report, self._late)
        except BaseException as error:
            self._drop()
            answer.fail(error)
        finally:
            self._used = time.monotonic()

    def _drop(self) -> None:
        self._epoch = None
        if self._join is not None:
            join, self._join = self._join, None
            join.close()

    # Epochs that others ran, or an earlier life.

    def _reached(self, epoch: int) -> int:
        """`_reach`, though a twin on another machine may begin the epoch meanwhile.

        It then deletes what the epoch does not need, perhaps while this one looks at it.
        """
        begun = self._log.has(epoch)
        try:
            return self._reach(epoch)
        except StateError:
            if begun or not self._log.has(epoch):
                raise
            self._drop()
            return self._reach(epoch)

    def _reach(self, epoch: int) -> int:
        """Bring the windows to where `epoch` begins; return how many epochs were replayed."""
        if self._epoch is not None and self._epoch == epoch - 1:
            return 0
        self._log.check_order(epoch)
        if self._epoch is None:
            first = self._log.oldest(epoch)
            self._join = self._opened()
            self._join.begin_at(self._log.rows_before(first))
        else:
            first = self._epoch + 1
        for number in range(first, epoch):
            self._replay(number)
        self._epoch = epoch - 1
        return epoch - first

    def _opened(self) -> StreamJoin:
        options = {f.name: getattr(self._options, f.name) for f in fields(JoinOptions) if f.init}
        # Lateness is judged by the epoch's watermark, not tuple by tuple.
        return StreamJoin(**{**options, "lateness": None, "share": self._share})

    def _replay(self, epoch: int) -> None:
        assert self._join is not None
        manifest = self._log.manifest(epoch)
        tables = self._rows(epoch, manifest.parts)
        self._advance(epoch)
        for piece in _pieces(tables):
            self._join.replay(*piece)
        self._join.take_late()

    # The epoch that is asked for.

    def _apply(self, job: Job, answer: Answer) -> dict[str, Any]:
        epoch = job.epoch
        replayed = self._reached(epoch)
        join = self._join
        assert join is not None
        tables = self._settled(epoch, job.parts)
        answer.schema = join.schema
        before = _counters(join)
        self._advance(epoch)
        for piece in _pieces(tables):
            for batch in join.push(*piece):
                answer.add(batch)
        self._epoch = epoch
        self._log.expire(epoch)
        self._late = [(letter, rows) for letter, _, rows in join.take_late()]
        done = {name: value - before[name] for name, value in _counters(join).items()}
        if self._share.worker:
            # All workers see all tuples: the first one speaks for them.
            self._late = []
            done |= dict.fromkeys(_OF_ALL, 0)
        return done | self._held() | {"replayed": replayed, "recovered": replayed > 0}

    def _held(self) -> dict[str, Any]:
        """What the windows hold now."""
        assert self._join is not None and self._epoch is not None
        left, right = (
            sum(subwindow.stored for subwindow in chain) for chain in self._join.manager.chains
        )
        oldest = self._log.manifest(self._epoch).oldest
        state_bytes = sum(self._log.manifest(e).bytes for e in range(oldest, self._epoch + 1))
        return {"window_left": left, "window_right": right, "state_bytes": state_bytes}

    def _settled(self, epoch: int, parts: tuple[Part, ...]) -> Tables:
        """The epoch's rows, once it is durable what it is made of."""
        if not self._log.has(epoch):
            tables = self._rows(epoch, parts)
            manifest = self._log.settle(epoch, parts, self._largest(tables))
            if manifest.parts == tuple(part for part in parts if any(part.rows)):
                return tables
        manifest = self._log.settle(epoch, (), (None, None))  # somebody else was first
        return self._rows(epoch, manifest.parts)

    def _rows(self, epoch: int, parts: tuple[Part, ...]) -> Tables:
        sides: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
        for part in parts:
            batches = read_part(self._directory, epoch, part)
            for side in Side:
                sides[side].extend(batches[side])
        return self._table(Side.LEFT, sides[0]), self._table(Side.RIGHT, sides[1])

    def _table(self, side: Side, batches: list[pa.RecordBatch]) -> pa.Table:
        try:
            return pa.Table.from_batches(batches, None if batches else self._options.schema(side))
        except pa.ArrowInvalid as error:
            raise StateError(
                f"the parts of {self._directory} have several schemas: {error}"
            ) from None

    def _advance(self, epoch: int) -> None:
        assert self._join is not None
        watermark = self._log.watermark(epoch)
        if watermark != NOTHING_YET:
            self._join.advance(watermark, watermark)

    def _largest(self, tables: Tables) -> tuple[int | None, int | None]:
        """The largest event time of either stream, in microseconds."""
        columns = self._options.time_columns
        if columns is None:
            return None, None
        left, right = (
            pc.max(tables[side][columns[side]]).cast(pa.timestamp("us"), safe=False).value
            for side in Side
        )
        return left, right

    def _discard(self, job: Job) -> dict[str, Any]:
        """Read the rows and drop them, and the log with them."""
        left, right = self._rows(job.epoch, job.parts)
        for epoch in self._log.epochs():
            if epoch < job.epoch:
                self._log.remove(epoch)
        return {"tuples_left": left.num_rows, "tuples_right": right.num_rows, "pairs": 0}


def _pieces(tables: Tables) -> list[Tables]:
    """Cut at the same rows, so that left row i stays next to right row i."""
    rows = max(table.num_rows for table in tables)
    return [
        (tables[0].slice(start, _PUSH_ROWS), tables[1].slice(start, _PUSH_ROWS))
        for start in range(0, rows, _PUSH_ROWS)
    ]


def _counters(join: StreamJoin) -> dict[str, Any]:
    metrics = join.metrics
    return {
        "tuples_left": metrics.tuples[0],
        "tuples_right": metrics.tuples[1],
        "late_left": metrics.late[0],
        "late_right": metrics.late[1],
        "pairs": metrics.pairs,
        "device_s": metrics.engine_s,
    }
