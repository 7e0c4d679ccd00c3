"""Comparisons with their types checked."""

from dataclasses import replace

from host.errors import ConditionError
from host.sql.calls import adapted, call, cast_to, common, folded, mismatch
from host.sql.expressions import Call, Constant, LinearTest, Node, sides_of
from host.sql.linear import MIRROR, linear_test
from host.sql.logic import UNKNOWN, all_of, any_of, negated
from host.sqltypes import BOOLEAN, DAY_NS, Kind, common_type, decimal, interval

__all__ = ["compare", "null_safe_equal"]


def compare(op: str, a: Node, b: Node, text: str) -> Node:
    """`a op b`: exact values without rounding, floats by Spark's order, texts by their bytes."""
    a, b = adapted(a, b), adapted(b, a)
    if Kind.NULL in (a.type.kind, b.type.kind):
        return UNKNOWN
    type = common_type(a.type, b.type)
    if type is None:
        raise mismatch(text, a.type, b.type)
    if type.text:
        return _compare_text(op, a, b, text)
    if any(isinstance(operand, Constant) and operand.value is None for operand in (a, b)):
        return UNKNOWN
    if type.kind is Kind.FLOAT:
        a, b = cast_to(_unbounded(a), type), cast_to(_unbounded(b), type)
    return _compare_numbers(op, a, b, text)


def _unbounded(node: Node) -> Node:
    """An integer moved by constants, in a type that it does not overflow on its way to a float."""
    if not isinstance(node, Call) or node.type.kind is not Kind.INTEGER:
        return node
    moved = node.name in ("+", "-", "*") and any(isinstance(arg, Constant) for arg in node.args)
    if not moved and node.name != "neg":
        return node
    return replace(node, args=tuple(_unbounded(arg) for arg in node.args), type=decimal(38, 0))


def _compare_numbers(op: str, a: Node, b: Node, text: str) -> Node:
    if isinstance(a, Constant) and not isinstance(b, Constant):
        a, b, op = b, a, MIRROR[op]
    size = _under_abs(a)
    if size is not None and isinstance(b, Constant) and b.value == b.value:
        return _compare_size(op, size, b, text)
    if a.type.kind is Kind.FLOAT:
        return folded(Call(op, (a, b), BOOLEAN, text))
    return all_of([linear_test(op, a, b, text), *_implied(op, a, b, text)])


def _implied(op: str, a: Node, b: Node, text: str) -> list[Node]:
    """Weaker tests without clocks: days are of 24 hours, give or take what clocks jump."""
    straight_a, straight_b = _straight(a), _straight(b)
    if (straight_a, straight_b) == (a, b):
        return []
    tests = []
    if op in ("<", "<=", "="):
        tests.append(linear_test("<=", straight_a, _later(straight_b), text))
    if op in (">", ">=", "="):
        tests.append(linear_test(">=", _later(straight_a), straight_b, text))
    return [replace(test, implied=True) for test in tests if isinstance(test, LinearTest)]


def _straight(node: Node) -> Node:
    """Timestamps moved by lengths alone instead of by the clock."""
    if isinstance(node, Call) and node.name in ("shift", "+", "-") and node.type.zone:
        name = "+" if node.name == "shift" else node.name
        return replace(node, name=name, args=tuple(_straight(arg) for arg in node.args))
    return node


def _later(node: Node) -> Node:
    """More than two jumps of a clock, of 26 hours at most, can make up."""
    return Call("+", (node, Constant(3, interval(DAY_NS))), node.type)


def _under_abs(node: Node) -> Node | None:
    """x, if the node is ABS(x), maybe as a float: ABS and that cast change places freely."""
    match node:
        case Call(name="abs", args=(inner,)):
            return inner
        case Call(name="cast", args=(Call(name="abs", args=(inner,)),)):
            return cast_to(inner, node.type) if node.type.kind is Kind.FLOAT else None
    return None


def _compare_size(op: str, x: Node, limit: Constant, text: str) -> Node:
    """ABS(x) op limit, as comparisons of x: right for limits below zero too."""
    opposite = Constant(-limit.value, limit.type, limit.text)

    def test(operator: str, bound: Constant) -> Node:
        return _compare_numbers(operator, x, bound, text)

    match op:
        case "<" | "<=":
            return all_of([test(MIRROR[op], opposite), test(op, limit)])
        case ">" | ">=":
            return any_of([test(MIRROR[op], opposite), test(op, limit)])
        case "=":
            return all_of(_compare_size(part, x, limit, text) for part in ("<=", ">="))
    return negated(_compare_size("=", x, limit, text))


def _compare_text(op: str, a: Node, b: Node, text: str) -> Node:
    if op not in ("=", "<>") and len(sides_of(a) | sides_of(b)) == 2:
        raise ConditionError(f"`{text}` orders {a.type}, which joins only in equalities")
    return folded(Call(op, (a, b), BOOLEAN, text))


def null_safe_equal(a: Node, b: Node, text: str) -> Node:
    """`a <=> b`: NULL equals NULL and nothing else."""
    a, b = adapted(a, b), adapted(b, a)
    if a.type.kind is b.type.kind is Kind.NULL:
        return call("isnull", [a], text)
    (a, b), _ = common([a, b], text)
    return folded(Call("<=>", (a, b), BOOLEAN, text))
