"""What executors run for a micro-batch: write parts, ask a worker, put partial results together.

Tasks hold plain values only. Whatever Spark does to them (retries, twins, a task that is broken
off), the same micro-batch of the same query gives the same parts and the same answers.
"""

import gc
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import psutil
import pyarrow as pa
from pyspark import TaskContext

from host.options import JoinOptions
from host.partials import combine, partial_schema
from host.service import Job, WorkerClient
from host.service.job import join_directory
from host.spool import Message, Part, Told, write_part
from spark_bridge.columns import Layout
from spark_bridge.metrics import report_row, with_report_column
from spark_bridge.options import LATE
from spark_bridge.resources import device_of_task

__all__ = [
    "CONTROL",
    "WORKER",
    "StreamPlan",
    "combine_task",
    "directory_of",
    "part_task",
    "run_alone",
    "run_task",
]

#: A control row: the worker that it goes to, and one part of the micro-batch.
WORKER = "worker"
CONTROL = pa.schema([(WORKER, pa.int32()), ("part", pa.string())])

Batches = Iterator[pa.RecordBatch]
Task = Callable[[Batches], Batches]


@dataclass(frozen=True, kw_only=True)
class StreamPlan:
    """A streaming join as its tasks know it.

    join         name of its state
    call         which call of stream_join for that state this is, from 1 on
    application  the Spark application, which daemons end with
    options      host.options_json's form of the join's options
    schema       of what a worker's task gives
    ahead_rows   after so many rows a worker that is alone may begin with them
    """

    join: str
    call: int
    application: str
    state_dir: str
    options: dict[str, Any]
    backend: str
    device: str | None
    workers: int
    routing: str
    layout: Layout
    schema: pa.Schema
    ahead_rows: int
    discard: bool = False


@dataclass(frozen=True)
class MicroBatch:
    """Where this task stands: Spark's words for it."""

    query: str
    run: str
    epoch: int
    partition: int

    @classmethod
    def of_task(cls) -> "MicroBatch":
        context = TaskContext.get()
        assert context is not None
        said = context.getLocalProperty
        return cls(
            query=str(said("sql.streaming.queryId")), run=str(said("spark.jobGroup.id")),
            epoch=int(str(said("streaming.sql.batchId"))), partition=context.partitionId(),
        )


def part_task(plan: StreamPlan) -> Task:
    """Stage 1: a partition becomes a part; each worker is told of it."""

    def write(batches: Batches) -> Batches:
        _keep_what_is_loaded()
        now = MicroBatch.of_task()
        part = _write(plan, now, f"{now.partition:06}", batches)
        columns = [pa.array(range(plan.workers), pa.int32()), [part.to_json()] * plan.workers]
        yield pa.RecordBatch.from_arrays([columns[0], pa.array(columns[1])], schema=CONTROL)

    return _named(write, plan, "parts")


def run_task(plan: StreamPlan) -> Task:
    """Stage 2: this task's worker runs the micro-batch."""

    def run(batches: Batches) -> Batches:
        _keep_what_is_loaded()
        rows = [row for batch in batches for row in batch.to_pylist()]
        # The number of the partition is that of a worker only where nothing else is in the stage.
        # Without any row the micro-batch is empty: one worker writes that down, the others see it.
        worker = rows[0][WORKER] if rows else 0
        # The order of arrival: by partition, whatever order the shuffle has.
        parts = sorted((Part.from_json(row["part"]) for row in rows), key=lambda part: part.name)
        yield from _run(plan, MicroBatch.of_task(), worker, tuple(parts))

    return _named(run, plan, "run")


def run_alone(plan: StreamPlan) -> Task:
    """Both stages in one task, for one worker."""

    def run(batches: Batches) -> Batches:
        _keep_what_is_loaded()
        now, client = MicroBatch.of_task(), _client(plan)
        job = _job(plan, now, 0, ())

        def told(name: str, messages: list[Message]) -> None:
            client.run_ahead(job, name, messages)

        # The worker joins what there is while Spark makes the rest.
        part = _write(plan, now, "all", batches, None if plan.discard else told)
        yield from _run(plan, now, 0, (part,))

    return _named(run, plan, "run")


def combine_task(options: JoinOptions) -> Task:
    """Partial counts and aggregates of several workers, one row for each tuple out of them."""

    def put_together(batches: Batches) -> Batches:
        yield combine(options, pa.Table.from_batches([*batches], partial_schema(options)))

    return put_together


@cache
def _keep_what_is_loaded() -> None:
    """Spare the collector the modules of this process, once.

    Spark has it look at everything after each task, some 100 ms, and the next task waits for that.
    """
    gc.freeze()


def _named(task: Task, plan: StreamPlan, what: str) -> Task:
    """Spark shows the name in its plans; the join after this one takes its own name from it."""
    task.__name__ = f"watersmeet_{what}_{plan.join}"
    return task


def _write(
    plan: StreamPlan, now: MicroBatch, number: str, batches: Batches, told: Told | None = None
) -> Part:
    """Write a part under a name that only attempts of the same task have.

    Another run may cut the micro-batch otherwise, another call may have other rows.
    """
    directory = join_directory(plan.state_dir, now.query, plan.join)
    rows = (own for batch in batches for own in plan.layout.split(batch))
    name = f"{now.run}-{plan.call}-{number}"
    return write_part(directory, now.epoch, name, rows, told, plan.ahead_rows)


def _job(plan: StreamPlan, now: MicroBatch, worker: int, parts: tuple[Part, ...]) -> Job:
    return Job(
        query=now.query, run=now.run, join=plan.join, epoch=now.epoch, worker=worker,
        workers=plan.workers, state_dir=plan.state_dir, options=plan.options,
        routing=plan.routing, parts=parts, discard=plan.discard,
    )


def _run(plan: StreamPlan, now: MicroBatch, worker: int, parts: tuple[Part, ...]) -> Batches:
    job = _job(plan, now, worker, parts)
    client = _client(plan)
    for batch in client.run(job):
        yield with_report_column(batch, plan.schema)
    for letter, rows in client.late():
        yield _late_rows(letter, rows, plan.schema)
    yield report_row(client.report, plan.schema)


def _late_rows(letter: str, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Late rows of a side as rows of the result: their own columns, and whose they are."""
    own = {f"{letter}_{name}": rows.column(name) for name in rows.schema.names}
    own[LATE] = pa.array([letter] * len(rows))
    arrays = [own.get(field.name, pa.nulls(len(rows), field.type)) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


_CLIENTS = threading.local()


def _client(plan: StreamPlan) -> WorkerClient:
    """The connection that this Python process keeps to the daemon of its task's device."""
    device = device_of_task(plan.device)
    kept: dict[Any, WorkerClient] = _CLIENTS.__dict__
    name = f"{plan.application} {plan.backend} {device}"
    if name not in kept:
        kept[name] = WorkerClient.connect(
            device=device, backend=plan.backend, directory=directory_of(plan.application),
            owner=_executor(),
        )
    return kept[name]


def directory_of(application: str) -> str:
    """Where its daemons are: one for each user and application, so that they end with theirs."""
    return f"{tempfile.gettempdir()}/watersmeet-{os.geteuid()}-{application}"


def _executor() -> int:
    """The JVM that this Python worker belongs to."""
    above = psutil.Process().parents()
    return next((one.pid for one in above if one.name() == "java"), os.getppid())
