"""Typed expressions: what a condition means once its names and types are known.

A node is immutable and compares by meaning: `text`, the SQL that a message quotes, takes no part.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from host.sqltypes import BOOLEAN, SqlType
from hw.spec.predicates import Band
from hw.spec.tuples import Side

__all__ = [
    "Call",
    "Column",
    "Constant",
    "LinearTest",
    "Node",
    "columns_of",
    "sides_of",
    "walk",
]


@dataclass(frozen=True)
class Column:
    """A column of one stream, by the name that the stream's schema gives it."""

    side: Side
    name: str
    type: SqlType
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Constant:
    """A value: for exact types the integer that stands for it, None for NULL."""

    value: Any
    type: SqlType
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class Call:
    """A function or operator of `host.sql.calls`, by name, with a type that follows Spark's."""

    name: str
    args: tuple["Node", ...]
    type: SqlType
    text: str = field(default="", compare=False)


@dataclass(frozen=True)
class LinearTest:
    """Whether the sum of factor * term lies in `band` (outside of it if `negated`).

    Terms are nodes of exact types and stand for their integers; the sum is taken without bounds,
    so that an offset never overflows. Factors are not zero and have no common divisor.

    implied  another part of the same AND is true only if this is: it narrows a search, and need
             not be checked
    """

    terms: tuple[tuple[int, "Node"], ...]
    band: Band
    negated: bool = False
    type: SqlType = BOOLEAN
    implied: bool = field(default=False, compare=False)
    text: str = field(default="", compare=False)

    @property
    def args(self) -> tuple["Node", ...]:
        return tuple(term for _, term in self.terms)


Node = Column | Constant | Call | LinearTest


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it."""
    yield node
    if isinstance(node, Call | LinearTest):
        for arg in node.args:
            yield from walk(arg)


def columns_of(node: Node) -> set[Column]:
    return {part for part in walk(node) if isinstance(part, Column)}


def sides_of(node: Node) -> frozenset[Side]:
    """The streams that the node reads."""
    return frozenset(column.side for column in columns_of(node))
