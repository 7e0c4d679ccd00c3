"""Commands between manager and worker, and their framing as bytes (PanJoin, steps 3 and 5).

A frame is a header and a payload. The header's `payload` counts the bytes that follow, so a
reader always knows how much to wait for; what carries frames over a cable (sequence numbers,
checksums, credits) is the link's business.
"""

from dataclasses import dataclass, field
from enum import IntEnum, IntFlag

import numpy as np

from hw.spec.predicates import REGISTER, Predicate, from_registers, registers
from hw.spec.tuples import RECORD, Side, interval_dtype, key_dtype, tuple_dtype

__all__ = [
    "ALL_SUBWINDOWS",
    "HEADER",
    "Command",
    "FrameError",
    "Opcode",
    "Reply",
    "Status",
    "pack_command",
    "pack_reply",
    "unpack_command",
    "unpack_reply",
]

MAGIC = 0x4D57  # "WM"
VERSION = 1
#: Most payload bytes of a frame: a reader never allocates more than this on a peer's word.
LARGEST_PAYLOAD = 1 << 28
#: A probe of every subwindow of a stream, oldest first.
ALL_SUBWINDOWS = 0xFFFF_FFFF

HEADER = np.dtype(
    [
        ("magic", "<u2"),
        ("version", "u1"),
        ("opcode", "u1"),
        ("side", "u1"),  # of the subwindow that is meant
        ("flags", "u1"),  # of a command: Shape; of a reply: Status
        ("key_bits", "u1"),
        ("bands", "u1"),
        ("subwindow", "<u4"),
        ("count", "<u4"),
        ("payload", "<u4"),
    ]
)


class FrameError(ValueError):
    """Bytes that are not a frame of this version."""


class Opcode(IntEnum):
    """What a worker can be asked for."""

    CREATE = 1
    INSERT = 2
    PROBE = 3
    EXPIRE = 4


class Shape(IntFlag):
    """How a probe's payload is laid out."""

    INTERVALS = 1  # explicit intervals; without it, keys after the predicate's registers
    NEGATED = 2


class Status(IntFlag):
    """The few bits of feedback that every reply carries (PanJoin III-A)."""

    NONE = 0
    NEWEST_FULL = 1
    OLDEST_EMPTY = 2
    REFUSED = 4


@dataclass(frozen=True, kw_only=True)
class Command:
    """One command about the subwindow `subwindow` of stream `side`.

    CREATE  count = capacity
    INSERT  tuples ascend by key, equal keys by rid
    PROBE   keys of the other stream ascending, and the predicate; or explicit intervals
    EXPIRE  the whole subwindow goes
    """

    opcode: Opcode
    side: Side
    subwindow: int
    key_bits: int = 32
    count: int = 0
    tuples: np.ndarray | None = field(default=None, compare=False)
    keys: np.ndarray | None = field(default=None, compare=False)
    predicate: Predicate | None = None
    intervals: np.ndarray | None = field(default=None, compare=False)


@dataclass(frozen=True, kw_only=True)
class Reply:
    """The answer to one command; records have the shape (subwindows, probes, runs)."""

    opcode: Opcode
    side: Side
    subwindow: int
    status: Status = Status.NONE
    records: np.ndarray = field(default_factory=lambda: np.empty((0, 0, 0), RECORD), compare=False)


def pack_command(command: Command) -> bytes:
    """The command as one frame."""
    flags, bands, count, payload = Shape(0), 0, command.count, b""
    if command.opcode is Opcode.INSERT:
        assert command.tuples is not None
        count, payload = len(command.tuples), command.tuples.tobytes()
    elif command.opcode is Opcode.PROBE and command.intervals is not None:
        flags, (count, bands) = Shape.INTERVALS, command.intervals.shape
        payload = command.intervals.tobytes()
    elif command.opcode is Opcode.PROBE:
        assert command.keys is not None and command.predicate is not None
        words = registers(command.predicate, command.side.other, command.key_bits)
        flags = Shape.NEGATED if command.predicate.negated else Shape(0)
        count, bands = len(command.keys), len(words)
        payload = words.tobytes() + command.keys.tobytes()
    head = (command.opcode, command.side, flags, command.key_bits, bands, command.subwindow)
    return _frame(head, count, payload)


