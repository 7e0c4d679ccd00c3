"""watersmeet join: two files in, pairs or counts out."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pyarrow as pa

from host.commands.feed import Piece, feed
from host.commands.preview import Preview
from host.files import Sink, Source, check_target, open_source
from host.stream_join import StreamJoin
from hw.spec.tuples import Side

__all__ = ["join_keywords", "open_sources", "run"]

_KEYWORDS = (
    "on", "window", "time", "lateness", "arrival", "backend", "device", "index", "params", "batch",
    "linger", "workers", "order", "emit", "select", "late", "subwindow", "aggregates",
)


def run(arguments: argparse.Namespace) -> int:
    """Join the files; the summary is the last line on stderr."""
    _check_targets(arguments)
    sources = open_sources(arguments)
    with ExitStack() as open_things:
        join = open_things.enter_context(
            StreamJoin(
                left=sources[0].schema, right=sources[1].schema, **join_keywords(arguments)
            )
        )
        output: Sink | Preview = Preview(join.schema)
        if arguments.output:
            output = open_things.enter_context(Sink(arguments.output, join.schema))
        late = None
        if arguments.late_output:
            late = open_things.enter_context(Sink(arguments.late_output, late_schema(join)))
        pieces = feed(sources, join.options.arrival_columns, _rows_at_once(join.options.batch))
        advance = open_things.enter_context(_progress(sources))
        _push_all(join, pieces, output, late, advance, arguments.check_ending)
    try:
        if isinstance(output, Preview):
            output.show(sys.stdout)
    finally:
        if (report := join.engine_report) is not None:
            print(report, file=sys.stderr)
        print(join.metrics.summary(), file=sys.stderr)
    return 0


def open_sources(arguments: argparse.Namespace) -> tuple[Source, Source]:
    return open_source(arguments.left), open_source(arguments.right)


def join_keywords(arguments: argparse.Namespace) -> dict[str, Any]:
    """The keywords of StreamJoin, which has the command line's names for them."""
    return {name: getattr(arguments, name) for name in _KEYWORDS}


def _check_targets(arguments: argparse.Namespace) -> None:
    others = {"LEFT": arguments.left, "RIGHT": arguments.right}
    if arguments.output is not None:
        check_target(arguments.output, "--output", others)
        others["--output"] = arguments.output
    if arguments.late_output is not None:
        check_target(arguments.late_output, "--late-output", others)


def _rows_at_once(batch: int) -> int:
    """Whole batches, and several of them: the engines work on one while the next is prepared."""
    return batch * max(1, (1 << 17) // batch)


def _push_all(
    join: StreamJoin,
    pieces: Iterator[Piece],
    output: Sink | Preview,
    late: Sink | None,
    advance: Callable[[int], None],
    check_ending: Callable[[], None],
) -> None:
    for piece in pieces:
        for batch in _results(join, piece):
            output.write(batch)
            check_ending()
        _write_late(join, late)
        if not isinstance(piece, Side):
            advance(sum(part.num_rows for part in piece if part is not None))
    for batch in join.finish():
        output.write(batch)
        check_ending()
    _write_late(join, late)


def _results(join: StreamJoin, piece: Piece) -> Iterator[pa.RecordBatch]:
    if isinstance(piece, Side):
        return join.end(left=piece is Side.LEFT, right=piece is Side.RIGHT)
    left, right = piece
    return join.push(left=left, right=right)


def late_schema(join: StreamJoin) -> pa.Schema:
    """Of the side output: a row of either side, NULL in the columns of the other."""
    columns = [
        pa.field(f"{side.letter}_{field.name}", field.type)
        for side in Side
        for field in join.options.schema(side)
    ]
    return pa.schema([pa.field("side", pa.string()), pa.field("row", pa.int64()), *columns])


def _write_late(join: StreamJoin, late: Sink | None) -> None:
    for letter, numbers, rows in join.take_late() if late is not None else []:
        schema = late_schema(join)
        known = {f"{letter}_{name}": rows.column(name) for name in rows.schema.names}
        columns = [
            pa.array([letter] * len(numbers)),
            pa.array(numbers),
            *(known.get(f.name, pa.nulls(len(numbers), f.type)) for f in list(schema)[2:]),
        ]
        assert late is not None
        late.write(pa.RecordBatch.from_arrays(columns, schema=schema))


@contextmanager
def _progress(sources: tuple[Source, Source]) -> Iterator[Callable[[int], None]]:
    """A bar on stderr while the block runs, if that is a terminal; yields what moves it on."""
    if not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    counts = [source.rows for source in sources]
    total = None if None in counts else sum(count or 0 for count in counts)
    bar = Progress(
        TextColumn("joining"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} tuples"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    with bar:
        task = bar.add_task("", total=total)
        yield lambda rows: bar.advance(task, rows)
