"""Frames of the link between host and board: one format for the cable and for the simulator.

    FLAG | kind session seq ack credit length payload crc | FLAG

Between flags, a byte that is FLAG or ESCAPE is sent as ESCAPE and itself xor MASK, so that a
reader who lost its place finds the next frame at the next flag. The checksum is the CRC-32 of
Ethernet and zlib over everything before it. Numbers are little endian.

The sender of DATA frames numbers them from 0, keeps each until it is acknowledged, and sends
no more than the receiver's credit allows. The receiver takes a DATA frame only if it is sound, of
its session, and the very next one; whatever else comes, it answers with what it expects. So a
frame that was damaged, lost, doubled or overtaken changes nothing that is above the link.
"""

import zlib
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

__all__ = ["BAUD", "ESCAPE", "FLAG", "FRAME", "MASK", "MOST_PAYLOAD", "WINDOW", "Deframer", "Kind",
           "LinkFrame", "frame_bytes"]

FLAG = 0x7E
ESCAPE = 0x7D
MASK = 0x20
#: Bits a second on the serial line of every board.
BAUD = 3_000_000
#: Most payload bytes of a frame.
MOST_PAYLOAD = 512
#: Most DATA frames that are under way and not acknowledged.
WINDOW = 8

FRAME = np.dtype(
    [
        ("kind", "u1"),
        ("session", "<u2"),
        ("seq", "u1"),  # number of a DATA frame
        ("ack", "u1"),  # number of the DATA frame that the sender expects next
        ("credit", "u1"),  # DATA frames of full length that it has room for, from that one on
        ("length", "<u2"),  # bytes of the payload
    ]
)
_CRC_BYTES = 4
#: Bytes of the longest frame between its flags, escapes undone.
_LONGEST = FRAME.itemsize + MOST_PAYLOAD + _CRC_BYTES


class Kind(IntEnum):
    """What a frame is for.

    HELLO    host: begin the session; whatever the board held is forgotten
    WELCOME  board: the session has begun; the payload describes the board
    DATA     the next bytes
    ACK      nothing but `ack` and `credit`
    AGAIN    the same, and a frame was lost: send again from `ack` on
    """

    HELLO = 1
    WELCOME = 2
    DATA = 3
    ACK = 4
    AGAIN = 5


@dataclass(frozen=True, kw_only=True)
class LinkFrame:
    """One frame of the link."""

    kind: Kind
    session: int
    seq: int = 0
    ack: int = 0
    credit: int = 0
    payload: bytes = field(default=b"")


def frame_bytes(frame: LinkFrame) -> bytes:
    """The frame as it is sent, with both flags."""
    if len(frame.payload) > MOST_PAYLOAD:
        raise ValueError(f"a frame has {MOST_PAYLOAD} bytes at most, not {len(frame.payload)}")
    head = np.zeros((), FRAME)
    for name in ("kind", "session", "seq", "ack", "credit"):
        head[name] = getattr(frame, name)
    head["length"] = len(frame.payload)
    body = head.tobytes() + frame.payload
    body += zlib.crc32(body).to_bytes(_CRC_BYTES, "little")
    stuffed = body.replace(bytes([ESCAPE]), bytes([ESCAPE, ESCAPE ^ MASK]))
    stuffed = stuffed.replace(bytes([FLAG]), bytes([ESCAPE, FLAG ^ MASK]))
    return bytes([FLAG]) + stuffed + bytes([FLAG])


class Deframer:
    """Bytes as they come -> sound frames; `damaged` counts what was not one."""

    def __init__(self) -> None:
        self.damaged = 0
        self._body = bytearray()
        self._escaped = False

    def feed(self, received: bytes) -> list[LinkFrame | None]:
        """The frames that these bytes complete; None stands for a damaged one."""
        found: list[LinkFrame | None] = []
        for byte in received:
            if byte == FLAG:
                if self._body or self._escaped:
                    found.append(self._close())
                self._body.clear()
                self._escaped = False
            elif byte == ESCAPE:
                self._escaped = True
            elif len(self._body) <= _LONGEST:  # garbage without a flag is not kept
                self._body.append(byte ^ MASK if self._escaped else byte)
                self._escaped = False
        return found

    def _close(self) -> LinkFrame | None:
        """The frame between two flags, if it is sound."""
        body = bytes(self._body)
        frame = None if self._escaped else _parse(body)
        self.damaged += frame is None
        return frame


def _parse(body: bytes) -> LinkFrame | None:
    end = len(body) - _CRC_BYTES
    if end < FRAME.itemsize or len(body) > _LONGEST:
        return None
    if zlib.crc32(body[:end]) != int.from_bytes(body[end:], "little"):
        return None
    head = np.frombuffer(body, FRAME, 1)[0]
    if head["length"] != end - FRAME.itemsize or head["kind"] not in set(Kind):
        return None
    numbers = {name: int(head[name]) for name in ("session", "seq", "ack", "credit")}
    return LinkFrame(kind=Kind(head["kind"]), payload=body[FRAME.itemsize : end], **numbers)