def unpack_command(data: bytes) -> Command:
    """The command in one frame; FrameError says what is wrong with the bytes."""
    head, body = _open(data)
    opcode, side, key_bits = Opcode(head["opcode"]), Side(head["side"]), int(head["key_bits"])
    count, bands = int(head["count"]), int(head["bands"])
    parts: dict[str, object] = {}
    if opcode is Opcode.INSERT:
        parts["tuples"] = _array(body, tuple_dtype(key_bits), (count,))
    elif opcode is Opcode.PROBE and head["flags"] & Shape.INTERVALS:
        parts["intervals"] = _array(body, interval_dtype(key_bits), (count, bands))
    elif opcode is Opcode.PROBE:
        size = bands * REGISTER.itemsize
        words = _array(body[:size], REGISTER, (bands,))
        negated = bool(head["flags"] & Shape.NEGATED)
        parts["predicate"] = from_registers(words, side.other, negated)
        parts["keys"] = _array(body[size:], key_dtype(key_bits), (count,))
    elif body:
        raise FrameError(f"{opcode.name} has no payload, but {len(body)} bytes follow")
    return Command(
        opcode=opcode, side=side, subwindow=int(head["subwindow"]), key_bits=key_bits,
        count=count, **parts,  # type: ignore[arg-type]
    )


def pack_reply(reply: Reply) -> bytes:
    """The reply as one frame: count is its subwindows, the records' shape follows from the rest."""
    subwindows, probes, runs = reply.records.shape
    shape = np.array([subwindows, probes, runs], "<u4").tobytes()
    head = (reply.opcode, reply.side, reply.status, 0, 0, reply.subwindow)
    return _frame(head, reply.records.size, shape + reply.records.tobytes())


def unpack_reply(data: bytes) -> Reply:
    """The reply in one frame; FrameError says what is wrong with the bytes."""
    head, body = _open(data)
    shape = _array(body[:12], np.dtype("<u4"), (3,))
    records = _array(body[12:], RECORD, tuple(int(size) for size in shape))
    return Reply(
        opcode=Opcode(head["opcode"]), side=Side(head["side"]),
        subwindow=int(head["subwindow"]), status=Status(int(head["flags"])), records=records,
    )


def _frame(head: tuple[int, ...], count: int, payload: bytes) -> bytes:
    if len(payload) > LARGEST_PAYLOAD:
        raise FrameError(f"a frame holds {LARGEST_PAYLOAD} bytes at most, not {len(payload)}")
    header = np.zeros((), HEADER)
    header["magic"], header["version"] = MAGIC, VERSION
    names = ("opcode", "side", "flags", "key_bits", "bands", "subwindow")
    for name, value in zip(names, head, strict=True):
        header[name] = value
    header["count"], header["payload"] = count, len(payload)
    return header.tobytes() + payload


def _open(data: bytes) -> tuple[np.void, bytes]:
    """Check a frame's header and split it from the payload."""
    if len(data) < HEADER.itemsize:
        raise FrameError(f"a frame has at least {HEADER.itemsize} bytes, not {len(data)}")
    head, body = np.frombuffer(data, HEADER, 1)[0], data[HEADER.itemsize :]
    if head["magic"] != MAGIC or head["version"] != VERSION:
        raise FrameError(
            f"not a frame of version {VERSION}: it begins with {bytes(data[:3]).hex()}"
        )
    if head["payload"] != len(body) or len(body) > LARGEST_PAYLOAD:
        raise FrameError(f"the header announces {head['payload']} bytes, {len(body)} came")
    if head["opcode"] not in set(Opcode) or head["side"] not in set(Side):
        raise FrameError(f"opcode {head['opcode']} of side {head['side']} is unknown")
    return head, body


def _array(body: bytes, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    expected = int(np.prod(shape)) * dtype.itemsize
    if len(body) != expected:
        raise FrameError(f"the payload has {len(body)} bytes where {expected} were announced")
    return np.frombuffer(body, dtype).reshape(shape)
