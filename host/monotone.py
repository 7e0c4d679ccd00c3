"""Trees of floating-point arithmetic that are monotone in each of their columns.

Rounding keeps order, so that sums, differences, and products and quotients with constants of floats
are monotone on finite values. What could become inf - inf on the way is left out.
"""

from collections.abc import Callable
from math import isfinite

import numpy as np

from host.sql.expressions import Call, Constant, Node
from host.sqltypes import DOUBLE, FLOAT, Kind

__all__ = ["compiled", "direction", "inverse", "is_monotone", "leaves"]

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]

#: A constant below this, added to a finite float of so many bits, never makes an infinity.
_SMALL = {32: 1e30, 64: 1e290}
_OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


def _inner(node: Node) -> tuple[Node, ...]:
    """The arguments that a tree is looked into for its leaves; none of a leaf."""
    match node:
        case Call(name="+" | "-" | "neg") if node.type.kind is Kind.FLOAT:
            return node.args
        case Call(name="*", args=(a, b)) if isinstance(a, Constant) or isinstance(b, Constant):
            return node.args
        case Call(name="/", args=(_, Constant())):
            return node.args
        case Call(name="cast", args=(arg,)) if (arg.type, node.type) == (FLOAT, DOUBLE):
            return node.args
    return ()


def leaves(node: Node) -> list[Node]:
    """What the arithmetic is about, constants aside; a leaf that comes twice is there twice."""
    if isinstance(node, Constant):
        return []
    inner = _inner(node)
    return [leaf for arg in inner for leaf in leaves(arg)] if inner else [node]


def is_monotone(node: Node) -> bool:
    """Whether the tree is monotone in each leaf over all finite values; leaves come once."""
    if isinstance(node, Constant):
        return isfinite(node.value)
    match node:
        case Call(name="*" | "/", args=args) if _inner(node):
            factors = [arg.value for arg in args if isinstance(arg, Constant)]
            return all(factors) and all(is_monotone(arg) for arg in args)
        case Call(name="+" | "-", args=(a, b)) if leaves(a) and leaves(b):
            return _stays_finite(a) and _stays_finite(b)
    return all(is_monotone(arg) for arg in _inner(node))


def _stays_finite(node: Node) -> bool:
    """Whether finite leaves never give an infinity: a leaf, moved by small constants."""
    inner = _inner(node)
    if isinstance(node, Constant):
        return abs(node.value) < _SMALL[node.type.bits]
    if isinstance(node, Call) and inner and node.name in ("*", "/"):
        return False
    return len(leaves(node)) == 1 and all(_stays_finite(arg) for arg in inner)


def direction(node: Node, leaf: Node) -> int:
    """1 if the tree grows with the leaf, -1 if it falls, 0 if the leaf is not in it."""
    if node == leaf:
        return 1
    args = _inner(node)
    signs = [direction(arg, leaf) for arg in args]
    match node:
        case Call(name="neg"):
            return -signs[0]
        case Call(name="-"):
            return signs[0] - signs[1]
        case Call(name="*" | "/") if args:
            factor = next(arg.value for arg in args if isinstance(arg, Constant))
            return sum(signs) * (1 if factor > 0 else -1)
    return sum(signs)


def compiled(node: Node, left: Node, right: Node) -> Function:
    """The tree as a function of the values of its two leaves."""
    if node == left:
        return lambda x, y: x
    if node == right:
        return lambda x, y: y
    dtype = np.dtype(f"f{node.type.bits // 8}").type
    if isinstance(node, Constant):
        constant = dtype(node.value)
        return lambda x, y: constant
    assert isinstance(node, Call)
    functions = [compiled(arg, left, right) for arg in node.args]
    if node.name == "cast":
        return lambda x, y: functions[0](x, y).astype(dtype)
    if node.name == "neg":
        return lambda x, y: -functions[0](x, y)
    operation = _OPERATIONS[node.name]
    return lambda x, y: operation(functions[0](x, y), functions[1](x, y))


def inverse(
    node: Node, leaf: Node, target: np.ndarray, value: Callable[[Node], np.ndarray]
) -> np.ndarray:
    """About which value of the leaf gives the tree the value `target`; `value` is of the rest."""
    if node == leaf:
        return target
    assert isinstance(node, Call)
    place = next(i for i, arg in enumerate(node.args) if leaf in leaves(arg))
    arg = node.args[place]
    others = [value(other) for i, other in enumerate(node.args) if i != place]
    match node.name, place:
        case "neg", _:
            target = -target
        case "+", _:
            target = target - others[0]
        case "-", 0:
            target = target + others[0]
        case "-", _:
            target = others[0] - target
        case "*", _:
            target = target / others[0]
        case "/", _:
            target = target * others[0]
    return inverse(arg, leaf, target, value)
