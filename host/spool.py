"""Parts of a micro-batch on disk: rows of both streams in one checksummed file.

A part is a row of Arrow IPC messages (each a record batch of one stream), an index of them as
JSON, and a trailer:

    magic | message ... | index | length of the index, xxh3-128 of all that stands before, magic

A file appears whole or not at all, and the first one under a name stays.
"""

import base64
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import xxhash

from host.errors import StateError
from hw.spec.tuples import Side

__all__ = [
    "AHEAD_ROWS",
    "Message",
    "Part",
    "Told",
    "Unfinished",
    "is_first",
    "messages_of",
    "read_part",
    "spool_directory",
    "sync_directory",
    "write_part",
]

_MAGIC = b"WSMTSPL1"
_TRAILER = struct.Struct("<Q16s8s")
#: Messages begin at multiples of this, so that mapped arrays are aligned.
_ALIGNMENT = 64

#: Rows after which somebody who reads along is told of them: a batch of the engine.
AHEAD_ROWS = 1 << 16
#: Rows of one stream, come to their end, that are worth telling of by themselves.
_STREAM_ROWS = 1 << 14

Batches = list[pa.RecordBatch]
#: A record batch in a file: whose rows, where it begins, how long it is.
Message = tuple[int, int, int]
#: Told of a file in the making, by the name that it has for now, and of the next messages in it.
Told = Callable[[str, list[Message]], None]


@dataclass(frozen=True)
class Part:
    """What is known of one file: enough to find it, and to see that it is the same one.

    A part without rows has no file; its checksum is empty.
    """

    name: str
    left_rows: int
    right_rows: int
    bytes: int
    checksum: str

    @property
    def rows(self) -> tuple[int, int]:
        return self.left_rows, self.right_rows

    def to_json(self) -> str:
        """The same text for the same part, always."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Part":
        return cls(**json.loads(text))


def spool_directory(directory: str | Path, epoch: int) -> Path:
    """Where the parts of an epoch are, under the directory of a join."""
    return Path(directory) / "spool" / str(epoch)


def write_part(
    directory: str | Path,
    epoch: int,
    part: str,
    batches: Iterable[tuple[Side, pa.RecordBatch]],
    told: Told | None = None,
    told_rows: int = AHEAD_ROWS,
) -> Part:
    """Write the rows of both streams as they come; an attempt that finds the file leaves it.

    Its bytes and its name are on the disk when this returns. `told` hears of the rows meanwhile,
    `told_rows` or a few more at a time, and where the rows of one stream are followed by those of
    the other.
    """
    place = spool_directory(directory, epoch)
    target = place / f"{part}.arrow"
    if target.exists():
        return _found(target)
    place.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=place, prefix=f".{part}-")
    try:
        with os.fdopen(handle, "wb") as file:
            writer = _Writer(file)
            for side, batch in batches:
                if told is not None and writer.has_ended_before(side):
                    told(Path(partial).name, writer.tell())
                writer.add(side, batch)
                if told is not None and writer.untold_rows >= told_rows:
                    told(Path(partial).name, writer.tell())
            if not any(writer.rows):
                return Part(part, 0, 0, 0, "")
            if told is not None and writer.begun and writer.untold_rows:
                # Worth it only beside work that is under way: small parts are joined at once.
                told(Path(partial).name, writer.tell())
            checksum = writer.finish()
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(partial, target)  # unlike a rename it never replaces what is there
        except FileExistsError:
            return _found(target)
        _sync_name(target)
        return Part(part, writer.rows[0], writer.rows[1], writer.end, checksum)
    finally:
        os.unlink(partial)


def _found(target: Path) -> Part:
    """The part that another attempt wrote, which may not have come as far as its name's sync."""
    part = _described(target)
    _sync_name(target)
    return part


def _sync_name(target: Path) -> None:
    """Make the names of a part and of its epoch durable."""
    sync_directory(target.parent)
    sync_directory(target.parent.parent)


