"""Operators and functions with their types checked: nodes -> a node, or ConditionError.

`call` is the one way in. What has only constants below it is evaluated at once.
"""

from collections.abc import Callable
from dataclasses import replace

from host.errors import ConditionError, EvaluationError
from host.evaluate import Frame, evaluate
from host.sql.casts import castable
from host.sql.expressions import Call, Constant, Node
from host.sql.literals import date_of_text, timestamp_of_text
from host.sql.signatures import arithmetic_type, rounded_type
from host.sql.values import Value
from host.sql.zones import is_fixed
from host.sqltypes import (
    BOOLEAN,
    DAY_NS,
    DOUBLE,
    INT,
    STRING,
    Kind,
    SqlType,
    common_type,
    decimal,
    interval,
)

__all__ = ["adapted", "call", "cast", "cast_to", "common", "folded", "mismatch"]


def call(name: str, args: list[Node], text: str) -> Node:
    """The function `name` of these arguments."""
    return folded(_BUILDERS[name](name, args, text))


def folded(node: Node) -> Node:
    """The node, evaluated if it has only constants below it."""
    if not isinstance(node, Call) or not all(isinstance(arg, Constant) for arg in node.args):
        return node
    try:
        value = evaluate(node, Frame(1, {}))
    except EvaluationError as error:
        raise ConditionError(str(error)) from None
    return Constant(_only(value, node.type), node.type, node.text)


def _only(value: Value, type: SqlType) -> object:
    if not value.known(1)[0]:
        return None
    item = value.data[0]
    return item.as_py() if type.text else item if isinstance(item, int) else item.item()


def cast_to(node: Node, type: SqlType, text: str | None = None) -> Node:
    """The node as a value of `type`; an implicit cast keeps the node's text."""
    if node.type == type:
        return node
    return folded(Call("cast", (node,), type, node.text if text is None else text))


def common(args: list[Node], text: str) -> tuple[list[Node], SqlType]:
    """The arguments cast to the type in which all of them meet."""
    type = args[0].type
    for arg in args[1:]:
        met = common_type(type, arg.type)
        if met is None:
            raise mismatch(text, type, arg.type)
        type = met
    return [cast_to(arg, type) for arg in args], type


def mismatch(text: str, a: SqlType, b: SqlType) -> ConditionError:
    """Two types that do not go together, and the cure."""
    kinds = {a.kind, b.kind}
    timed = kinds & {Kind.INTERVAL, Kind.TIMESTAMP}
    if timed and (a.number or b.number):
        unit = "DAY" if DAY_NS in (a.unit_ns, b.unit_ns) else "SECOND"
        cure = f"write an INTERVAL, such as INTERVAL '10' {unit}"
    else:
        cure = "cast one of them"
    return ConditionError(f"`{text}` mixes {a} and {b}: {cure}")


def _refused(text: str, args: list[Node]) -> ConditionError:
    types = " and ".join(str(arg.type) for arg in args)
    return ConditionError(f"`{text}` cannot be computed of {types}")


def _nothing(args: list[Node], text: str) -> Node | None:
    """NULL, if an argument is the NULL without a type."""
    if any(arg.type.kind is Kind.NULL for arg in args):
        typed = [arg.type for arg in args if arg.type.kind is not Kind.NULL]
        return Constant(None, typed[0] if typed else INT, text)
    return None


def _arithmetic(name: str, args: list[Node], text: str) -> Node:
    if (nothing := _nothing(args, text)) is not None:
        return nothing
    a, b = adapted(args[0], args[1]), adapted(args[1], args[0])
    if name in "+-" and a.type.kind is Kind.DATE and b.type.kind is Kind.INTEGER:
        b = _as_days(b)
    if name == "+" and b.type.kind is Kind.DATE and a.type.kind is Kind.INTEGER:
        a = _as_days(a)
    if a.type.zone or b.type.zone:
        return _zoned(name, a, b, text)
    return _typed(name, a, b, text)


def _typed(name: str, a: Node, b: Node, text: str) -> Node:
    type = arithmetic_type(name, _width(a, b), _width(b, a))
    if type is None:
        raise mismatch(text, a.type, b.type)
    if type.kind is Kind.FLOAT:
        a, b = cast_to(a, type), cast_to(b, type)
    return Call(name, (a, b), type, text)


def _zoned(name: str, a: Node, b: Node, text: str) -> Node:
    """Arithmetic of timestamps with a zone, which Spark does on the zone's clock."""
    if name == "+" and a.type.kind is Kind.INTERVAL:
        a, b = b, a
    zone = a.type.zone
    if zone is None or is_fixed(zone):
        return _typed(name, a, b, text)
    if name == "-" and b.type.zone == zone:
        a, b = (cast_to(time, replace(time.type, zone=None)) for time in (a, b))
        return _typed(name, a, b, text)
    type = arithmetic_type(name, a.type, b.type)
    short = isinstance(b, Constant) and abs(b.value) * b.type.unit_ns < DAY_NS
    if type is None or b.type.kind is not Kind.INTERVAL or short:
        return _typed(name, a, b, text)
    return Call("shift", (a, b if name == "+" else call("neg", [b], b.text)), type, text)


def _as_days(number: Node) -> Node:
    return folded(Call("days", (number,), interval(DAY_NS), number.text))


