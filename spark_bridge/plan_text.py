"""The plan of a join of DataFrames in words."""

from typing import TYPE_CHECKING

from spark_bridge.batch import grid
from spark_bridge.options import BridgeOptions

if TYPE_CHECKING:
    from host.explain import Line

__all__ = ["plan_of"]


def plan_of(options: BridgeOptions) -> str:
    """Lines of label and text: the condition on the device, then what Spark does around it."""
    from host.explain import as_text, explain  # compiled code, which no task of Spark's needs

    own = [line for line in explain(options.join) if line[0] not in ("workers", "batches")]
    return as_text([*own, *(_of_stream(options) if options.streaming else _of_batch(options))])


def _of_stream(options: BridgeOptions) -> list["Line"]:
    if options.workers == 1:
        workers = "1, in the one task of a micro-batch: nothing is shuffled"
    else:
        workers = f"{options.workers} tasks of a micro-batch; tuples are dealt by {options.routing}"
    return [("workers", workers), ("state on disk", str(options.state_dir))]


def _of_batch(options: BridgeOptions) -> list["Line"]:
    if options.workers == 1:
        return [("workers", "1 task, which sees all rows")]
    rows, columns = grid(options.workers)
    return [(
        "workers",
        f"{options.workers} tasks in a grid: a left row goes to {columns} of them, "
        f"a right row to {rows}",
    )]
