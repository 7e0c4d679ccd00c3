"""Comparisons of exact values as integer inequalities without rounding or overflow."""

from fractions import Fraction
from math import ceil, floor, gcd, lcm

from host.sql.casts import lossless
from host.sql.expressions import Call, Constant, LinearTest, Node, sides_of
from host.sqltypes import BOOLEAN, DAY_NS, Kind
from hw.spec.predicates import Band
from hw.spec.tuples import Side

__all__ = ["COMPLEMENT", "MIRROR", "linear_test"]

#: a op b is the same as b MIRROR[op] a, and as NOT a COMPLEMENT[op] b.
MIRROR = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
COMPLEMENT = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}

_NOTHING = Band(1, 0)

#: Factors of terms (numbers, or nanoseconds, for the integer 1 of the term), and a constant.
_Form = tuple[list[tuple[Fraction, Node]], Fraction]


def linear_test(op: str, a: Node, b: Node, text: str) -> Node:
    """The truth of `a op b`, for operands of exact types and one kind of quantity.

    Offsets and factors that are constants become part of the test, as long as each stream has one
    term at most; otherwise the two operands are its terms.
    """
    terms, constant = _difference(a, b)
    if not terms:
        assert isinstance(a, Constant) and isinstance(b, Constant)
        zero = Fraction(0)
        truths = {"=": constant == zero, "<>": constant != zero, "<": constant < zero,
                  "<=": constant <= zero, ">": constant > zero, ">=": constant >= zero}
        return Constant(truths[op], BOOLEAN, text)
    scale = lcm(*(factor.denominator for factor, _ in terms))
    factors = [int(factor * scale) for factor, _ in terms]
    divisor = gcd(*factors)
    if _leading(factors, [term for _, term in terms]) < 0:
        divisor, op = -divisor, MIRROR[op]
    whole = tuple((factor // divisor, term)
                  for factor, (_, term) in zip(factors, terms, strict=True))
    band, negated = _band(op, -constant * scale / divisor)
    return LinearTest(whole, band, negated, text=text)


def _difference(a: Node, b: Node) -> _Form:
    """a - b, terms of the left stream first."""
    (a_terms, a_constant), (b_terms, b_constant) = _form(a), _form(b)
    factors: dict[Node, Fraction] = {}
    apart = a_terms + [(-factor, term) for factor, term in b_terms]
    for factor, term in apart:
        factors[term] = factors.get(term, Fraction(0)) + factor
    if not all(sum(side in sides_of(term) for term in factors) <= 1 for side in Side):
        operands = [(a.type.unit, a), (-b.type.unit, b)]
        constant = sum((unit * node.value for unit, node in operands
                        if isinstance(node, Constant)), Fraction(0))
        return [part for part in operands if not isinstance(part[1], Constant)], constant
    # A term that cancels out must still make NULL of NULL.
    terms = [(factor, term) for term, factor in factors.items()] if all(factors.values()) else apart
    terms.sort(key=lambda item: min(sides_of(item[1]), default=Side.LEFT))
    return terms, a_constant - b_constant


def _form(node: Node) -> _Form:
    if isinstance(node, Constant):
        return [], node.type.unit * int(node.value)
    match node:
        case Call(name="cast", args=(inner,)) if lossless(inner.type, node.type):
            return _form(inner)
        case Call(name="days", args=(inner,)):
            return _scaled(_form(inner), Fraction(DAY_NS))
        case Call(name="neg", args=(inner,)):
            return _scaled(_form(inner), Fraction(-1))
        case Call(name="+" | "-" as op, args=(a, b)) if _keeps_digits(node):
            terms, constant = _form(a)
            more, further = _scaled(_form(b), Fraction(1 if op == "+" else -1))
            return terms + more, constant + further
        case Call(name="*", args=(a, Constant() as b)) | Call(name="*", args=(Constant() as b, a)):
            if _keeps_digits(node) and b.value:
                return _scaled(_form(a), b.type.unit * b.value)
    return [(node.type.unit, node)], Fraction(0)


def _scaled(form: _Form, factor: Fraction) -> _Form:
    terms, constant = form
    return [(factor * own, term) for own, term in terms], factor * constant


def _keeps_digits(node: Call) -> bool:
    """Whether the result has all digits: Spark drops some beyond 38."""
    if node.type.kind is not Kind.DECIMAL:
        return node.type.exact
    scales = [arg.type.scale for arg in node.args]
    return node.type.scale == (sum(scales) if node.name == "*" else max(scales))


def _leading(factors: list[int], terms: list[Node]) -> int:
    """The factor that is made positive: that of a term of the right stream, if there is one."""
    right = [factor for factor, term in zip(factors, terms, strict=True)
             if Side.RIGHT in sides_of(term)]
    return (right or factors)[-1]


def _band(op: str, bound: Fraction) -> tuple[Band, bool]:
    """The integers x with `x op bound`, as a band and whether it is negated."""
    match op:
        case "<":
            return Band(None, ceil(bound) - 1), False
        case "<=":
            return Band(None, floor(bound)), False
        case ">":
            return Band(floor(bound) + 1, None), False
        case ">=":
            return Band(ceil(bound), None), False
    return (Band(int(bound), int(bound)) if bound.denominator == 1 else _NOTHING), op == "<>"
