"""The joins of running queries as a table in a terminal that is drawn again and again."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table

from spark_bridge.listener import Board, JoinListener

__all__ = ["live_table", "table_of"]

_TITLES = (
    "query", "join", "state", "batch", "tuples in", "tuples/s", "pairs out", "late",
    "window l / r", "batch s", "device s", "state MB", "workers",
)


def table_of(board: Board) -> Table:
    """One row to a join."""
    table = Table(*_TITLES, title="Watersmeet")
    for one in board.states():
        table.add_row(
            one.name, one.join[:8], one.state, str(one.batch), f"{one.tuples:,}",
            f"{one.tuples_per_s:,.0f}", f"{one.pairs:,}", f"{one.late:,}",
            f"{one.window[0]:,} / {one.window[1]:,}", f"{one.batch_s:.2f}", f"{one.device_s:.3f}",
            f"{one.state_bytes / 1e6:,.1f}", str(one.workers),
        )
    return table


@contextmanager
def live_table(
    spark: SparkSession, console: Console | None = None, every_s: float = 0.5
) -> Iterator[Board]:
    """Show the joins of all queries of a session while the block runs."""
    board = Board()
    listener = JoinListener(board).attach(spark)
    done = threading.Event()
    with Live(table_of(board), console=console, auto_refresh=False) as live:

        def draw() -> None:
            while not done.wait(every_s):
                live.update(table_of(board), refresh=True)

        drawing = threading.Thread(target=draw, daemon=True)
        drawing.start()
        try:
            yield board
        finally:
            done.set()
            drawing.join()
            spark.streams.removeListener(listener)
            live.update(table_of(board), refresh=True)