def sync_directory(directory: str | Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Writer:
    """Writes and hashes in one pass."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._hash = xxhash.xxh3_128()
        self._schemas: list[pa.Schema | None] = [None, None]
        self._index: list[Message] = []
        self._told = 0
        self.untold_rows = 0
        self.rows = [0, 0]
        self.end = 0
        self._put(_MAGIC)

    def add(self, side: Side, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        known = self._schemas[side]
        if known is None:
            self._schemas[side] = batch.schema
        elif not known.equals(batch.schema):
            raise StateError(
                f"a part has {side.name.lower()} batches of several schemas: write one schema"
            )
        self._put(bytes(-self.end % _ALIGNMENT))
        message = batch.serialize()
        self._index.append((int(side), self.end, message.size))
        self._put(message)
        self.rows[side] += batch.num_rows
        self.untold_rows += batch.num_rows

    @property
    def begun(self) -> bool:
        """Whether somebody was told of messages already."""
        return self._told > 0

    def has_ended_before(self, side: Side) -> bool:
        """Whether rows of `side` are the first after many of the other stream."""
        return self.untold_rows >= _STREAM_ROWS and self._index[-1][0] != int(side)

    def tell(self) -> list[Message]:
        """The messages since the last call; whoever opens the file finds them in it."""
        self._file.flush()
        fresh, self._told, self.untold_rows = self._index[self._told :], len(self._index), 0
        return fresh

    def finish(self) -> str:
        schemas = [
            None if schema is None else base64.b64encode(schema.serialize()).decode()
            for schema in self._schemas
        ]
        index = {"schemas": schemas, "rows": self.rows, "batches": self._index}
        text = json.dumps(index).encode()
        self._put(text)
        digest = self._hash.digest()
        self._put(_TRAILER.pack(len(text), digest, _MAGIC))
        return digest.hex()

    def _put(self, data: Any) -> None:
        self._file.write(data)
        self._hash.update(data)
        self.end += len(data)


def read_part(directory: str | Path, epoch: int, part: Part) -> tuple[Batches, Batches]:
    """The left and the right rows of a part, mapped, after a look at every byte.

    StateError names the file if it is missing, was changed or is another one.
    """
    if not any(part.rows):
        return [], []
    path = spool_directory(directory, epoch) / f"{part.name}.arrow"
    described, data, index = _opened(path)
    if described != part:
        raise StateError(
            f"the state file {path} is not the one that epoch {epoch} was made of: put that back"
        )
    sides: tuple[Batches, Batches] = ([], [])
    schemas = [
        None if text is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
        for text in index["schemas"]
    ]
    for side, start, size in index["batches"]:
        sides[side].append(pa.ipc.read_record_batch(data.slice(start, size), schemas[side]))
    return sides


def messages_of(directory: str | Path, epoch: int, part: Part) -> tuple[int, list[Message]]:
    """The number of a part's file in its file system, and the messages that it says it has.

    Whether it is whole is seen by whoever reads it.
    """
    path = spool_directory(directory, epoch) / f"{part.name}.arrow"
    _, content, length = _trailer(path, _mapped(path))
    try:
        index = json.loads(bytes(content[-length:]))
    except ValueError:
        raise _damaged(path) from None
    return path.stat().st_ino, [(side, start, size) for side, start, size in index["batches"]]


def is_first(messages: list[Message]) -> bool:
    """Whether nothing stands before them in their file."""
    return bool(messages) and messages[0][1] == _ALIGNMENT


class Unfinished:
    """A part that is being written, read along; what it becomes in the end is to be checked.

    It may get its name meanwhile: the file stays the same. FileNotFoundError if it has it already.
    """

    def __init__(self, directory: str | Path, epoch: int, name: str) -> None:
        self._file = (spool_directory(directory, epoch) / name).open("rb")
        self.inode = os.fstat(self._file.fileno()).st_ino
        self.messages: list[Message] = []
        self.rows = [0, 0]

    def read(
        self, messages: list[Message], schemas: tuple[pa.Schema, pa.Schema]
    ) -> tuple[Batches, Batches]:
        """The left and the right rows of the next messages, mapped."""
        sides: tuple[Batches, Batches] = ([], [])
        data = pa.py_buffer(mmap.mmap(self._file.fileno(), 0, prot=mmap.PROT_READ))
        for side, start, size in messages:
            batch = pa.ipc.read_record_batch(data.slice(start, size), schemas[side])
            sides[side].append(batch)
            self.rows[side] += batch.num_rows
        self.messages += messages
        return sides

    def close(self) -> None:
        self._file.close()


def _described(path: Path) -> Part:
    return _opened(path)[0]


def _opened(path: Path) -> tuple[Part, pa.Buffer, dict[str, Any]]:
    """A file that is whole: what it is, its bytes and its index."""
    data = _mapped(path)
    digest, content, length = _trailer(path, data)
    if xxhash.xxh3_128_digest(content) != digest:
        raise _damaged(path)
    index = json.loads(bytes(content[-length:]))
    left, right = index["rows"]
    return Part(path.stem, left, right, data.size, digest.hex()), data, index


def _mapped(path: Path) -> pa.Buffer:
    try:
        with pa.memory_map(str(path)) as source:
            return source.read_buffer()
    except FileNotFoundError:
        raise StateError(f"the state file {path} is missing: put it back") from None
    except (OSError, pa.ArrowInvalid) as error:  # also a file of no bytes, which has no map
        raise StateError(f"the state file {path} cannot be read: {error}") from None


def _trailer(path: Path, data: pa.Buffer) -> tuple[bytes, memoryview, int]:
    """What the end of a file says: the digest of all before it, that, and how long the index is."""
    view = memoryview(data)
    if len(view) < _TRAILER.size:
        raise _damaged(path)
    length, digest, magic = _TRAILER.unpack(view[-_TRAILER.size :])
    if magic != _MAGIC:
        raise _damaged(path)
    return digest, view[: -_TRAILER.size], length


def _damaged(path: Path) -> StateError:
    return StateError(f"the state file {path} is damaged: its bytes do not have their checksum")
