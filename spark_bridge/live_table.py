"""The joins of running queries as a table in a terminal that is drawn again and again."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from rich.console import Console
from rich.live import Live
from rich.table import Table

from spark_bridge.listener import Board, JoinListener, JoinState

__all__ = ["live_table", "table_of"]

#: A line of the table -> what it shows of a join.
_LINES: dict[str, Callable[[JoinState], str]] = {
    "state": lambda one: one.state,
    "micro-batch": lambda one: f"{one.batch} ({one.batch_s:.2f} s)",
    "on the device": lambda one: f"{one.device_s:.3f} s",
    "tuples in": lambda one: f"{one.tuples:,} ({one.tuples_per_s:,.0f} a second)",
    "pairs out": lambda one: f"{one.pairs:,} ({one.pairs_per_s:,.0f} a second)",
    "late": lambda one: f"{one.late:,}",
    "window": lambda one: f"{one.window[0]:,} left, {one.window[1]:,} right",
    "state on disk": lambda one: f"{one.state_bytes / 1e6:,.1f} MB",
    "workers": lambda one: str(one.workers),
}


def table_of(board: Board) -> Table:
    """A column to a join: terminals are narrow."""
    states = board.states()
    table = Table("", *[f"{one.name} {one.join[:8]}" for one in states], title="Watersmeet")
    for name, shown in _LINES.items():
        table.add_row(name, *[shown(one) for one in states])
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
