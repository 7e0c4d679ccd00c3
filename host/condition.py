"""SQL text -> what the device does, and what is left over.

A condition over `l.` and `r.` columns becomes integer keys, closed intervals of keys, and an exact
residual. For now: an AND of comparisons with constant offsets over one pair of integer columns.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import sqlglot
from sqlglot import exp

from host.errors import ConditionError
from hw.spec.predicates import ALL, Band, Predicate, empty_intervals
from hw.spec.tuples import Side, key_dtype, key_limits

__all__ = ["JoinCondition", "compile_condition"]

_FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


@dataclass(frozen=True)
class _Linear:
    """left * left column + right * right column + constant."""

    left: int
    right: int
    constant: int
    names: tuple[str | None, str | None]

    def plus(self, other: "_Linear", sign: int) -> "_Linear":
        names = tuple(a or b for a, b in zip(self.names, other.names, strict=True))
        return _Linear(self.left + sign * other.left, self.right + sign * other.right,
                       self.constant + sign * other.constant, names)


@dataclass(frozen=True)
class JoinCondition:
    """A compiled condition; see `compile_condition`."""

    text: str
    key_bits: int
    predicate: Predicate | None
    names: tuple[str | None, str | None]
    residual: None = None
    columns: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    def encode(self, side: Side, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the rows of `batch`, and which of them can be in a pair at all."""
        name = self.names[side]
        if name is None:
            return np.zeros(len(batch), key_dtype(self.key_bits)), np.ones(len(batch), bool)
        column = batch.column(name)
        keys = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        matchable = pc.is_valid(column).to_numpy(zero_copy_only=False)
        return keys.astype(key_dtype(self.key_bits)), matchable

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        """Closed intervals of the other side's keys for probe keys of `side`."""
        found = self.predicate.intervals(side, keys)
        if not self.predicate.negated:
            return found
        smallest, largest = key_limits(self.key_bits)
        lo, hi = found["lo"][:, 0], found["hi"][:, 0]
        result = empty_intervals(self.key_bits, (len(keys), 2))
        below, above = lo > smallest, hi < largest
        result["lo"][below, 0], result["hi"][below, 0] = smallest, lo[below] - 1
        result["lo"][above, 1], result["hi"][above, 1] = hi[above] + 1, largest
        return result

    def explain(self) -> list[tuple[str, str]]:
        return [("on the device", self.text), ("key width", f"{self.key_bits} bits")]


def compile_condition(on: str, left: pa.Schema, right: pa.Schema) -> JoinCondition:
    """Compile `on` for streams of these schemas; raise ConditionError for what cannot be run."""
    tree = sqlglot.parse_one(on, read="spark")
    predicate, names = ALL, (None, None)
    for conjunct in tree.flatten() if isinstance(tree, exp.And) else [tree]:
        found, names = _comparison(conjunct.unnest())
        if found.negated:
            predicate = found
        else:
            (a,), (b,) = predicate.bands, found.bands
            predicate = Predicate((Band(_of(max, a.lo, b.lo), _of(min, a.hi, b.hi)),))
    types = [schema.field(n).type for schema, n in zip((left, right), names, strict=True) if n]
    narrow = all(t.bit_width <= 32 and t != pa.uint32() for t in types)
    return JoinCondition(on, 32 if narrow else 64, predicate, names)


def _of(choose, a, b):
    return b if a is None else a if b is None else choose(a, b)


def _comparison(node: exp.Expression) -> tuple[Predicate, tuple]:
    if isinstance(node, exp.Not):
        predicate, names = _comparison(node.this.unnest())
        return Predicate(predicate.bands, not predicate.negated), names
    if isinstance(node, exp.Between):
        lows, names = _comparison(exp.GTE(this=node.this, expression=node.args["low"]))
        highs, _ = _comparison(exp.LTE(this=node.this, expression=node.args["high"]))
        (a,), (b,) = lows.bands, highs.bands
        return Predicate((Band(_of(max, a.lo, b.lo), _of(min, a.hi, b.hi)),)), names
    kind, a, b = type(node), node.this.unnest(), node.expression.unnest()
    if isinstance(a, exp.Abs):
        return _comparison(exp.Between(this=a.this, low=exp.Neg(this=b), high=b))
    form = _linear(a).plus(_linear(b), -1)
    if form.right < 0:
        form = _linear(b).plus(_linear(a), -1)
        kind = _FLIPPED.get(kind, kind)
    if (form.left, form.right) != (-1, 1):
        raise ConditionError(f"`{node.sql('spark')}` is not a comparison of l. with r.")
    # right - left + constant <kind> 0
    at = -form.constant
    bands = {exp.EQ: (at, at), exp.NEQ: (at, at), exp.LT: (None, at - 1), exp.LTE: (None, at),
             exp.GT: (at + 1, None), exp.GTE: (at, None)}
    return Predicate((Band(*bands[kind]),), kind is exp.NEQ), form.names


def _linear(node: exp.Expression) -> _Linear:
    node = node.unnest()
    match node:
        case exp.Column():
            is_left = node.table == "l"
            names = (node.name, None) if is_left else (None, node.name)
            return _Linear(int(is_left), int(not is_left), 0, names)
        case exp.Literal():
            return _Linear(0, 0, int(node.this), (None, None))
        case exp.Neg():
            return _Linear(0, 0, 0, (None, None)).plus(_linear(node.this), -1)
        case exp.Add() | exp.Sub():
            sign = 1 if isinstance(node, exp.Add) else -1
            return _linear(node.this).plus(_linear(node.expression), sign)
    raise ConditionError(f"`{node.sql('spark')}` cannot be run")
