"""A parsed condition -> a typed expression: names found, types checked, constants folded."""

from collections.abc import Callable

import pyarrow as pa
from sqlglot import exp

from host.errors import ConditionError
from host.sql import literals
from host.sql.calls import call, cast
from host.sql.comparisons import compare, null_safe_equal
from host.sql.expressions import Constant, Node, sides_of
from host.sql.functions import FUNCTIONS, TIME_PARTS, arguments_of, refusal, type_of_sql
from host.sql.logic import FALSE, TRUE, UNKNOWN, all_of, any_of, negated
from host.sql.names import Names
from host.sql.text import sql_of
from host.sql.textual import regex_of_like
from host.sqltypes import BOOLEAN, INT, NULL, STRING, Kind

__all__ = ["Binder"]

_COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_TRIMS = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim", "": "trim"}


class Binder:
    """Turns sqlglot's trees over `l.` and `r.` columns into typed expressions."""

    def __init__(self, left: pa.Schema, right: pa.Schema) -> None:
        self._names = Names(left, right)
        self._ways: dict[type[exp.Expr], Callable[..., Node]] = {
            exp.Column: self._names.column,
            exp.Paren: lambda node: self.bind(node.this),
            exp.Literal: self._literal,
            exp.HexString: literals.binary_of,
            exp.Null: lambda node: Constant(None, NULL, "NULL"),
            exp.Boolean: lambda node: TRUE if node.this else FALSE,
            exp.Interval: literals.interval_of,
            exp.And: lambda node: all_of(self._booleans(node, "this", "expression")),
            exp.Or: lambda node: any_of(self._booleans(node, "this", "expression")),
            exp.Not: lambda node: negated(self.boolean(node.this)),
            **dict.fromkeys(_COMPARISONS, self._comparison),
            exp.NullSafeEQ: self._null_safe,
            exp.NullSafeNEQ: lambda node: negated(self._null_safe(node)),
            exp.Between: self._between,
            exp.In: self._in,
            exp.Is: self._is,
            exp.Like: self._like,
            exp.ILike: self._like,
            exp.Escape: self._escape,
            exp.RegexpLike: self._regexp,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Trim: self._trim,
            exp.Substring: self._substring,
            exp.TsOrDsAdd: self._add_days,
            exp.Extract: self._extract,
            exp.Neg: self._negative,
        }

    def bind(self, node: exp.Expr) -> Node:
        """The typed expression of `node`; ConditionError names the part that has none."""
        way = self._ways.get(type(node))
        if way is not None:
            return way(node)
        if type(node) not in FUNCTIONS:
            raise refusal(node)
        name, keys = FUNCTIONS[type(node)]
        args = [self.bind(arg) for arg in arguments_of(node, keys)]
        return call(name, args, sql_of(node))

    def boolean(self, node: exp.Expr) -> Node:
        """The expression of a node that has to be TRUE, FALSE or NULL."""
        bound = self.bind(node)
        if bound.type.kind is Kind.NULL:
            return UNKNOWN
        if bound.type != BOOLEAN:
            raise ConditionError(
                f"`{sql_of(node)}` is {bound.type} where TRUE or FALSE is needed")
        return bound

    def _booleans(self, node: exp.Expr, *keys: str) -> list[Node]:
        return [self.boolean(node.args[key]) for key in keys]

    def _literal(self, node: exp.Literal) -> Node:
        if node.is_string:
            return literals.string_of(node)
        return literals.number_of(node.this, sql_of(node))

    def _negative(self, node: exp.Neg) -> Node:
        if isinstance(node.this, exp.Literal) and not node.this.is_string:
            # With its sign: the smallest BIGINT has no positive counterpart.
            return literals.number_of(f"-{node.this.this}", sql_of(node))
        return call("neg", [self.bind(node.this)], sql_of(node))

    def _comparison(self, node: exp.Binary) -> Node:
        a, b = self.bind(node.this), self.bind(node.expression)
        return compare(_COMPARISONS[type(node)], a, b, sql_of(node))

    def _null_safe(self, node: exp.Binary) -> Node:
        a, b = self.bind(node.this), self.bind(node.expression)
        return null_safe_equal(a, b, f"{a.text} <=> {b.text}")

    def _between(self, node: exp.Between) -> Node:
        text, value = sql_of(node), self.bind(node.this)
        low, high = self.bind(node.args["low"]), self.bind(node.args["high"])
        if not node.args.get("symmetric"):
            return self._inside(value, low, high, text)
        return any_of([self._inside(value, low, high, text), self._inside(value, high, low, text)])

    def _inside(self, value: Node, low: Node, high: Node, text: str) -> Node:
        lower = upper = text
        if sides_of(low) != sides_of(high):
            # The halves may end up in different places.
            lower, upper = f"{value.text} >= {low.text}", f"{value.text} <= {high.text}"
        return all_of([compare(">=", value, low, lower), compare("<=", value, high, upper)])

    def _in(self, node: exp.In) -> Node:
        choices = arguments_of(node, ("this", "expressions"))
        if len(choices) < 2:
            raise refusal(node)
        value, *items = [self.bind(choice) for choice in choices]
        return any_of(compare("=", value, item, f"{value.text} = {item.text}") for item in items)

    def _is(self, node: exp.Is) -> Node:
        text, value = sql_of(node), self.bind(node.this)
        if isinstance(node.expression, exp.Null):
            return call("isnull", [value], text)
        if not isinstance(node.expression, exp.Boolean):
            raise refusal(node)
        return null_safe_equal(self.boolean(node.this), self.bind(node.expression), text)

    def _like(self, node: exp.Binary, escape: str = "\\") -> Node:
        if node.args.get("negate"):
            positive = node.copy()
            positive.set("negate", None)
            return negated(self._like(positive, escape))
        value, pattern = self._matched(node)
        written = pattern.value
        if isinstance(node, exp.ILike):
            value, written = call("lower", [value], value.text), written.lower()
        regex = Constant(regex_of_like(written, escape), STRING, pattern.text)
        return call("matches", [value, regex], sql_of(node))

    def _matched(self, node: exp.Expr) -> tuple[Node, Constant]:
        """What is matched, and the pattern."""
        value, pattern = (self.bind(arg) for arg in arguments_of(node, ("this", "expression")))
        if not isinstance(pattern, Constant) or pattern.type != STRING:
            raise ConditionError(f"`{sql_of(node)}` needs a constant pattern")
        return value, pattern

    def _escape(self, node: exp.Escape) -> Node:
        mark = node.expression
        if not isinstance(node.this, exp.Like | exp.ILike) or not isinstance(mark, exp.Literal):
            raise refusal(node)
        return self._like(node.this, mark.this)

    def _regexp(self, node: exp.RegexpLike) -> Node:
        return call("matches", list(self._matched(node)), sql_of(node))

    def _case(self, node: exp.Case) -> Node:
        text, args = sql_of(node), []
        subject = node.this and self.bind(node.this)
        for branch in node.args["ifs"]:
            if subject is None:
                args.append(self.boolean(branch.this))
            else:
                item = self.bind(branch.this)
                args.append(compare("=", subject, item, f"{subject.text} = {item.text}"))
            args.append(self.bind(branch.args["true"]))
        default = node.args.get("default")
        args.append(self.bind(default) if default else Constant(None, NULL, "NULL"))
        return call("case", args, text)

    def _if(self, node: exp.If) -> Node:
        other = node.args.get("false")
        return call("case", [
            self.boolean(node.this), self.bind(node.args["true"]),
            self.bind(other) if other else Constant(None, NULL, "NULL"),
        ], sql_of(node))

    def _cast(self, node: exp.Cast) -> Node:
        text, value = sql_of(node), self.bind(node.this)
        type = type_of_sql(node.to, value.type, self._names.zone)
        if type is None:
            raise ConditionError(f"`{text}` names a type that a condition cannot use")
        if isinstance(value, Constant) and value.type == STRING:
            # A date or timestamp that is written out; without an offset it fits any zone.
            if type.kind is Kind.DATE:
                return literals.date_of_text(value.value, text)
            if type.kind is Kind.TIMESTAMP:
                return literals.timestamp_of_text(value.value, text)
        is_try = isinstance(node, exp.TryCast) and node.args.get("safe")
        return cast(value, type, text, "try_cast" if is_try else "cast")

    def _trim(self, node: exp.Trim) -> Node:
        characters = node.args.get("expression")
        chosen = self.bind(characters) if characters else Constant(" ", STRING, "' '")
        name = _TRIMS[node.args.get("position") or ""]
        return call(name, [self.bind(node.this), chosen], sql_of(node))

    def _substring(self, node: exp.Substring) -> Node:
        length = node.args.get("length")
        return call("substring", [
            self.bind(node.this), self.bind(node.args["start"]),
            self.bind(length) if length else Constant(None, INT, "NULL"),
        ], sql_of(node))

    def _extract(self, node: exp.Extract) -> Node:
        name = node.this.name.lower()
        if name not in TIME_PARTS:
            raise refusal(node)
        return call(name, [self.bind(node.expression)], sql_of(node))

    def _add_days(self, node: exp.TsOrDsAdd) -> Node:
        """DATE_ADD and DATE_SUB."""
        if node.args["unit"].name != "DAY":
            raise refusal(node)
        day, days = self.bind(node.this), self.bind(node.expression)
        if day.type.kind is not Kind.DATE:
            raise ConditionError(f"`{sql_of(node)}` cannot be computed of {day.type}")
        return call("+", [day, days], sql_of(node))
