"""Files in and out: Parquet, Arrow IPC and CSV, told apart by the endings of their names."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.errors import InputError, JoinError

__all__ = ["ENDINGS", "Sink", "Source", "ascends", "check_target", "chunks", "open_source"]

#: What a file's ending says about its format.
ENDINGS = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".arrow": "Arrow IPC",
    ".ipc": "Arrow IPC",
    ".feather": "Arrow IPC",
    ".csv": "CSV",
    ".csv.gz": "CSV",
}


class Source(Protocol):
    """A file of rows that can be read from its beginning any number of times.

    rows  how many there are, or None where only reading the file would tell
    """

    path: str
    schema: pa.Schema
    rows: int | None

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows in order, in batches of any size (`rows` is a hint), never all in memory."""


def open_source(path: str) -> Source:
    """Open a file and read its schema; InputError says what is wrong with it."""
    form = _format(path)
    if os.path.isdir(path):
        raise InputError(f"{path!r} is a directory: name a file")
    if not os.path.exists(path):
        raise InputError(f"there is no file {path!r}: check its name")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path!r} may not be read: check its permissions")
    if not os.path.getsize(path):
        raise InputError(f"{path!r} is empty, without so much as column names: write it again")
    with reading(path):
        if form == "Parquet":
            return ParquetSource(path)
        if form == "Arrow IPC":
            return IpcSource(path)
        from host.csv_files import CsvSource

        return CsvSource(path)


def _format(path: str) -> str:
    lowered = path.lower()
    for ending, form in ENDINGS.items():
        if lowered.endswith(ending):
            return form
    *most, last = ENDINGS
    raise InputError(
        f"the ending of {path!r} tells no format: use {', '.join(most)} or {last}"
    )


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Turn what goes wrong with a file's content into one sentence."""
    try:
        yield
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise InputError(
            f"{path!r} cannot be read as {_format(path)} ({_one_line(error)}): "
            "it is damaged or of another format"
        ) from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= 200 else text[:197] + "..."


class ParquetSource:
    """A Parquet file, read row group by row group."""

    def __init__(self, path: str) -> None:
        import pyarrow.parquet as pq

        self.path = path
        with pq.ParquetFile(path) as file:
            self.schema = file.schema_arrow
            self.rows: int | None = file.metadata.num_rows

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        # Buffered ahead, every row group that was read would stay in memory to the end.
        with reading(self.path), pq.ParquetFile(self.path, pre_buffer=False) as file:
            yield from file.iter_batches(batch_size=rows, columns=columns)


class IpcSource:
    """An Arrow IPC file or stream, mapped into memory: only what is looked at is read."""

    rows: int | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        with pa.memory_map(path) as mapped:
            self._is_file = mapped.read(6) == b"ARROW1"
            mapped.seek(0)
            self.schema = self._reader(mapped).schema

    def _reader(self, mapped: pa.MemoryMappedFile) -> Any:
        return pa.ipc.open_file(mapped) if self._is_file else pa.ipc.open_stream(mapped)

    def batches(self, rows: int, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        with reading(self.path), pa.memory_map(self.path) as mapped:
            reader = self._reader(mapped)
            if self._is_file:
                every = (reader.get_batch(i) for i in range(reader.num_record_batches))
            else:
                every = iter(reader)
            for batch in every:
                batch.validate()
                yield batch if columns is None else batch.select(columns)


def chunks(source: Source, rows: int) -> Iterator[pa.Table]:
    """All rows of a file in tables of exactly `rows`, but for the last, whatever its batches."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in source.batches(rows):
        begin = 0
        while count + batch.num_rows - begin >= rows:
            head = batch.slice(begin, rows - count)
            yield pa.Table.from_batches([*held, head], source.schema)
            begin += head.num_rows
            held, count = [], 0
        if begin < batch.num_rows:
            held.append(batch.slice(begin))
            count += held[-1].num_rows
    if held:
        yield pa.Table.from_batches(held, source.schema)


def ascends(source: Source, column: str) -> bool:
    """Whether the values of a column never go down; reads that column alone."""
    before = None
    for batch in source.batches(1 << 17, [column]):
        values = batch.column(0)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if not len(values) or values.null_count:
            continue
        if before is not None and not pc.less_equal(before, values[0]).as_py():
            return False
        if not np.all(pc.less_equal(values[:-1], values[1:])):
            return False
        before = values[-1]
    return True


def check_target(path: str, option: str, others: dict[str, str]) -> None:
    """Refuse a file that could not be written, or that is one of the `others` (name -> path)."""
    _format(path)
    target = os.path.realpath(path)
    for name, other in others.items():
        if target == os.path.realpath(other):
            raise JoinError(f"{option} {path!r} is the same file as {name}: choose another name")
    if os.path.isdir(target):
        raise JoinError(f"{option} {path!r} is a directory: name a file")
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise JoinError(f"{option} {path!r} is in a directory that does not exist: make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise JoinError(
            f"{option} {path!r} is in a directory that may not be written: choose another"
        )


class Sink:
    """A file under way: it gets its name when the `with` block ends well, else it is removed.

    So nobody ever finds half of it, and what had the name before stays until then.
    """

    def __init__(self, path: str, schema: pa.Schema) -> None:
        self.path = path
        folder, name = os.path.split(os.path.realpath(path))
        self._target = os.path.join(folder, name)
        self._passing = os.path.join(folder, f".{name[:100]}.{secrets.token_hex(4)}.part")
        self._writer: Any = None
        self._file: Any = None
        try:
            with self._writing():
                self._file = self._open_file()
                self._writer = self._open_writer(schema)
        except BaseException:
            self._discard()
            raise

    def _open_file(self) -> Any:
        plain = pa.OSFile(self._passing, "wb")
        if self.path.lower().endswith(".gz"):
            return pa.CompressedOutputStream(plain, "gzip")
        return plain

    def _open_writer(self, schema: pa.Schema) -> Any:
        form = _format(self.path)
        if form == "Arrow IPC":
            return pa.ipc.new_file(self._file, schema)
        try:
            if form == "Parquet":
                import pyarrow.parquet as pq

                return pq.ParquetWriter(self._file, schema)
            import pyarrow.csv as csv

            _check_csv(schema)
            return csv.CSVWriter(self._file, schema)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
            raise JoinError(
                f"{self.path!r} cannot hold these columns ({_one_line(error)}): "
                "write an .arrow file, or choose columns with --select"
            ) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise JoinError(
                f"{self.path!r} cannot be written ({_one_line(error)}): "
                "free some space or choose another place"
            ) from error

    def write(self, batch: pa.RecordBatch) -> None:
        with self._writing():
            self._writer.write_batch(batch)

    def __enter__(self) -> "Sink":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            return self._discard()
        try:
            with self._writing():
                self._writer.close()
                self._file.close()
                os.replace(self._passing, self._target)
        except BaseException:
            self._discard()
            raise
        return None

    def _discard(self) -> None:
        for part in (self._writer, self._file):
            try:
                if part is not None:
                    part.close()
            except (OSError, ValueError, pa.ArrowException):
                pass  # it goes anyway
        if os.path.exists(self._passing):
            os.unlink(self._passing)


def _check_csv(schema: pa.Schema) -> None:
    """Let the writer try one row of NULLs: it refuses types only when it meets them."""
    import pyarrow.csv as csv

    for field in schema:
        alone = pa.schema([field.with_nullable(True)])
        with csv.CSVWriter(pa.BufferOutputStream(), alone) as writer:
            writer.write_table(pa.table([pa.nulls(1, field.type)], schema=alone))
