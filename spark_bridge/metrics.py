"""What workers report, in the progress of the query: observed metrics.

A worker's report is one more row of its results, alone in a column of its own: Spark sums it up
where the rows pass, and the row goes no further.
"""

import json
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

__all__ = ["REPORT", "TOTAL", "join_of", "observed", "report_row", "with_report_column"]

REPORT = "__report"
#: Observed metrics of a join are under this and the name of its state.
PREFIX = "watersmeet_"
#: Metric -> how the workers' values become one: added, or the largest.
METRICS = {
    "tuples_left": "add", "tuples_right": "add", "pairs": "add", "late_left": "add",
    "late_right": "add", "window_left": "add", "window_right": "add", "device_s": "add",
    "state_bytes": "largest", "workers": "add",
}
#: The one field of the observed metrics, a struct of them all.
TOTAL = "total"


def with_report_column(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Result rows as tasks give them: nothing to report in any."""
    arrays = [*rows.columns, *(pa.nulls(len(rows), f.type) for f in [*schema][rows.num_columns :])]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def report_row(report: dict[str, Any], schema: pa.Schema) -> pa.RecordBatch:
    """The row that carries a report, and nothing else."""
    known = {**report, "workers": 1}
    text = json.dumps({name: known.get(name, 0) for name in METRICS})
    arrays = [pa.nulls(1, field.type) for field in [*schema][:-1]]
    return pa.RecordBatch.from_arrays([*arrays, pa.array([text])], schema=schema)


def observed(results: DataFrame, join: str, call: int, workers: int) -> DataFrame:
    """The results with their metrics taken out of them.

    Spark wants another name for every call in a query, though they are of one join.
    """
    name = f"{PREFIX}{join}_{call}" if call > 1 else PREFIX + join
    # A list of reports costs every pair that passes 0.1 us more than the largest one does.
    total = _read(F.max(REPORT)) if workers == 1 else _added_up(F.collect_list(REPORT))
    seen = results.observe(name, total.alias(TOTAL))
    return seen.where(F.col(REPORT).isNull()).drop(REPORT)


def join_of(observation: str) -> str | None:
    """The join that observed metrics are of, by their name; None if they are of something else."""
    if not observation.startswith(PREFIX):
        return None
    return observation.removeprefix(PREFIX).partition("_")[0]


def _read(report: Column) -> Column:
    """A report as a struct of all metrics."""
    kinds = [f"{name} {'double' if name.endswith('_s') else 'long'}" for name in METRICS]
    return F.from_json(report, ", ".join(kinds))


def _added_up(reports: Column) -> Column:
    """All metrics of the workers' reports as one struct, out of one aggregate.

    Spark updates every aggregate with every pair that passes: ten of them would cost as much as
    the rest of the way. And it plans every micro-batch anew, so that long expressions cost, too.
    """

    def added(total: Column, report: Column) -> Column:
        merged = {
            name: F.greatest(total[name], report[name]) if how == "largest"
            else total[name] + report[name]
            for name, how in METRICS.items()
        }
        return F.struct(*[value.alias(name) for name, value in merged.items()])

    return F.reduce(
        F.transform(reports, _read), _read(F.lit(json.dumps(dict.fromkeys(METRICS, 0)))), added
    )
