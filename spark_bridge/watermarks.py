"""Watermarks: taken off the inputs, where the join itself counts them, and put on the result.

Spark allows one watermark on the way from a source to an operator. The inputs' would be too early
for the result: a pair comes as late as its later member, and its other column is older by up to
the window.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.classic.column import _to_seq
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.types import TimestampNTZType, TimestampType

from host.options import JoinOptions
from hw.spec.tuples import Side
from hw.spec.windows import TimeWindow

__all__ = ["delay_ms", "delay_of", "without_watermark", "with_watermark"]

_DELAY = "spark.watermarkDelayMs"
#: Operators under which a watermark is found, since they keep no state by it.
_TRANSPARENT = ("Project", "Filter", "SubqueryAlias")


def delay_of(frame: DataFrame, column: str) -> int | None:
    """Milliseconds that a column's watermark waits, or None without one."""
    delay = frame.schema[column].metadata.get(_DELAY)
    return None if delay is None else int(delay)


def without_watermark(frame: DataFrame) -> DataFrame:
    """The same rows without the watermark that was set last, if no operator used it yet."""
    plan = frame._jdf.queryExecution().analyzed()
    stripped = _stripped(frame, plan)
    if stripped is None:
        return frame
    session = frame.sparkSession
    assert session._jvm is not None
    dataset = session._jvm.org.apache.spark.sql.classic.Dataset
    return ClassicDataFrame(dataset.ofRows(session._jsparkSession, stripped), session)


def _stripped(frame: DataFrame, plan: Any) -> Any:
    """A plan without its watermark; None if it has none here."""
    if plan.nodeName() == "EventTimeWatermark":
        return plan.child()
    if plan.nodeName() not in _TRANSPARENT:
        return None
    below = _stripped(frame, plan.child())
    return below and plan.withNewChildren(_to_seq(frame.sparkSession.sparkContext, [below]))


def with_watermark(result: DataFrame, options: JoinOptions) -> DataFrame:
    """The result with a watermark on an event-time column, which drops no pair of a later batch.

    On left's where it is selected, else on right's: Spark's operators take one such column.
    """
    window = options.parsed_window
    if options.emit != "pairs" or not isinstance(window, TimeWindow) or options.lateness_us is None:
        return result
    assert options.time_columns is not None
    kinds = {field.name: field.dataType for field in result.schema}
    for side in Side:
        name = f"{side.letter}_{options.time_columns[side]}"
        if isinstance(kinds.get(name), (TimestampType, TimestampNTZType)):
            wait_ms = delay_ms(window, options.lateness_us)
            return result.withWatermark(name, f"{wait_ms} milliseconds")
    return result


def delay_ms(window: TimeWindow, lateness_us: int) -> int:
    """How far behind the largest event time in a column of the result a later pair may come.

    The later member of a pair is at most the lateness behind the slower stream. Its partner is
    inside the window of it, and the slower stream may be behind the largest time of the column by
    what the window allows the other way. The sum is the same for both columns.
    """
    # r.t - l.t is in [lo, hi]: from a right member, how far back left may be and how far ahead.
    wait_us = lateness_us + max(0, window.hi_us) + max(0, -window.lo_us)
    # Spark counts milliseconds, and takes a row for late that is just as old as the watermark.
    return -(-wait_us // 1000) + 1
