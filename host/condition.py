"""SQL text -> what the device does, and what is left over.

A condition over `l.` and `r.` columns becomes integer keys, closed intervals of keys of the other
stream, filters of one stream alone, and an exact residual.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from host.errors import ConditionError, EvaluationError
from host.evaluate import Frame, evaluate, is_true
from host.joinkeys import Equality, HashedKeys, OrderedKeys
from host.plan import Bands, Plan, planned
from host.sql.binding import Binder
from host.sql.expressions import Node, columns_of
from host.sql.literals import check_literals
from host.sql.logic import TRUE, all_of
from host.sql.values import integers
from hw.spec.predicates import ALL, Predicate
from hw.spec.tuples import Side, key_dtype

__all__ = ["JoinCondition", "Residual", "compile_condition"]


@dataclass(frozen=True)
class Residual:
    """What is left to check on each candidate pair."""

    condition: Node

    def evaluate(self, left: pa.RecordBatch, right: pa.RecordBatch) -> np.ndarray:
        """Which pairs of rows (left i with right i) pass; NULL does not."""
        return is_true(self.condition, Frame(len(left), {Side.LEFT: left, Side.RIGHT: right}))


@dataclass(frozen=True)
class JoinCondition:
    """A compiled condition: immutable, and the same on every machine.

    A pair matches iff both tuples are matchable, the stored one's key is in an interval of the
    probe's, and the residual (if there is one) holds.
    """

    text: str
    plan: Plan
    residual: Residual | None

    @property
    def key_bits(self) -> int:
        """Width of the keys: 32 or 64."""
        return self.plan.keys.key_bits

    @property
    def predicate(self) -> Predicate | None:
        """The intervals as a predicate over keys, if they are integer sums without factors."""
        return self.plan.keys.predicate

    @property
    def equalities(self) -> tuple[Equality, ...]:
        return self.plan.equalities

    @property
    def primary(self) -> Bands | None:
        """The bands that the keys search; None if the keys are hashes or all alike."""
        return self.plan.primary

    @property
    def second(self) -> Bands | None:
        """The next best bands, which are in the residual as well."""
        return self.plan.second

    @property
    def second_keys(self) -> OrderedKeys | None:
        """What the second keys are made of, where two predicates are searched at once."""
        return OrderedKeys(self.plan.second) if self.plan.both and self.plan.second else None

    @cached_property
    def _plain(self) -> list[tuple[str | None, int]]:
        """For each stream the column whose integers are its keys, where no row needs a look, and
        the keys' width.
        """
        keys, filters = self.plan.keys, self.plan.filters
        if not isinstance(keys, OrderedKeys) or self.second_keys is not None:
            return [(None, self.key_bits) for _ in Side]
        return [(None if filters[side] else keys.plain(side), self.key_bits) for side in Side]

    def searching_both(self) -> "JoinCondition":
        """The same, with the second bands searched by a key of their own."""
        plan = self.plan.searching_both()
        return replace(self, plan=plan, residual=_residual(plan))

    @property
    def columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """The columns of left and of right that the residual reads."""
        return _columns_of([self.residual.condition] if self.residual else [])

    @property
    def kept_columns(self) -> tuple[frozenset[str], frozenset[str]]:
        """Those, and what the second bands read.

        With them, second keys can be made for stored tuples, and the residual of an engine that
        has none be checked: a snapshot serves both.
        """
        second = self.plan.second.parts if self.plan.second else ()
        return _columns_of([*self.plan.residual, *second])

    def encode(self, side: Side, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Keys of the rows of `batch`, and which of them can be in a pair at all.

        A row that cannot (a NULL in what the key is made of, a condition on this side alone that
        fails) has a place in the window and any key.
        """
        keys, _, matchable = self.encode_both(side, batch)
        return keys, np.ones(len(batch), bool) if matchable is None else matchable

    def encode_both(
        self, side: Side, batch: pa.RecordBatch
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """The same with second keys between, None where the plan has none; all rows are matchable
        where that is None.
        """
        name, bits = self._plain[side]
        plain = None if name is None else integers(batch.column(name), bits)
        if plain is not None:
            return plain, None, None
        frame = Frame(len(batch), {side: batch})
        matchable = is_true(all_of(self.plan.filters[side]), frame)
        keys = self.plan.keys.encode(side, frame, matchable)
        if keys.valid is not None:
            matchable = matchable & keys.valid
        if self.second_keys is None:
            return keys.data, None, matchable
        seconds = self.second_keys.encode(side, frame, matchable)
        if seconds.valid is not None:
            matchable = matchable & seconds.valid
        return keys.data, seconds.data, matchable

    def second_of(self, side: Side, rows: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Second keys of rows that have the columns of `columns`, and which of them are known."""
        assert self.second_keys is not None
        frame = Frame(len(rows), {side: rows})
        found = self.second_keys.encode(side, frame, np.ones(len(rows), bool))
        return found.data, found.known(len(rows))

    def equality_hashes(self, side: Side, batch: pa.RecordBatch) -> np.ndarray:
        """One hash of all equality keys of each row: those of a pair are the same, uint64."""
        frame = Frame(len(batch), {side: batch})
        needed = is_true(all_of(self.plan.filters[side]), frame)
        return HashedKeys(self.equalities).encode(side, frame, needed).data.view(np.uint64)

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        """Closed intervals of keys of the other side for probe keys of `side`.

        interval_dtype of shape (len(keys), at least 1); disjoint within a row, empty if lo > hi.
        """
        if keys.dtype != key_dtype(self.key_bits):
            raise TypeError(f"keys must be {key_dtype(self.key_bits)}, not {keys.dtype}")
        return self.plan.keys.intervals(side, keys)

    def explain(self) -> list[tuple[str, str]]:
        """What is done where, as (label, text)."""
        plan = self.plan
        device = plan.primary.parts if plan.primary else [e.part for e in plan.equalities]
        hashed = " (as a hash)" if device and not plan.primary else ""
        filters = [part for side in plan.filters for part in side]
        return [
            ("equality keys", ", ".join(e.part.text for e in plan.equalities) or "none"),
            ("on the device", (_text(device) + hashed) or _FOR_ALL[self.predicate == ALL]),
            ("second predicate", self._second_text()),
            ("one-sided filters", _text(filters) or "none"),
            ("residual", self.residual.condition.text if self.residual else "none"),
            ("key width", f"{self.key_bits} bits"),
            ("why", plan.why),
        ]

    def _second_text(self) -> str:
        if self.plan.second is None:
            return "none"
        searched = ", searched at the same time" if self.plan.both else ""
        return _text(self.plan.second.parts) + searched


_FOR_ALL = {True: "every pair", False: "no pair"}


def _text(parts: tuple[Node, ...] | list[Node]) -> str:
    return all_of(parts).text if parts else ""


def _columns_of(parts: Sequence[Node]) -> tuple[frozenset[str], frozenset[str]]:
    read = {column for part in parts for column in columns_of(part)}
    left, right = (frozenset(c.name for c in read if c.side is side) for side in Side)
    return left, right


def columns_read(
    on: str, left: pa.Schema, right: pa.Schema
) -> tuple[frozenset[str], frozenset[str]]:
    """The columns of left and of right that a condition reads, wherever that is done."""
    return _columns_of([Binder(left, right).boolean(_parsed(on))])


def compile_condition(on: str, left: pa.Schema, right: pa.Schema) -> JoinCondition:
    """Compile `on` for streams of these schemas.

    Raises ConditionError, one sentence that names the part, for what cannot be run: nothing that
    depends on the text and the schemas alone fails later.
    """
    condition = Binder(left, right).boolean(_parsed(on))
    plan = planned(condition)
    compiled = JoinCondition(on, plan, _residual(plan))
    _try(condition, compiled, left, right)
    return compiled


def _residual(plan: Plan) -> Residual | None:
    rest = all_of(plan.residual)
    return None if rest == TRUE else Residual(rest)


_EMPTY = "the condition is empty: write a comparison such as l.a = r.a"


def _parsed(on: str) -> exp.Expr:
    if not on.strip():
        raise ConditionError(_EMPTY)
    try:
        check_literals(on)
        trees = sqlglot.parse(on, read="spark")
    except SqlglotError as error:
        raise ConditionError(f"the condition cannot be read{_place(error)}") from None
    if len(trees) != 1:
        raise ConditionError(f"the condition has {len(trees)} statements instead of one")
    if trees[0] is None:
        raise ConditionError(_EMPTY)
    return trees[0]


def _place(error: SqlglotError) -> str:
    """Where the parser gave up."""
    if isinstance(error, ParseError) and error.errors:
        first = error.errors[0]
        return f" near `{first['highlight']}`, column {first['col']}"
    return ": a quote is left open"


def _try(
    condition: Node, compiled: JoinCondition, left: pa.Schema, right: pa.Schema
) -> None:
    """Run everything on no rows, which finds what the types did not."""
    empty = {side: pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in schema], schema=schema)
             for side, schema in ((Side.LEFT, left), (Side.RIGHT, right))}
    try:
        evaluate(condition, Frame(0, empty))
        for side in Side:
            keys, _ = compiled.encode(side, empty[side])
            compiled.intervals(side, keys)
            if compiled.plan.second is not None:
                _, seconds, _ = compiled.searching_both().encode_both(side, empty[side])
                assert seconds is not None
                compiled.plan.second.intervals(side, seconds)
    except EvaluationError as error:
        raise ConditionError(str(error)) from None
