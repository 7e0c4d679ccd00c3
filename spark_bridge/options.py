"""BridgeOptions: what a join of two DataFrames is asked to do, checked on the driver."""

from dataclasses import dataclass, replace
from os.path import abspath
from typing import Any
from urllib.parse import urlparse

import pyarrow as pa
from pyspark.sql import DataFrame

from host.backends.choice import backend_opener
from host.condition import JoinCondition, columns_read, compile_condition
from host.errors import OptionError
from host.options import JoinOptions
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow, TimeWindow
from spark_bridge.columns import arrow_schema
from spark_bridge.watermarks import delay_of

__all__ = ["LATE", "BridgeOptions", "check_frames", "checked"]

#: With late='keep', the column that is NULL for a pair, and 'l' or 'r' for a late row.
LATE = "late"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


@dataclass(frozen=True, kw_only=True)
class BridgeOptions:
    """A join as the tasks of a query run it; nothing in it belongs to a session or a device.

    join       the join of one worker
    streaming  whether the frames are streams
    workers    tasks, each with a worker, that the join is dealt to
    routing    how tuples are dealt to them: 'round robin', 'random', 'hash', 'contrand:<groups>'
    state_dir  where a streaming join keeps its log; None for batch frames
    """

    join: JoinOptions
    streaming: bool
    workers: int
    routing: str
    state_dir: str | None

    @property
    def condition(self) -> JoinCondition:
        return compile_condition(self.join.on, self.join.left, self.join.right)


def check_frames(left: object, right: object) -> None:
    """Two classic DataFrames of one session, both streams or neither."""
    for name, frame in (("left", left), ("right", right)):
        if type(frame).__module__.startswith("pyspark.sql.connect"):
            raise OptionError(
                f"{name} is a DataFrame of Spark Connect, whose plan cannot be read from here: "
                "call stream_join in a program that has the driver (a classic session)"
            )
        if not isinstance(frame, DataFrame):
            raise OptionError(f"{name} must be a DataFrame, not {type(frame).__name__}")
    assert isinstance(left, DataFrame) and isinstance(right, DataFrame)
    if left.isStreaming != right.isStreaming:
        stream, batch = ("left", "right") if left.isStreaming else ("right", "left")
        raise OptionError(
            f"{stream} is a stream and {batch} is not: read both with readStream, "
            "or join them with Spark's own stream-static join"
        )


def checked(
    left: DataFrame, right: DataFrame, *, on: str, window: str, workers: int | None,
    routing: str | None, lateness: str | None, state_dir: str | None, **options: Any,
) -> BridgeOptions:
    """Every option checked, with an OptionError or ConditionError that names it."""
    schemas = (arrow_schema(Side.LEFT, left), arrow_schema(Side.RIGHT, right))
    _check_text(on=on, window=window)
    probe = JoinOptions(on=on, window=window, left=schemas[0], right=schemas[1], **options)
    streaming = left.isStreaming
    if lateness is None and streaming:
        lateness = _from_watermarks(probe, left, right)
    join = _with_lateness(probe, lateness, streaming)
    if join.late == "keep" and join.emit != "pairs":
        raise OptionError(f"late='keep' goes with emit='pairs', not with {join.emit!r}")
    condition = compile_condition(on, *schemas)
    backend_opener(join, condition.key_bits)
    _check_names(join)
    chosen = _workers(workers, join, streaming, left)
    return BridgeOptions(
        join=_with_needed_columns(join), streaming=streaming, workers=chosen,
        routing=_routing(routing, condition, chosen),
        state_dir=_state_dir(state_dir, left) if streaming else None,
    )


def _with_needed_columns(options: JoinOptions) -> JoinOptions:
    """The same join of inputs that have nothing but what it looks at: Spark makes no more."""
    read = columns_read(options.on, options.left, options.right)
    schemas = []
    for side in Side:
        needed = {*read[side], *(one.column for one in options.measures(side))}
        if options.time_columns is not None:
            needed.add(options.time_columns[side])
        if options.emit == "pairs":
            needed |= {one.column for one in options.selected if one.side is side}
        fields = [field for field in options.schema(side) if field.name in needed]
        schemas.append(pa.schema(fields or [options.schema(side).field(0)]))
    return replace(options, left=schemas[0], right=schemas[1])


def _check_text(**options: object) -> None:
    for name, value in options.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} must be text, not {value!r}")


