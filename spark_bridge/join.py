"""stream_join: the public DataFrame function, and its plan in words."""

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

from pyspark.resource import ResourceProfile
from pyspark.sql import DataFrame

from spark_bridge.batch import batch_join
from spark_bridge.options import BridgeOptions, check_frames, checked
from spark_bridge.plan_text import plan_of
from spark_bridge.streaming import streaming_join

__all__ = ["explain", "stream_join"]

#: What of a call is no option of the join.
_ELSEWHERE = ("left", "right", "profile")


def stream_join(
    left: DataFrame,
    right: DataFrame,
    on: str,
    window: str = "none",
    time: str | Sequence[str] | None = None,
    lateness: str | None = None,
    select: str | Sequence[str] | None = None,
    workers: int | None = None,
    backend: str = "auto",
    device: str | None = None,
    index: str = "auto",
    order: str = "none",
    emit: str = "pairs",
    aggregates: str | Mapping[str, str] | None = None,
    state_dir: str | None = None,
    *,
    routing: str | None = None,
    late: str = "drop",
    profile: ResourceProfile | None = None,
) -> DataFrame:
    """Join two streaming (or two batch) DataFrames over a sliding window on any condition.

    on         SQL over l. and r. columns: 'l.price BETWEEN r.price - 0.05 AND r.price + 0.05'
    window     '10 minutes', '-5 minutes..10 minutes' (of r.time - l.time), 'rows 1000000', 'none'
    time       event-time column of each side (one name serves both); time windows need it
    lateness   how far behind a stream's newest time a row may come; by default what the time
               columns' watermarks allow, and without these no row is late and all state is kept
    select     columns of the result, like ['l.id', 'r.id']; all by default
    workers    tasks, each with a worker beside it; by default 1 for streams, and for batch
               frames as many as there are executors
    routing    how tuples are dealt to several workers: 'round robin', 'random', 'hash',
               'contrand:<groups>'; chosen by the condition by default
    emit       'pairs', 'counts' or 'aggregate' with aggregates={"n": "count(*)"}
    late       'keep' adds a column `late`: NULL for a pair, 'l' or 'r' for a late row of that side
    state_dir  directory that all workers reach; by default `watersmeet` under
               spark.sql.streaming.checkpointLocation
    profile    resources of the tasks that have an engine, like spark_bridge.fpga_profile()

    Returns a DataFrame with columns l_<name> and r_<name>, a stream if the inputs are. Raises
    host.JoinError, one sentence that names the option, before anything runs.
    """
    return _joined(left, right, _checked(left, right, locals()), profile)


def explain(
    left: DataFrame, right: DataFrame, on: str, window: str = "none", **options: Any
) -> str:
    """What stream_join with the same arguments would run, and where, as lines of text."""
    parameters = signature(stream_join).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    unknown = set(options) - set(defaults)
    if unknown:
        raise TypeError(f"stream_join has no option {sorted(unknown)[0]!r}")
    said = defaults | options | {"on": on, "window": window}
    return plan_of(_checked(left, right, said))


def _checked(left: DataFrame, right: DataFrame, said: Mapping[str, Any]) -> BridgeOptions:
    check_frames(left, right)
    return checked(left, right, **{name: said[name] for name in said if name not in _ELSEWHERE})


def _joined(
    left: DataFrame, right: DataFrame, options: BridgeOptions, profile: ResourceProfile | None
) -> DataFrame:
    join = streaming_join if options.streaming else batch_join
    return join(left, right, options, profile=profile)
