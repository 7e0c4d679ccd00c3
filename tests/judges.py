"""Three ways to say which pairs a condition matches: by keys, by evaluation, by DuckDB.

Each returns a matrix of truths, rows of left by rows of right.
"""

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot

from host.evaluate import Frame, is_true
from host.sql.binding import Binder
from hw.spec.tuples import Side

__all__ = ["by_duckdb", "by_evaluation", "by_keys", "matrix_of"]


def by_keys(condition, left, right, side):
    """Intervals of probes of `side`, then the residual; no pair may be found twice."""
    batches = (left, right)
    keys, matchable = zip(*(condition.encode(s, batches[s]) for s in Side), strict=True)
    stored = keys[side.other]
    hits = np.zeros((len(keys[side]), len(stored)), int)
    for band in condition.intervals(side, keys[side]).T:
        hits += (band["lo"][:, None] <= stored) & (stored <= band["hi"][:, None])
    assert hits.max(initial=0) <= 1, "a pair is found twice"
    found = (hits if side is Side.LEFT else hits.T).astype(bool)
    found &= matchable[Side.LEFT][:, None] & matchable[Side.RIGHT]
    if condition.residual is not None:
        rows = np.nonzero(found)
        read = [batch.select(sorted(columns)).take(pa.array(chosen))
                for batch, columns, chosen in zip(batches, condition.columns, rows, strict=True)]
        found[rows] = condition.residual.evaluate(*read)
    return found


def by_evaluation(on, left, right):
    """The whole condition, evaluated on every pair."""
    rows = np.indices((len(left), len(right))).reshape(2, -1)
    pairs = {side: batch.take(pa.array(rows[side]))
             for side, batch in zip(Side, (left, right), strict=True)}
    node = Binder(left.schema, right.schema).boolean(sqlglot.parse_one(on, read="spark"))
    return is_true(node, Frame(rows.shape[1], pairs)).reshape(len(left), len(right))


#: Wider types than the columns', in which DuckDB does not overflow where the law saturates.
_WIDER = {pa.decimal128(18, 2): "DECIMAL(38, 2)", pa.decimal128(18, 4): "DECIMAL(38, 4)",
          pa.float32(): "DOUBLE"}


def by_duckdb(on, left, right):
    """DuckDB's answer to the same text."""
    sql = sqlglot.transpile(on, read="spark", write="duckdb")[0]
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        for name, batch in (("l", left), ("r", right)):
            connection.register(f"{name}_rows", pa.table(batch).append_column(
                "row", pa.array(range(len(batch)), pa.int64())))
            columns = [_wide(field) for field in batch.schema]
            connection.execute(
                f"CREATE TABLE {name} AS SELECT {', '.join(columns)}, row FROM {name}_rows")
        rows = connection.execute(f"SELECT l.row, r.row FROM l JOIN r ON ({sql})").fetchnumpy()
    return matrix_of(rows["row"], rows["row_1"], len(left), len(right))


def _wide(field):
    wider = "HUGEINT" if pa.types.is_integer(field.type) else _WIDER.get(field.type)
    return f"CAST({field.name} AS {wider}) AS {field.name}" if wider else field.name


def matrix_of(left_rows, right_rows, lefts, rights):
    """Pairs of row numbers as a matrix of truths."""
    found = np.zeros((lefts, rights), bool)
    found[np.asarray(left_rows, int), np.asarray(right_rows, int)] = True
    return found
