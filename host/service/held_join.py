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
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from host.errors import EpochError, StateError
from host.options import JoinOptions
from host.options_json import from_plain
from host.service.ahead import Ahead, can_run_ahead
from host.service.answer import Answer, Late
from host.service.epoch_rows import EpochRows, Tables
from host.service.job import Job
from host.service.log import EpochLog
from host.service.windows import Share, Windows
from host.spool import Message, Part, Unfinished, is_first

__all__ = ["HeldJoin"]

#: Counters that every worker has alike.
_OF_ALL = ("tuples_left", "tuples_right", "late_left", "late_right")


class _Settling(NamedTuple):
    """An epoch on its way to the disk.

    tables  its rows
    done    whether it is made of them, for good
    """

    tables: Future[Tables]
    done: Future[bool]


class HeldJoin:
    """The join of one worker; commands run one after another in a thread of its own.

    So a client that dies or reads slowly changes nothing: what was begun is ended, and kept for
    the next one that asks. `engine` are the options of the daemon's device, and how many rows are
    joined at once where the job does not say.
    """

    def __init__(self, job: Job, engine: dict[str, Any]) -> None:
        if job.options.get("batch", JoinOptions.batch) != JoinOptions.batch:
            engine = {name: value for name, value in engine.items() if name != "batch"}
        self._options = from_plain(job.options, workers=1, **engine)
        self._log = EpochLog(job.directory, self._options)
        self._log.check_plan(job.options)
        self._directory = job.directory
        self._rows = EpochRows(job.directory, self._options)
        self._windows = Windows(self._log, self._rows, self._options, Share.of(job))
        self._is_first = job.worker == 0
        self._job: Job | None = None  # the last command ...
        self._answer: Answer | None = None  # ... and the answer, made or in the making
        self._ahead: Ahead | None = None  # the next epoch, as far as it is known
        self._late: list[Late] = []  # of the last epoch
        self._lock = threading.Lock()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="watersmeet-held-join")
        self._disk = ThreadPoolExecutor(1, thread_name_prefix="watersmeet-settle")
        self._used = time.monotonic()

    @property
    def epoch(self) -> int | None:
        """The epoch that was done last, if the windows are here."""
        return self._windows.epoch

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
                    assert self._job is not None
                    self._check_alike(job, self._job.run, self._job.parts)
                    return last
                if job.epoch < last.epoch:
                    raise EpochError(
                        f"epoch {job.epoch} of {self._directory} has passed: "
                        f"epoch {last.epoch} was begun"
                    )
            answer, self._job = Answer(job.epoch), job
            self._answer = answer
            ahead = self._ahead
            known = ahead is not None and ahead.job.epoch == job.epoch and not job.discard
            # What was joined ahead stands right before the epoch: there is nothing to wait for.
            settling = self._begin_to_settle(job, answer) if known else None
            self._thread.submit(self._make, job, answer, settling)
            return answer

    def run_ahead(self, job: Job, name: str, messages: list[Message]) -> None:
        """Join rows of the next epoch while the file `name` is being written, if that can be."""
        if can_run_ahead(self._options) and job.workers == 1:
            self._thread.submit(self._make_ahead, job, name, messages)

    def close(self) -> None:
        """Let go of the windows; the log has all that they are made of."""
        self._thread.submit(self._drop).result()
        self._thread.shutdown()
        self._disk.shutdown()

    def _make(self, job: Job, answer: Answer, settling: _Settling | None) -> None:
        begin = time.perf_counter()
        try:
            report = self._discard(job) if job.discard else self._apply(job, answer, settling)
            report |= {"epoch": job.epoch, "seconds": time.perf_counter() - begin}
            answer.finish(report, self._late)
            # Nobody waits for what is deleted.
            self._disk.submit(self._log.forget if job.discard else self._log.expire, job.epoch)
        except BaseException as error:
            self._drop()
            answer.fail(error)
        finally:
            self._used = time.monotonic()

    def _drop(self) -> None:
        if self._ahead is not None:
            self._ahead.file.close()
            self._ahead = None
        self._windows.drop()

    # The epoch that will be asked for.

    def _make_ahead(self, job: Job, name: str, messages: list[Message]) -> None:
        if self._is_asked_for(job.epoch):
            return  # the command joins the rest, and its results are read meanwhile
        try:
            if self._ahead is None:
                self._ahead = self._begun_ahead(job, name, messages)
            if self._ahead is not None and self._ahead.goes_on(job, name):
                schemas = self._options.left, self._options.right
                rows = self._ahead.file.read(messages, schemas)
                self._windows.push(self._rows.tables(rows), self._ahead.answer)
        except Exception:
            self._drop()  # if it was no accident, the command will say what it was

    def _is_asked_for(self, epoch: int) -> bool:
        with self._lock:
            return self._answer is not None and self._answer.epoch >= epoch

    def _begun_ahead(self, job: Job, name: str, messages: list[Message]) -> Ahead | None:
        """For a part from its beginning, and windows that stand right before its epoch."""
        windows = self._windows
        if windows.epoch is None or windows.epoch != job.epoch - 1 or self._log.has(job.epoch):
            return None
        if not is_first(messages):
            return None
        try:
            file = Unfinished(self._directory, job.epoch, name)
        except FileNotFoundError:
            return None  # whole already: the command is on its way
        begun = Ahead(job, name, file, windows.counters())
        windows.advance(job.epoch)
        return begun

    def _taken_ahead(self, job: Job) -> Ahead | None:
        """What was joined ahead of this job; if that was something else, it is undone."""
        ahead = self._ahead
        if ahead is not None and ahead.became(job) is None:
            self._drop()
            return None
        if ahead is not None:
            ahead.file.close()
        self._ahead = None
        return ahead

    # The epoch that is asked for.

    def _apply(self, job: Job, answer: Answer, settling: _Settling | None) -> dict[str, Any]:
        epoch, windows, ahead = job.epoch, self._windows, self._taken_ahead(job)
        # What it is made of may have been settled before, by this one or by somebody else.
        is_settled = settling is None and self._log.has(epoch)
        if is_settled and ahead is not None:
            self._drop()
            ahead = None
        try:
            replayed, before = windows.reached(epoch), None
            answer.schema = windows.join.schema
            if not is_settled:
                settling = settling or self._begin_to_settle(job, answer)
                tables = settling.tables.result()
                if ahead is not None and not self._is_of_schemas(tables):
                    self._drop()
                    ahead, replayed = None, windows.reached(epoch)
                before = self._push(epoch, ahead, tables, answer)
        finally:
            if settling is not None:
                wait([settling.done])
        if settling is not None and not settling.done.result():
            answer.take_back()
            windows.drop()
            before = None
        if before is None:
            replayed += windows.reached(epoch)
            before = self._push(epoch, None, self._settled(job), answer)
        windows.epoch = epoch
        self._late = [(letter, rows) for letter, _, rows in windows.join.take_late()]
        done = {name: value - before[name] for name, value in windows.counters().items()}
        if not self._is_first:
            # All workers see all tuples: the first one speaks for them.
            self._late = []
            done |= dict.fromkeys(_OF_ALL, 0)
        return done | self._held(epoch) | {"replayed": replayed, "recovered": replayed > 0}

    def _held(self, epoch: int) -> dict[str, Any]:
        """What the windows hold now."""
        left, right = self._windows.tuples()
        oldest = self._log.manifest(epoch).oldest
        state_bytes = sum(self._log.manifest(e).bytes for e in range(oldest, epoch + 1))
        return {"window_left": left, "window_right": right, "state_bytes": state_bytes}

    def _push(
        self, epoch: int, ahead: Ahead | None, tables: Tables, answer: Answer
    ) -> dict[str, Any]:
        """Join the rows of an epoch, and return the counters of before."""
        if ahead is not None:
            answer.take_over(ahead.answer)
            before, tables = ahead.before, ahead.rest(tables)
        else:
            before = self._windows.counters()
            self._windows.advance(epoch)
        self._windows.push(tables, answer)
        return before

    def _begin_to_settle(self, job: Job, answer: Answer) -> _Settling:
        """Read an epoch's rows and make it durable that it is made of them.

        The answer is open from then on; it stays closed if somebody was faster with other rows.
        """
        parts = tuple(part for part in job.parts if any(part.rows))
        tables = self._disk.submit(self._rows.read, job.epoch, parts)

        def settle() -> bool:
            largest = self._rows.largest(tables.result())
            manifest = self._log.settle(job.epoch, parts, largest, job.run)
            if manifest.parts != parts:
                return False
            answer.open()
            return True

        return _Settling(tables, self._disk.submit(settle))

    def _settled(self, job: Job) -> Tables:
        """The rows of an epoch that is made of something already, perhaps of something else."""
        manifest = self._log.settle(job.epoch, (), (None, None))
        self._check_alike(job, manifest.run, manifest.parts)
        return self._rows.read(job.epoch, manifest.parts)

    def _is_of_schemas(self, tables: Tables) -> bool:
        """Whether rows are what was joined ahead took them for."""
        schemas = [self._options.left, self._options.right]
        return all(
            table.schema.equals(schema) for table, schema in zip(tables, schemas, strict=True)
        )

    def _check_alike(self, job: Job, run: str, parts: tuple[Part, ...]) -> None:
        """Refuse rows that another join of the same run and of the same name does not have.

        Names come from the texts of plans, which say of a function no more than its name.
        """
        if not job.run or job.run != run:
            return  # another start of the query may have cut the micro-batch otherwise
        if _checksums(job.parts) != _checksums(parts):
            raise StateError(
                f"epoch {job.epoch} of {self._directory} was begun with other rows by a join that "
                "looks the same: give the functions in the inputs of the two different names"
            )

    def _discard(self, job: Job) -> dict[str, Any]:
        """Read the rows and drop them."""
        left, right = self._rows.read(job.epoch, job.parts)
        return {"tuples_left": left.num_rows, "tuples_right": right.num_rows, "pairs": 0}


def _checksums(parts: tuple[Part, ...]) -> list[str]:
    return [part.checksum for part in parts if any(part.rows)]
