"""The join of two streams: a plan of one or two stages inside a streaming DataFrame.

    left, right -> united -> stage 1: each partition becomes a part on disk, control rows go on
                -> dealt by worker number -> stage 2: task w has worker w run the micro-batch

One worker needs no shuffle: one task writes one part and has it run. The parts are the log that
everything is recovered from; the workers keep the windows.
"""

import pyarrow as pa
from pyspark.resource import ResourceProfile
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from host.options_json import to_plain
from host.output import result_schema
from host.partials import partial_schema
from host.spool import AHEAD_ROWS
from spark_bridge.columns import spark_schema, unite
from spark_bridge.digest import call_number, join_digest
from spark_bridge.metrics import REPORT, observed
from spark_bridge.options import LATE, BridgeOptions
from spark_bridge.tasks import (
    CONTROL,
    WORKER,
    StreamPlan,
    combine_task,
    part_task,
    run_alone,
    run_task,
)
from spark_bridge.watermarks import with_watermark, without_watermark

__all__ = ["streaming_join"]


def streaming_join(
    left: DataFrame,
    right: DataFrame,
    options: BridgeOptions,
    *,
    profile: ResourceProfile | None = None,
    discard: bool = False,
) -> DataFrame:
    """The streaming DataFrame of the join's results; it begins with the query that it is in.

    discard  workers drop what they are given: the empty system that the benchmark compares with
    """
    join, workers = options.join, options.workers
    # As far as the join knows them; where the user set none, the user may still set one.
    plain = [without_watermark(frame) for frame in (left, right)]
    moved = any(own is not frame for own, frame in zip(plain, (left, right), strict=True))
    united, layout = unite(plain[0], plain[1], (join.left, join.right))
    assert options.state_dir is not None
    name = join_digest(join, left, right)
    plan = StreamPlan(
        join=name, call=call_number(name),
        application=left.sparkSession.sparkContext.applicationId,
        state_dir=options.state_dir, options=to_plain(join), backend=join.backend,
        device=join.device, workers=workers, routing=options.routing, layout=layout,
        schema=_task_schema(options), ahead_rows=AHEAD_ROWS, discard=discard,
    )
    reported = spark_schema(plan.schema)
    if workers == 1:
        results = united.coalesce(1).mapInArrow(run_alone(plan), reported, profile=profile)
    else:
        control = united.mapInArrow(part_task(plan), spark_schema(CONTROL))
        dealt = control.repartitionById(workers, F.col(WORKER))
        results = dealt.mapInArrow(run_task(plan), reported, profile=profile)
    results = observed(results, plan.join, plan.call, workers)
    if _is_partial(options):
        dealt = results.repartition(workers, "side", "row")
        results = dealt.mapInArrow(combine_task(join), spark_schema(result_schema(join)))
    return with_watermark(results, join) if moved else results


def _is_partial(options: BridgeOptions) -> bool:
    """Whether each worker has a part of every count."""
    return options.workers > 1 and options.join.emit != "pairs"


def _task_schema(options: BridgeOptions) -> pa.Schema:
    """What a worker's task gives: its results, where asked for late rows, and a report."""
    join = options.join
    own = partial_schema(join) if _is_partial(options) else result_schema(join)
    late = [pa.field(LATE, pa.string())] if join.late == "keep" else []
    return pa.schema([*own, *late, pa.field(REPORT, pa.string())])