def _width(node: Node, partner: Node) -> SqlType:
    """A node's type; an integer constant beside a decimal has just the digits it needs."""
    if (isinstance(node, Constant) and node.type.kind is Kind.INTEGER
            and partner.type.kind is Kind.DECIMAL):
        return decimal(len(str(abs(node.value))), 0)
    return node.type


def _same_number(name: str, args: list[Node], text: str) -> Node:
    """neg, abs."""
    (arg,) = args
    if not arg.type.number and arg.type.kind is not Kind.INTERVAL:
        raise _refused(text, args)
    unsigned = arg.type.kind is Kind.INTEGER and not arg.type.signed
    return Call(name, (arg,), decimal(20, 0) if unsigned else arg.type, text)


def _whole_number(name: str, args: list[Node], text: str) -> Node:
    """floor, ceil."""
    type = rounded_type(args[0].type)
    if type is None:
        raise _refused(text, args)
    return Call(name, (args[0],), type, text)


def _of_doubles(name: str, args: list[Node], text: str) -> Node:
    """sqrt, power, sign, isnan."""
    if not all(arg.type.number for arg in args):
        raise _refused(text, args)
    type = BOOLEAN if name == "isnan" else DOUBLE
    return Call(name, tuple(cast_to(arg, DOUBLE) for arg in args), type, text)


def _extreme(name: str, args: list[Node], text: str) -> Node:
    """least, greatest."""
    args, type = common(args, text)
    if type.text or len(args) < 2:
        raise _refused(text, args)
    return Call(name, tuple(args), type, text)


def _first_known(name: str, args: list[Node], text: str) -> Node:
    """coalesce."""
    args, type = common(args, text)
    return Call(name, tuple(args), type, text)


def _case(name: str, args: list[Node], text: str) -> Node:
    """condition, value, condition, value, ..., value of the rest."""
    values, type = common([*args[1:-1:2], args[-1]], text)
    args[1:-1:2], args[-1] = values[:-1], values[-1]
    return Call(name, tuple(args), type, text)


def _of_strings(name: str, args: list[Node], text: str) -> Node:
    """upper, lower, concat, trims, substring, matches, length; constants follow the strings."""
    binary_too = name in ("concat", "length")
    strings = args if name == "concat" else args[:1]
    kinds = {arg.type.kind for arg in strings}
    if not (kinds == {Kind.STRING} or (binary_too and kinds == {Kind.BINARY})):
        raise _refused(text, strings)
    for arg in args[len(strings):]:
        if not isinstance(arg, Constant):
            raise ConditionError(f"`{text}` needs `{arg.text}` to be constant")
    type = {"matches": BOOLEAN, "length": INT}.get(name, strings[0].type)
    # On a constant, which finds a pattern that cannot be read before the first row comes.
    folded(Call(name, (Constant(None, args[0].type), *args[1:]), type, text))
    return Call(name, tuple(args), type, text)


def _of_times(name: str, args: list[Node], text: str) -> Node:
    """year, month, day, hour, minute, second."""
    clock = name in ("hour", "minute", "second")
    if args[0].type.kind not in ((Kind.TIMESTAMP,) if clock else (Kind.DATE, Kind.TIMESTAMP)):
        raise _refused(text, args)
    return Call(name, (args[0],), INT, text)


def _is_null(name: str, args: list[Node], text: str) -> Node:
    return Call(name, (args[0],), BOOLEAN, text)


def cast(node: Node, type: SqlType, text: str, name: str = "cast") -> Node:
    """CAST, or TRY_CAST by `name`, as it is written."""
    if not castable(node.type, type):
        raise ConditionError(f"`{text}` cannot cast {node.type} to {type}")
    return node if node.type == type else folded(Call(name, (node,), type, text))


def adapted(node: Node, partner: Node) -> Node:
    """A constant as its partner wants it.

    A string beside a date or timestamp is one too. A date or timestamp without a zone beside a
    timestamp with one is read on that zone's clock.
    """
    type = partner.type
    if not isinstance(node, Constant) or type.kind not in (Kind.DATE, Kind.TIMESTAMP):
        return node
    if node.type == STRING:
        read = date_of_text if type.kind is Kind.DATE else timestamp_of_text
        node = read(node.value, node.text)
    if type.zone and node.type.kind in (Kind.DATE, Kind.TIMESTAMP) and not node.type.zone:
        unit_ns = min(node.type.unit_ns, type.unit_ns)
        return cast_to(node, SqlType(Kind.TIMESTAMP, unit_ns=unit_ns, zone=type.zone))
    return node


_Builder = Callable[[str, list[Node], str], Node]
_BUILDERS: dict[str, _Builder] = {
    **dict.fromkeys(("+", "-", "*", "/", "%", "div"), _arithmetic),
    **dict.fromkeys(("neg", "abs"), _same_number),
    **dict.fromkeys(("floor", "ceil"), _whole_number),
    **dict.fromkeys(("sqrt", "power", "sign", "isnan"), _of_doubles),
    **dict.fromkeys(("least", "greatest"), _extreme),
    **dict.fromkeys(("year", "month", "day", "hour", "minute", "second"), _of_times),
    **dict.fromkeys(("upper", "lower", "length", "substring", "concat", "trim", "ltrim", "rtrim",
                     "matches"), _of_strings),
    "coalesce": _first_known,
    "case": _case,
    "isnull": _is_null,
}
