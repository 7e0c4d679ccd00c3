"""Which parts of a condition are comparisons of floats over one value of each stream."""

from dataclasses import dataclass, replace
from functools import cached_property, reduce

import numpy as np

from host.bands import MOST_BANDS, ExactBands, Rank, both, either
from host.bounds import merged, packed
from host.halflines import HalfLine, Region, region, special_keys
from host.keys import KeyCodec
from host.monotone import is_monotone, leaves
from host.sql.expressions import Call, Node, sides_of
from host.sql.linear import COMPLEMENT
from host.sqltypes import Kind
from hw.spec.predicates import Band
from hw.spec.tuples import Side

__all__ = ["FloatBands", "float_bands"]

_Clauses = tuple[tuple[HalfLine, ...], ...]
_LEFT, _RIGHT = frozenset({Side.LEFT}), frozenset({Side.RIGHT})
#: More would be too many intervals in any case.
_MOST_CLAUSES = 16


@dataclass(frozen=True)
class FloatBands:
    """Pairs for which all half lines of one of the clauses hold.

    left, right  expressions of one stream each, floats, whose values are the keys
    parts        the conjuncts that this is the meaning of
    """

    left: Node
    right: Node
    clauses: _Clauses
    parts: tuple[Node, ...]

    #: Rounding is no integer arithmetic: the device gets ready-made intervals.
    predicate = None

    @cached_property
    def codecs(self) -> tuple[KeyCodec, KeyCodec]:
        left, right = self.left.type, self.right.type
        return KeyCodec(left, left.bits), KeyCodec(right, right.bits)

    @property
    def rank(self) -> Rank:
        two_sided = all(len({half.rises(Side.RIGHT) for half in clause}) == 2
                        for clause in self.clauses)
        if two_sided:
            return Rank.BAND if len(self.clauses) == 1 else Rank.BANDS
        return Rank.INEQUALITY if len(self.clauses) == 1 else Rank.EXCLUSION

    @property
    def fits(self) -> bool:
        """Whether no probe asks for too many intervals: one a clause, and maybe NaN by itself."""
        zero, nan = np.zeros(1), np.full(1, np.nan)
        lone_nan = any(all(half.holds(side, zero, nan)[0] for half in clause)
                       for clause in self.clauses for side in Side)
        return len(self.clauses) + lone_nan <= MOST_BANDS

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        """Closed intervals of stored keys for probe keys of `side`, disjoint within a row."""
        bits = self.codecs[side.other].bits
        probes = self.codecs[side].decode(keys)
        halves = {half for clause in self.clauses for half in clause}
        found = {half: region(half, side, probes, bits) for half in halves}
        columns = [column for clause in self.clauses
                   for column in _columns(reduce(Region.__and__, [found[h] for h in clause]), bits)]
        lo, hi = (np.stack(bounds, axis=1) for bounds in zip(*columns, strict=True))
        if len(self.clauses) > 1:
            lo, hi = merged(lo, hi)
        return packed(lo, hi, keys.dtype.itemsize * 8)

    def joined(self, other: "FloatBands") -> "FloatBands | None":
        """Both at once, if they are about the same values and not too many bands come of it."""
        if (self.left, self.right) != (other.left, other.right):
            return None
        clauses = tuple(a + b for a in self.clauses for b in other.clauses)
        together = replace(self, clauses=clauses, parts=self.parts + other.parts)
        return together if together.fits else None

    def as_exact(self) -> ExactBands | None:
        """The same as bands of key differences, if all half lines compare the same two values."""
        halves = [half for clause in self.clauses for half in clause]
        first = halves[0]
        a, b = first.low, first.high
        if sides_of(a) == _RIGHT:
            a, b = b, a
        if (sides_of(a), sides_of(b)) != (_LEFT, _RIGHT):
            return None
        if any({half.low, half.high} != {a, b} for half in halves):
            return None
        bands: tuple[Band, ...] = ()
        for clause in self.clauses:
            bands = either(bands, reduce(both, [(_band(half, a),) for half in clause]))
        return ExactBands(a, b, (-1, 1), bands, self.parts)


def _band(half: HalfLine, left: Node) -> Band:
    """A plain comparison as a band of `right key - left key`."""
    least = 1 if half.strict else 0
    return Band(least, None) if half.low == left else Band(None, -least)


def _columns(found: Region, bits: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """A region as intervals of keys that do not overlap."""
    low, high, nan = special_keys(bits)
    has_low, has_high, has_nan = found.points
    some = found.lo <= found.hi
    from_low = some & has_low & (found.lo == low + 1)
    to_high = some & has_high & (found.hi == high - 1)
    # No stored key lies between inf and NaN.
    top = np.where(has_nan, nan, high)
    columns = [(np.where(from_low, low, found.lo), np.where(to_high, top, found.hi))]
    lone: list[tuple[np.ndarray, int, np.ndarray | int]] = [
        (has_low & ~from_low, low, low),
        (has_high & ~to_high, high, top),
        (has_nan & ~has_high, nan, nan),
    ]
    for needed, first, last in lone:
        if needed.any():
            columns.append((np.where(needed, first, 1), np.where(needed, last, 0)))
    return columns


def float_bands(node: Node) -> FloatBands | None:
    """The half lines of a boolean expression about two floats, if it is that."""
    found = _any_number(node)
    if found is None:
        return None
    found = replace(found, parts=(node,))
    return found if found.fits or found.as_exact() is not None else None


def _any_number(node: Node) -> FloatBands | None:
    if not isinstance(node, Call):
        return None
    if node.name in COMPLEMENT and node.args[0].type.kind is Kind.FLOAT:
        return _of_comparison(node)
    if node.name not in ("and", "or"):
        return None
    inner = [_any_number(arg) for arg in node.args]
    first = inner[0]
    if first is None:
        return None
    clauses = first.clauses
    for part in inner[1:]:
        if part is None or (part.left, part.right) != (first.left, first.right):
            return None
        if node.name == "or":
            clauses += part.clauses
        else:
            clauses = tuple(a + b for a in clauses for b in part.clauses)
        if len(clauses) > _MOST_CLAUSES:
            return None
    return replace(first, clauses=clauses)


def _of_comparison(node: Call) -> FloatBands | None:
    a, b = node.args
    subject = _subject(a, b)
    if subject is None:
        return None

    def half(low: Node, high: Node, strict: bool) -> HalfLine:
        return HalfLine(low, high, strict, *subject)

    clauses: dict[str, _Clauses] = {
        "<": ((half(a, b, True),),),
        "<=": ((half(a, b, False),),),
        ">": ((half(b, a, True),),),
        ">=": ((half(b, a, False),),),
        "=": ((half(a, b, False), half(b, a, False)),),
        "<>": ((half(a, b, True),), (half(b, a, True),)),
    }
    return FloatBands(*subject, clauses[node.name], (node,))


def _subject(a: Node, b: Node) -> tuple[Node, Node] | None:
    """The two values that a comparison is about: under the arithmetic, or the operands whole."""
    candidates = [leaves(a) + leaves(b)] if is_monotone(a) and is_monotone(b) else []
    for found in [*candidates, [a, b]]:
        ordered = sorted(found, key=lambda leaf: min(sides_of(leaf), default=Side.LEFT))
        if [sides_of(leaf) for leaf in ordered] == [_LEFT, _RIGHT]:
            return ordered[0], ordered[1]
    return None
