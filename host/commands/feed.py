"""Two files as the pieces that are pushed: one order of arrival, bounded memory."""

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from host.files import Source, ascends, chunks
from hw.spec.tuples import Side

__all__ = ["Piece", "feed"]

#: What one push takes of the left and of the right file, or which file has ended.
Piece = tuple[pa.Table | None, pa.Table | None] | Side


def feed(
    sources: tuple[Source, Source], arrival: tuple[str, str] | None, rows: int
) -> Iterator[Piece]:
    """Both files in pieces of `rows`.

    Without arrival columns a piece is the same stretch of rows of both, so that row i of left
    arrives just before row i of right. With them the file that is behind goes next; one that does
    not ascend by its column goes as a whole, since only within one push may rows be out of order.
    """
    if arrival is None:
        return zip_longest(*(chunks(source, rows) for source in sources))
    parts = [_parts(sources[side], arrival[side], rows) for side in Side]
    return _by_arrival((parts[0], parts[1]), arrival)


def _parts(source: Source, column: str, rows: int) -> Iterator[pa.Table]:
    if ascends(source, column):
        yield from chunks(source, rows)
    else:
        yield pa.concat_tables(chunks(source, rows))


def _by_arrival(
    parts: tuple[Iterator[pa.Table], Iterator[pa.Table]], arrival: tuple[str, str]
) -> Iterator[Piece]:
    """Push what is behind, so that little has to wait for the other file."""
    reached: list[Any] = [None, None]
    side = Side.LEFT
    while (part := next(parts[side], None)) is not None:
        yield (part, None) if side is Side.LEFT else (None, part)
        reached[side] = _newest(part.column(arrival[side]))
        side = _behind(reached)
    # That file has ended: the other one waits for it no longer.
    yield side
    for part in parts[side.other]:
        yield (part, None) if side is Side.RIGHT else (None, part)


def _behind(reached: list[Any]) -> Side:
    for side in Side:
        if reached[side] is None:
            return side
    return Side.LEFT if reached[Side.LEFT] <= reached[Side.RIGHT] else Side.RIGHT


def _newest(column: pa.ChunkedArray) -> Any:
    """The largest arrival of a part as a plain number; times in microseconds."""
    newest = pc.max(column)
    if pa.types.is_temporal(newest.type):
        return newest.cast(pa.timestamp("us"), safe=False).value
    return newest.as_py()
