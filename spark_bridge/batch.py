"""The join of two batch DataFrames: a grid of tasks, each with an engine of its own.

Every left row goes to one row of the grid and every right row to one column, so that each pair of
rows meets in exactly one task (the 1-Bucket scheme of Okcan and Riedewald). The condition need
not have anything that could be partitioned by, and no task sees more than it must.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace

import pyarrow as pa
from pyspark.resource import ResourceProfile
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, MapType, VariantType

from host.options import JoinOptions
from host.output import result_schema
from host.service.ahead import can_run_ahead
from host.stream_join import StreamJoin
from hw.spec.tuples import Side
from spark_bridge.columns import Layout, column, spark_schema, unite
from spark_bridge.options import BridgeOptions
from spark_bridge.resources import device_of_task

__all__ = ["batch_join", "grid"]

_WORKER = "worker"
#: Tuples of a stream in one batch of the engine: nobody waits for the first results here.
_BATCH = 1 << 18


def batch_join(
    left: DataFrame,
    right: DataFrame,
    options: BridgeOptions,
    *,
    profile: ResourceProfile | None = None,
) -> DataFrame:
    """All pairs, computed by the tasks of one stage after one shuffle."""
    schemas = (options.join.left, options.join.right)
    result = spark_schema(result_schema(options.join))
    if options.workers == 1:
        united, layout = unite(left, right, schemas)
        task = _task(options, layout, first=1)
        return united.coalesce(1).mapInArrow(task, result, profile=profile)
    tags = [
        [_targets(frame, schema, side, options.workers).alias(_WORKER)]
        for side, frame, schema in zip(Side, (left, right), schemas, strict=True)
    ]
    united, layout = unite(left, right, schemas, tags)
    dealt = united.repartitionById(options.workers, F.col(_WORKER))
    return dealt.mapInArrow(_task(options, layout, first=2), result, profile=profile)


def grid(workers: int) -> tuple[int, int]:
    """Rows and columns of the grid that copies the fewest tuples: as square as can be."""
    columns = max(n for n in range(1, workers + 1) if workers % n == 0 and n * n <= workers)
    return workers // columns, columns


def _targets(frame: DataFrame, schema: pa.Schema, side: Side, workers: int) -> Column:
    """One row for each task that must see a tuple.

    The place comes from the tuple's values: a task that Spark repeats deals them the same way.
    """
    rows, columns = grid(workers)
    hashed = [column(name) for name in schema.names if _can_hash(frame.schema[name].dataType)]
    place = F.xxhash64(*hashed) if hashed else F.monotonically_increasing_id()
    mine, others = (rows, columns) if side is Side.LEFT else (columns, rows)
    own = F.pmod(place, F.lit(mine)).cast("int")
    stride = (columns, 1) if side is Side.LEFT else (1, columns)
    if others == 1:
        return own * stride[0]
    return F.explode(F.array(*[own * stride[0] + other * stride[1] for other in range(others)]))


def _can_hash(kind: DataType) -> bool:
    """Spark hashes no maps, and nothing that holds one."""
    inner = [getattr(kind, "elementType", None), *(f.dataType for f in getattr(kind, "fields", []))]
    return not isinstance(kind, (MapType, VariantType)) and all(
        _can_hash(one) for one in inner if one is not None
    )


def _task(
    options: BridgeOptions, layout: Layout, first: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What an executor runs: it holds plain options, never a device or a session."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        engine = replace(options.join, batch=_BATCH, device=device_of_task(options.join.device))
        with _opened(engine) as join:
            for rows in _gathered(batches, layout, first, at_once=not can_run_ahead(engine)):
                yield from join.push(*rows)
            yield from join.finish()

    return run


def _gathered(
    batches: Iterator[pa.RecordBatch], layout: Layout, first: int, at_once: bool
) -> Iterator[list[pa.Table]]:
    """The rows of both sides, in pieces that are joined while Spark makes the next one.

    `at_once`: in one, where it counts which rows of the two arrive side by side.
    """
    rows: tuple[list[pa.RecordBatch], list[pa.RecordBatch]] = ([], [])
    waiting = 0
    for batch in batches:
        for side, own in layout.split(batch, first):
            rows[side].append(own)
        waiting += len(batch)
        if waiting >= _BATCH and not at_once:
            yield [pa.Table.from_batches(rows[side], layout.schemas[side]) for side in Side]
            rows, waiting = ([], []), 0
    yield [pa.Table.from_batches(rows[side], layout.schemas[side]) for side in Side]


def _opened(options: JoinOptions) -> StreamJoin:
    given = [one.name for one in fields(options) if one.init]
    return StreamJoin(**{name: getattr(options, name) for name in given})