def _with_lateness(options: JoinOptions, lateness: str | None, streaming: bool) -> JoinOptions:
    """A wrong lateness is refused; batch frames have no late rows, as everywhere in Spark."""
    timely = replace(options, lateness=lateness)
    return timely if streaming else options


def _from_watermarks(options: JoinOptions, left: DataFrame, right: DataFrame) -> str | None:
    """The larger delay of the two event-time columns' watermarks, if both have one."""
    if not isinstance(options.parsed_window, TimeWindow):
        return None
    assert options.time_columns is not None
    names = options.time_columns
    delays = [delay_of(frame, name) for frame, name in zip((left, right), names, strict=True)]
    known = [delay for delay in delays if delay is not None]
    return f"{max(known)} milliseconds" if len(known) == 2 else None


def _check_names(options: JoinOptions) -> None:
    names = [column.name for column in options.selected] if options.emit == "pairs" else []
    if options.emit == "aggregate":
        names = ["side", "row", *(aggregate.name for aggregate in options.parsed_aggregates)]
    lowered = [name.lower() for name in names]
    twice = [name for name in names if lowered.count(name.lower()) > 1]
    if twice:
        raise OptionError(f"the result would have more than one column {twice[0]!r}: choose others")


def _workers(workers: int | None, options: JoinOptions, streaming: bool, frame: DataFrame) -> int:
    """One for a stream, so that nothing is shuffled; for batch frames, one to an executor."""
    whole = isinstance(workers, int) and not isinstance(workers, bool)
    if workers is not None and (not whole or workers < 1):
        raise OptionError(f"workers must be a whole number from 1 on, not {workers!r}")
    ordered = _needs_one_task(options, streaming)
    if workers is not None and workers > 1 and ordered:
        raise OptionError(f"workers={workers} is not possible with {ordered}: use one worker")
    if workers is not None:
        return workers
    return 1 if streaming or ordered else _executors(frame)


def _executors(frame: DataFrame) -> int:
    """How many there are now; an engine uses all cores of its machine, so that one is enough."""
    known = frame.sparkSession.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    return max(1, len(known) - 1)  # all but the driver, which in local mode is the executor


def _needs_one_task(options: JoinOptions, streaming: bool) -> str | None:
    """What of the options asks for one order of arrival over everything."""
    if options.order != "none":
        return f"order={options.order!r}"
    if streaming:
        return None
    if isinstance(options.parsed_window, RowWindow):
        return f"window={options.window!r} on batch DataFrames"
    return f"emit={options.emit!r} on batch DataFrames" if options.emit != "pairs" else None


def _routing(routing: str | None, condition: JoinCondition, workers: int) -> str:
    """Hash where equalities allow it, else round robin; ContRand needs both."""
    hashable = bool(condition.equalities)
    if routing is None:
        return "hash" if hashable and workers > 1 else "round robin"
    name, _, groups = routing.partition(":") if isinstance(routing, str) else ("", "", "")
    if name in ("hash", "contrand") and not hashable:
        raise OptionError(
            f"routing {routing!r} needs an equality like l.k = r.k in the condition: "
            "use 'round robin' or 'random'"
        )
    if name in ("round robin", "random", "hash") and not groups:
        return routing
    if name == "contrand" and groups.isdigit() and 1 <= int(groups) <= workers:
        return routing
    raise OptionError(
        "routing must be 'round robin', 'random', 'hash' or 'contrand:<groups>' with 1 to "
        f"{workers} groups, not {routing!r}"
    )


def _state_dir(state_dir: str | None, frame: DataFrame) -> str:
    """A path that every worker reaches, by default beside Spark's own checkpoints."""
    if state_dir is None:
        checkpoints = frame.sparkSession.conf.get(_CHECKPOINTS, None)
        if not checkpoints:
            raise OptionError(
                "a streaming join keeps its state on disk: name a directory that all workers "
                f"reach with state_dir, or set {_CHECKPOINTS}"
            )
        state_dir = checkpoints.rstrip("/") + "/watersmeet"
    place = urlparse(str(state_dir))
    if place.scheme not in ("", "file"):
        raise OptionError(
            f"state_dir must be a path that every worker has mounted, not {state_dir!r}: "
            f"{place.scheme} is not a file system of the machine"
        )
    return abspath(place.path if place.scheme else str(state_dir))
