"""Columns by the names that a condition gives them."""

from difflib import get_close_matches

import pyarrow as pa
from sqlglot import exp

from host.errors import ConditionError
from host.sql.expressions import Column
from host.sql.text import sql_of
from host.sqltypes import type_of_arrow
from hw.spec.tuples import Side

__all__ = ["Names"]


class Names:
    """The columns of two streams, found as Spark finds them: case does not count."""

    def __init__(self, left: pa.Schema, right: pa.Schema) -> None:
        self._schemas = {Side.LEFT: left, Side.RIGHT: right}

    @property
    def zone(self) -> str:
        """The time zone that all timestamps with one share, or UTC."""
        fields = [field for schema in self._schemas.values() for field in schema]
        zones = {field.type.tz for field in fields if pa.types.is_timestamp(field.type)} - {None}
        return zones.pop() if len(zones) == 1 else "UTC"

    def column(self, node: exp.Column) -> Column:
        """The column that `l.x`, `r.x` or an unambiguous `x` means."""
        text = sql_of(node)
        if isinstance(node.this, exp.Star):
            raise ConditionError(f"`{text}` is not supported in a condition")
        side = self._side(node, text)
        schema = self._schemas[side]
        place = self._places(schema, node.name)
        if len(place) > 1:
            raise ConditionError(f"`{text}` is ambiguous: {_stream(side)} has "
                                 + " and ".join(f"`{schema.names[i]}`" for i in place))
        if not place:
            raise self._unknown(side, node.name, text)
        field = schema.field(place[0])
        type = type_of_arrow(field.type)
        if type is None and pa.types.is_decimal(field.type) and field.type.scale >= 0:
            raise ConditionError(f"`{text}` is {field.type}, and a decimal has at most 18 digits")
        if type is None:
            raise ConditionError(f"`{text}` is {field.type}, which a condition cannot use")
        return Column(side, field.name, type, text)

    def _side(self, node: exp.Column, text: str) -> Side:
        if node.args.get("db"):
            raise ConditionError(f"`{text}` has too many parts: a column is l.name or r.name")
        if not node.table:
            sides = [side for side in Side if self._places(self._schemas[side], node.name)]
            if len(sides) == 2:
                raise ConditionError(f"`{text}` is in both streams: write l.{text} or r.{text}")
            if not sides:
                raise ConditionError(f"there is no column `{text}` in either stream"
                                     + _hint(node.name, self._all_names()))
            return sides[0]
        for side in Side:
            if node.table.lower() == side.letter:
                return side
        raise ConditionError(f"`{text}` names no stream: a column is l.name or r.name")

    def _places(self, schema: pa.Schema, name: str) -> list[int]:
        """Where `name` is; as it is written if possible, else in whatever case."""
        exact = [i for i, own in enumerate(schema.names) if own == name]
        alike = [i for i, own in enumerate(schema.names) if own.lower() == name.lower()]
        return exact or alike

    def _all_names(self) -> dict[str, str]:
        return {name: f"{side.letter}.{name}"
                for side, schema in self._schemas.items() for name in schema.names}

    def _unknown(self, side: Side, name: str, text: str) -> ConditionError:
        own = {known: f"{side.letter}.{known}" for known in self._schemas[side].names}
        return ConditionError(f"there is no column `{text}`" + _hint(name, own))


def _stream(side: Side) -> str:
    return f"the {side.name.lower()} stream"


def _hint(name: str, known: dict[str, str]) -> str:
    """The nearest existing name, or all of them."""
    lowered = {own.lower(): full for own, full in known.items()}
    near = get_close_matches(name.lower(), lowered, n=1)
    if near:
        return f": did you mean `{lowered[near[0]]}`?"
    return ": there is " + (", ".join(f"`{full}`" for full in known.values()) or "none")
