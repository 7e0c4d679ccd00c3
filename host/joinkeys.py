"""The keys of a join: one integer a tuple, and the intervals that a probe searches."""

from dataclasses import dataclass

import numpy as np

from host.bands import ExactBands
from host.bounds import predicate_intervals
from host.evaluate import Frame, evaluate_where
from host.floatbands import FloatBands
from host.hashing import combined, hashes_of_integers, hashes_of_texts
from host.sql.expressions import Column, Node
from host.sql.values import Value
from host.sqltypes import Kind
from hw.spec.predicates import ALL, Predicate, compare
from hw.spec.tuples import Side, key_dtype

__all__ = ["ConstantKeys", "Equality", "HashedKeys", "JoinKeys", "OrderedKeys"]


@dataclass(frozen=True)
class Equality:
    """`left = right`: texts, or values whose sums in `bands` have one value only."""

    left: Node
    right: Node
    part: Node
    bands: ExactBands | None = None

    def hashes(self, side: Side, value: Value) -> np.ndarray:
        """Hashes of one side's values: equal values have equal ones, whatever their types."""
        if self.bands is None:
            return hashes_of_texts(value.data)
        keys = self.bands.codecs[side].encode(value.data).astype(np.int64).view(np.uint64)
        # f * left + g * right = c, so that f * left and c - g * right are the same number;
        # modulo 2 ** 64 too, where nothing overflows.
        factor, constant = self.bands.key_factors[side], 0
        if side is Side.RIGHT:
            band = self.bands.key_bands[0]
            assert band.lo is not None
            factor, constant = -factor, band.lo
        words = keys * _word(factor) + _word(constant)
        return hashes_of_integers(words.view(np.int64))


_EQUAL = compare("=")


def _word(number: int) -> np.uint64:
    return np.uint64(number & (1 << 64) - 1)


@dataclass(frozen=True)
class ConstantKeys:
    """Every tuple has the key 0: each probe meets all that is stored."""

    key_bits: int = 32
    predicate: Predicate | None = ALL

    def encode(self, side: Side, frame: Frame, needed: np.ndarray) -> Value:
        return Value(np.zeros(frame.rows, key_dtype(self.key_bits)))

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        assert self.predicate is not None
        return predicate_intervals(self.predicate, side, keys)


@dataclass(frozen=True)
class OrderedKeys:
    """Order-preserving keys of one value of each stream."""

    bands: ExactBands | FloatBands

    @property
    def key_bits(self) -> int:
        return max(codec.bits for codec in self.bands.codecs)

    @property
    def predicate(self) -> Predicate | None:
        return self.bands.predicate

    def plain(self, side: Side) -> str | None:
        """The column whose own integers may be the keys; None where these are made of them."""
        node, codec = (self.bands.left, self.bands.right)[side], self.bands.codecs[side]
        if not isinstance(node, Column) or node.type.kind is not Kind.INTEGER:
            return None
        made = codec.bias or codec.scale != 1 or node.type.bits != self.key_bits
        return None if made else node.name

    def encode(self, side: Side, frame: Frame, needed: np.ndarray) -> Value:
        node = (self.bands.left, self.bands.right)[side]
        value = evaluate_where(node, frame, needed)
        keys = self.bands.codecs[side].encode(value.data)
        return Value(keys.astype(key_dtype(self.key_bits), copy=False), value.valid)

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        return self.bands.intervals(side, keys)


@dataclass(frozen=True)
class HashedKeys:
    """One hash of all equalities; equal hashes do not prove equal values."""

    equalities: tuple[Equality, ...]
    key_bits: int = 64
    predicate: Predicate | None = _EQUAL

    def encode(self, side: Side, frame: Frame, needed: np.ndarray) -> Value:
        hashes, known = [], np.ones(frame.rows, bool)
        for equality in self.equalities:
            node = (equality.left, equality.right)[side]
            value = evaluate_where(node, frame, needed)
            hashes.append(equality.hashes(side, value))
            known &= value.known(frame.rows)
        return Value(combined(hashes).view(np.int64), known)

    def intervals(self, side: Side, keys: np.ndarray) -> np.ndarray:
        assert self.predicate is not None
        return predicate_intervals(self.predicate, side, keys)


JoinKeys = ConstantKeys | OrderedKeys | HashedKeys
