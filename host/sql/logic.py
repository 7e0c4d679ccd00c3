"""AND, OR and NOT over typed expressions, in three-valued logic.

Built here, an expression is in negation normal form: NOT stands only before what has no complement
of its own, ANDs and ORs are flat, and constants in them are gone where they can be.
"""

from collections.abc import Callable, Iterable

from host.sql.expressions import Call, Constant, LinearTest, Node
from host.sql.linear import COMPLEMENT
from host.sqltypes import BOOLEAN, Kind

__all__ = ["FALSE", "TRUE", "UNKNOWN", "all_of", "any_of", "conjuncts", "disjuncts", "is_implied",
           "negated"]

TRUE = Constant(True, BOOLEAN, "TRUE")
FALSE = Constant(False, BOOLEAN, "FALSE")
UNKNOWN = Constant(None, BOOLEAN, "NULL")


def conjuncts(node: Node) -> list[Node]:
    """What a node is the AND of."""
    return list(node.args) if isinstance(node, Call) and node.name == "and" else [node]


def disjuncts(node: Node) -> list[Node]:
    """What a node is the OR of."""
    return list(node.args) if isinstance(node, Call) and node.name == "or" else [node]


def all_of(parts: Iterable[Node]) -> Node:
    """The AND of the parts, in their order; TRUE if there is none."""
    return _joined("and", parts, conjuncts, TRUE, FALSE)


def any_of(parts: Iterable[Node]) -> Node:
    """The OR of the parts; what all of them demand stands before it."""
    whole = _joined("or", parts, disjuncts, FALSE, TRUE)
    branches = [conjuncts(part) for part in disjuncts(whole)]
    shared = [part for part in branches[0] if all(part in branch for branch in branches[1:])]
    if len(branches) == 1 or not shared:
        return whole
    rests = [all_of(part for part in branch if part not in shared) for branch in branches]
    return all_of([*shared, any_of(rests)])


def _joined(
    name: str, parts: Iterable[Node], split: Callable[[Node], list[Node]], idle: Constant,
    deciding: Constant,
) -> Node:
    flat: list[Node] = []
    for part in parts:
        flat += [piece for piece in split(part) if piece != idle and piece not in flat]
    if deciding in flat:
        return deciding
    if len(flat) <= 1:
        return flat[0] if flat else idle
    # The halves of a BETWEEN carry its whole text.
    texts = dict.fromkeys(_guarded(part, name) for part in flat)
    text = f" {name.upper()} ".join(texts)
    return Call(name, tuple(flat), BOOLEAN, text)


def _guarded(part: Node, name: str) -> str:
    inner = isinstance(part, Call) and part.name in ("and", "or") and part.name != name
    return f"({part.text})" if inner else part.text


def is_implied(part: Node) -> bool:
    """Whether other parts of the same AND say as much."""
    return isinstance(part, LinearTest) and part.implied


def negated(node: Node) -> Node:
    """NOT node."""
    text = f"NOT ({node.text})"
    match node:
        case Constant(value=None):
            return node
        case Constant():
            return FALSE if node.value else TRUE
        case LinearTest():
            return LinearTest(node.terms, node.band, not node.negated, text=text)
        case Call(name="and"):
            return any_of(negated(arg) for arg in node.args if not is_implied(arg))
        case Call(name="or"):
            return all_of(negated(arg) for arg in node.args)
        case Call(name="not"):
            return node.args[0]
        case Call() if node.name in COMPLEMENT and node.args[0].type.kind is Kind.FLOAT:
            # Spark's order of floats is total: what is not less is equal or greater.
            return Call(COMPLEMENT[node.name], node.args, BOOLEAN, text)
    return Call("not", (node,), BOOLEAN, text)
