"""Expressions over aligned Arrow columns: exact, vectorised, by Spark's ANSI rules.

Truth has three values: a comparison with NULL is NULL, and AND, OR, NOT follow Kleene. The
right side of an AND or OR and the branches of CASE and COALESCE are evaluated only on the rows that
need them if they could raise, as Spark's are.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.sql import arithmetic, exact, floats, textual
from host.sql.casts import cast
from host.sql.expressions import Call, Column, Constant, LinearTest, Node, walk
from host.sql.values import Value, all_valid, filled, load, repeated
from host.sqltypes import Kind
from hw.spec.tuples import Side

__all__ = ["Frame", "evaluate", "evaluate_where", "is_true"]

_RAISING = frozenset({"+", "-", "*", "/", "%", "div", "neg", "abs", "cast", "shift"})


class Frame:
    """The rows an expression is evaluated on: one batch a side, aligned row by row."""

    def __init__(self, rows: int, batches: Mapping[Side, pa.RecordBatch]) -> None:
        self.rows = rows
        self._batches = batches
        self._loaded: dict[Column, Value] = {}

    def value(self, column: Column) -> Value:
        if column not in self._loaded:
            array = self._batches[column.side].column(column.name)
            self._loaded[column] = load(array, column.type)
        return self._loaded[column]

    def taken(self, rows: np.ndarray) -> "Frame":
        """The frame of some rows, by their numbers."""
        return _Part(self, rows)


class _Part(Frame):
    def __init__(self, whole: Frame, rows: np.ndarray) -> None:
        super().__init__(len(rows), {})
        self._whole, self._chosen = whole, rows

    def value(self, column: Column) -> Value:
        if column not in self._loaded:
            self._loaded[column] = self._whole.value(column).taken(self._chosen)
        return self._loaded[column]


def is_true(node: Node, frame: Frame) -> np.ndarray:
    """The rows on which a boolean expression holds; NULL does not."""
    value = evaluate(node, frame)
    return value.data if value.valid is None else value.data & value.valid


def evaluate(node: Node, frame: Frame) -> Value:
    """The value of `node` on every row; raises EvaluationError as Spark's ANSI mode would."""
    match node:
        case Column():
            return frame.value(node)
        case Constant():
            return repeated(node.value, node.type, frame.rows)
        case LinearTest():
            return _linear_test(node, frame)
        case Call() if node.name in _LAZY:
            return _LAZY[node.name](node, frame)
    return _KERNELS[node.name](node, [evaluate(arg, frame) for arg in node.args], frame.rows)


def _linear_test(node: LinearTest, frame: Frame) -> Value:
    values = [evaluate(term, frame) for term in node.args]
    total = exact.multiplied(exact.narrowed(values[0].data), node.terms[0][0])
    for (factor, _), value in zip(node.terms[1:], values[1:], strict=True):
        total = exact.added(total, exact.multiplied(exact.narrowed(value.data), factor))
    inside = np.ones(frame.rows, bool)
    if node.band.lo is not None:
        inside &= np.asarray(total >= node.band.lo, bool)
    if node.band.hi is not None:
        inside &= np.asarray(total <= node.band.hi, bool)
    return Value(~inside if node.negated else inside, all_valid(*values))


def evaluate_where(node: Node, frame: Frame, needed: np.ndarray) -> Value:
    """The value of `node` on the rows that need it; elsewhere anything, or NULL."""
    careful = any(isinstance(part, Call) and part.name in _RAISING for part in walk(node))
    if not careful or needed.all():
        return evaluate(node, frame)
    rows = np.flatnonzero(needed)
    some = evaluate(node, frame.taken(rows))
    valid = np.zeros(frame.rows, bool)
    valid[rows] = some.known(len(rows))
    if isinstance(some.data, np.ndarray):
        data = np.zeros(frame.rows, some.data.dtype)
        data[rows] = some.data
        return Value(data, valid)
    places = np.zeros(frame.rows, np.int64)
    places[rows] = np.arange(len(rows))
    return Value(some.data.take(pa.array(places, mask=~needed)), valid)


def _and(node: Call, frame: Frame) -> Value:
    result = evaluate(node.args[0], frame)
    for arg in node.args[1:]:
        a = result
        b = evaluate_where(arg, frame, a.data | ~a.known(frame.rows))
        if a.valid is None and b.valid is None:
            result = Value(a.data & b.data)
            continue
        known_a, known_b = a.known(frame.rows), b.known(frame.rows)
        false = (known_a & ~a.data) | (known_b & ~b.data)
        result = Value(a.data & b.data & known_a & known_b, false | (known_a & known_b))
    return result


