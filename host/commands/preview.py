"""The first rows of a result as a table: drawn on a terminal, aligned text in a pipe."""

from typing import TextIO

import pyarrow as pa

__all__ = ["SHOWN_ROWS", "Preview", "cells"]

SHOWN_ROWS = 20


class Preview:
    """Keeps the first rows of what is written to it and counts the rest."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.rows = 0
        self._kept: list[pa.RecordBatch] = []

    def write(self, batch: pa.RecordBatch) -> None:
        if self.rows < SHOWN_ROWS and batch.num_rows:
            self._kept.append(batch.slice(0, SHOWN_ROWS - self.rows))
        self.rows += batch.num_rows

    def show(self, out: TextIO) -> None:
        names = self.schema.names
        table = pa.Table.from_batches(self._kept, self.schema)
        columns = [cells(column) for column in table.columns]
        numeric = [_is_number(kind) for kind in self.schema.types]
        rows = [list(row) for row in zip(*columns, strict=True)]
        if out.isatty():
            _draw(out, names, rows, numeric)
        else:
            _align(out, names, rows, numeric)
        if self.rows > SHOWN_ROWS:
            more = self.rows - SHOWN_ROWS
            print(f"... and {more:,} more; --output FILE keeps them all", file=out)
        out.flush()


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def cells(column: pa.ChunkedArray) -> list[str]:
    """Each value of a column as a person would write it; one line each."""
    if pa.types.is_timestamp(column.type):
        texts = [_without_zeros(text) for text in column.cast(pa.string()).to_pylist()]
    else:
        texts = column.to_pylist()
    return ["NULL" if text is None else " ".join(str(text).split()) for text in texts]


def _without_zeros(text: str | None) -> str | None:
    """'10:00:05.500000' -> '10:00:05.5'; a 'Z' stays behind."""
    if text is None or "." not in text:
        return text
    zone = "Z" if text.endswith("Z") else ""
    return text.removesuffix("Z").rstrip("0").rstrip(".") + zone


def _align(out: TextIO, names: list[str], rows: list[list[str]], numeric: list[bool]) -> None:
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for row in (names, *rows):
        padded = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        print("  ".join(padded).rstrip(), file=out)


def _draw(out: TextIO, names: list[str], rows: list[list[str]], numeric: list[bool]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for name, right in zip(names, numeric, strict=True):
        table.add_column(Text(name), justify="right" if right else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console(file=out).print(table)
