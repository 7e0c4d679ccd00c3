"""The columns of two DataFrames: as Arrow, and united in one frame of few columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType

from host.errors import OptionError
from hw.spec.tuples import Side

__all__ = ["Layout", "arrow_schema", "column", "spark_schema", "unite"]

#: The column of a united frame that says whose a row is.
SIDE = "side"


def arrow_schema(side: Side, frame: DataFrame) -> pa.Schema:
    """A frame's columns as Spark hands them to Python, every one nullable."""
    zone = frame.sparkSession.conf.get("spark.sql.session.timeZone")
    if not frame.columns:
        raise OptionError(f"{side.name.lower()} has no columns: select some")
    fields = []
    for field in frame.schema.toNullable():
        try:
            kind = to_arrow_type(field.dataType, timezone=zone)
        except PySparkTypeError:
            raise OptionError(
                f"{side.name.lower()} column {field.name!r} is {field.dataType.simpleString()}, "
                "which Arrow cannot carry: cast it or drop it"
            ) from None
        fields.append(pa.field(field.name, kind))
    return pa.schema(fields)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark types of a result."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def column(name: str) -> Column:
    """A column by exactly that name, dots and all."""
    return F.col("`" + name.replace("`", "``") + "`")


@dataclass(frozen=True)
class Layout:
    """Which columns of a united frame hold which columns of each side.

    places  for each side, the number of the united column that holds its first, second ... column
    """

    schemas: tuple[pa.Schema, pa.Schema]
    places: tuple[tuple[int, ...], tuple[int, ...]]

    def split(self, batch: pa.RecordBatch, first: int = 1) -> Iterator[tuple[Side, pa.RecordBatch]]:
        """The rows of each side in a batch, sides apart, each in its order.

        The side is column 0; the united columns begin at `first`.
        """
        sides = batch.column(0)
        rights = pc.sum(sides).as_py() or 0
        for side, rows in ((Side.LEFT, len(batch) - rights), (Side.RIGHT, rights)):
            if not rows:
                continue
            own = batch if rows == len(batch) else batch.filter(pc.equal(sides, int(side)))
            yield side, self._rows(side, own, first)

    def _rows(self, side: Side, batch: pa.RecordBatch, first: int) -> pa.RecordBatch:
        schema = self.schemas[side]
        arrays = [
            _as(batch.column(first + place), field.type)
            for place, field in zip(self.places[side], schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)


def unite(
    left: DataFrame, right: DataFrame, schemas: tuple[pa.Schema, pa.Schema],
    tags: Sequence[Sequence[Column]] = ((), ()),
) -> tuple[DataFrame, Layout]:
    """Both frames as one: column `side`, each side's tags, then columns that the sides share.

    Of either frame the columns of its schema are taken. Columns of one type share a place, so
    that a row is seldom wider than its own side was.
    """
    kinds: list[DataType] = []
    places: list[tuple[int, ...]] = []
    for frame, schema in zip((left, right), schemas, strict=True):
        types = frame.schema.toNullable()
        places.append(_placed([types[name].dataType for name in schema.names], kinds))
    united = [
        frame.select(
            F.lit(int(side)).cast("tinyint").alias(SIDE), *tags[side],
            *_filled(schemas[side].names, places[side], kinds),
        )
        for side, frame in zip(Side, (left, right), strict=True)
    ]
    return united[0].union(united[1]), Layout(schemas, (places[0], places[1]))


def _placed(wanted: Sequence[DataType], kinds: list[DataType]) -> tuple[int, ...]:
    """A place for each type, an old one where it is free, else a new one at the end of `kinds`."""
    taken: list[int] = []
    for kind in wanted:
        free = (i for i, own in enumerate(kinds) if own == kind and i not in taken)
        place = next(free, len(kinds))
        if place == len(kinds):
            kinds.append(kind)
        taken.append(place)
    return tuple(taken)


def _filled(
    columns: Sequence[str], places: tuple[int, ...], kinds: Sequence[DataType]
) -> list[Column]:
    names = {place: name for place, name in zip(places, columns, strict=True)}
    return [
        (column(names[i]) if i in names else F.lit(None)).cast(kind).alias(f"c{i}")
        for i, kind in enumerate(kinds)
    ]


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Spark marks what cannot be NULL inside nested types; the union of two frames does not."""
    return array if array.type == kind else array.cast(kind)
