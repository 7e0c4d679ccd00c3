"""What workers report, in the progress of the query: observed metrics.

A worker's report is one more row of its results, alone in a column of its own: Spark sums it up
where the rows pass, and the row goes no further.
"""

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["METRICS", "PREFIX", "REPORT", "observed", "report_row", "with_report_column"]

REPORT = "__report"
#: Observed metrics of a join are under this and the name of its state.
PREFIX = "watersmeet_"
#: Metric -> how the workers' values become one.
METRICS = {
    "tuples_left": F.sum, "tuples_right": F.sum, "pairs": F.sum,
    "late_left": F.sum, "late_right": F.sum,
    "window_left": F.sum, "window_right": F.sum,
    "device_s": F.sum, "state_bytes": F.max, "workers": F.sum,
}


def with_report_column(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Result rows as tasks give them: nothing to report in any."""
    arrays = [*rows.columns, *(pa.nulls(len(rows), f.type) for f in [*schema][rows.num_columns :])]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def report_row(report: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """The row that carries a report, and nothing else."""
    text = json.dumps({**report, "workers": 1})
    arrays = [pa.nulls(1, field.type) for field in [*schema][:-1]]
    return pa.RecordBatch.from_arrays([*arrays, pa.array([text])], schema=schema)


def observed(results: DataFrame, join: str) -> DataFrame:
    """The results with their metrics taken out of them."""
    seen = results.observe(PREFIX + join, *[_metric(name) for name in METRICS])
    return seen.where(F.col(REPORT).isNull()).drop(REPORT)


def _metric(name: str) -> Column:
    value = F.get_json_object(F.col(REPORT), f"$.{name}")
    kind = "double" if name.endswith("_s") else "long"
    return F.coalesce(METRICS[name](value.cast(kind)), F.lit(0).cast(kind)).alias(name)