def _or(node: Call, frame: Frame) -> Value:
    result = evaluate(node.args[0], frame)
    for arg in node.args[1:]:
        a = result
        b = evaluate_where(arg, frame, ~(a.data & a.known(frame.rows)))
        if a.valid is None and b.valid is None:
            result = Value(a.data | b.data)
            continue
        known_a, known_b = a.known(frame.rows), b.known(frame.rows)
        true = (known_a & a.data) | (known_b & b.data)
        result = Value(true, true | (known_a & known_b))
    return result


def _case(node: Call, frame: Frame) -> Value:
    """Arguments: condition, value, condition, value, ..., value of the rest."""
    *pairs, default = node.args
    open_rows = np.ones(frame.rows, bool)
    data, valid = filled(node.type, frame.rows), np.zeros(frame.rows, bool)
    for condition, branch in zip(pairs[::2], pairs[1::2], strict=True):
        test = evaluate_where(condition, frame, open_rows)
        chosen = open_rows & test.data & test.known(frame.rows)
        data, valid = _chosen(chosen, evaluate_where(branch, frame, chosen), data, valid)
        open_rows &= ~chosen
    return Value(*_chosen(open_rows, evaluate_where(default, frame, open_rows), data, valid))


def _coalesce(node: Call, frame: Frame) -> Value:
    result = evaluate(node.args[0], frame)
    data, valid = result.data, result.known(frame.rows)
    for arg in node.args[1:]:
        data, valid = _chosen(~valid, evaluate_where(arg, frame, ~valid), data, valid)
    return Value(data, valid)


def _chosen(
    mask: np.ndarray, value: Value, data: np.ndarray | pa.Array, valid: np.ndarray
) -> tuple[np.ndarray | pa.Array, np.ndarray]:
    """`value` on the rows of `mask`, data and valid on the others."""
    valid = np.where(mask, value.known(len(mask)), valid)
    if isinstance(data, np.ndarray):
        return np.where(mask, value.data, data), valid
    return pc.if_else(pa.array(mask), value.data, data), valid


def _not(node: Call, args: list[Value], rows: int) -> Value:
    return Value(~args[0].data, args[0].valid)


def _is_null(node: Call, args: list[Value], rows: int) -> Value:
    return Value(~args[0].known(rows))


_FLOAT_TESTS: dict[str, Callable[..., np.ndarray]] = {
    "=": floats.equal,
    "<>": lambda a, b: ~floats.equal(a, b),
    "<": floats.less,
    "<=": floats.less_equal,
    ">": lambda a, b: floats.less(b, a),
    ">=": lambda a, b: floats.less_equal(b, a),
}
_TEXT_TESTS = {"=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal,
               ">": pc.greater, ">=": pc.greater_equal}


def _tested(name: str, node: Call, args: list[Value]) -> np.ndarray:
    a, b = args
    if node.args[0].type.text:
        found = pc.fill_null(_TEXT_TESTS[name](a.data, b.data), False)
        return np.asarray(found.to_numpy(zero_copy_only=False))
    if node.args[0].type.kind is Kind.FLOAT:
        return _FLOAT_TESTS[name](a.data, b.data)
    return np.asarray(exact.narrowed(a.data) == exact.narrowed(b.data), bool)


def _compare(node: Call, args: list[Value], rows: int) -> Value:
    return Value(_tested(node.name, node, args), all_valid(*args))


def _null_safe_equal(node: Call, args: list[Value], rows: int) -> Value:
    known_a, known_b = (value.known(rows) for value in args)
    return Value((known_a & known_b & _tested("=", node, args)) | (~known_a & ~known_b))


def _extreme(node: Call, args: list[Value], rows: int) -> Value:
    """LEAST and GREATEST: NULLs do not take part."""
    data, valid = args[0].data, args[0].known(rows)
    for value in args[1:]:
        a, b = (data, value.data) if node.name == "least" else (value.data, data)
        below = floats.less(b, a) if node.type.kind is Kind.FLOAT else b < a
        known = value.known(rows)
        better = known & (~valid | np.asarray(below, bool))
        data, valid = np.where(better, value.data, data), valid | known
    return Value(data, valid)


_LAZY = {"and": _and, "or": _or, "case": _case, "coalesce": _coalesce}
_KERNELS = {
    **arithmetic.KERNELS,
    **textual.KERNELS,
    **dict.fromkeys(_FLOAT_TESTS, _compare),
    "cast": cast,
    "try_cast": cast,
    "not": _not,
    "isnull": _is_null,
    "<=>": _null_safe_equal,
    "least": _extreme,
    "greatest": _extreme,
}
