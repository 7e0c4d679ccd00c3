"""Frames between a worker daemon and its clients: a header, JSON, and bytes of Arrow.

    magic, version, kind, length of the JSON, length of the body | JSON | body

Nothing on the wire is executable. Lengths are looked at before anything is allocated, and every
frame has a time in which it must have come or gone.
"""

import json
import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from host.errors import ServiceError

__all__ = ["Connection", "Frame", "Kind", "PeerGone"]

_HEADER = struct.Struct("<4sHHIQ")
_MAGIC = b"WSMT"
VERSION = 2
#: A job with ten thousand parts has about two million bytes.
MOST_TEXT = 16 << 20
#: A batch of results; pairs come at most 2 ** 18 at a time.
MOST_BODY = 4 << 30


class Kind(IntEnum):
    RUN = 1  # a job; the answer is SCHEMA, ROWS ..., LATE ..., END, or ERROR at any point
    STATUS = 2  # the answer is END with what the daemon holds
    SCHEMA = 3
    ROWS = 4
    LATE = 5
    END = 6
    ERROR = 7
    BUSY = 8  # it works, and has nothing to send yet
    AHEAD = 9  # a job whose part is still being written, and what is in it; no answer


class PeerGone(ServiceError):
    """The other end closed, broke off or took too long."""


@dataclass(frozen=True)
class Frame:
    kind: Kind
    text: Any
    body: pa.Buffer | None = None


class Connection:
    """One end of a Unix socket; `patience_s` is the time that one frame may take."""

    def __init__(self, sock: socket.socket, patience_s: float, most_body: int = MOST_BODY) -> None:
        self._socket = sock
        self._patience_s = patience_s
        self._most_body = most_body

    def close(self) -> None:
        self._socket.close()

    def send(self, kind: Kind, text: Any = None, body: Any = None) -> None:
        """Send one frame; `text` is anything that JSON can carry."""
        encoded = json.dumps(text).encode()
        view = memoryview(b"" if body is None else body)
        header = _HEADER.pack(_MAGIC, VERSION, kind, len(encoded), view.nbytes)
        self._socket.settimeout(self._patience_s)
        try:
            self._socket.sendall(header + encoded)
            if view.nbytes:
                self._socket.sendall(view)
        except TimeoutError:
            raise PeerGone(f"the other end took nothing for {self._patience_s:g} s") from None
        except OSError as error:
            raise PeerGone(f"the other end has gone: {error.strerror or error}") from None

    def receive(self, wait_s: float | None = None) -> Frame | None:
        """The next frame, whose first byte may take `wait_s`; None if the other end closed."""
        self._socket.settimeout(wait_s)
        first = self._take(1, time.monotonic() + wait_s if wait_s else None, at_start=True)
        if first is None:
            return None
        deadline = time.monotonic() + self._patience_s
        rest = self._take(_HEADER.size - 1, deadline)
        magic, version, kind, text_bytes, body_bytes = _HEADER.unpack(bytes(first) + bytes(rest))
        self._check(magic, version, kind, text_bytes, body_bytes)
        text = bytes(self._take(text_bytes, deadline))
        body = pa.py_buffer(self._take(body_bytes, deadline)) if body_bytes else None
        try:
            return Frame(Kind(kind), json.loads(text), body)
        except (ValueError, RecursionError):
            raise ServiceError("a frame's text is not JSON") from None

    def _check(
        self, magic: bytes, version: int, kind: int, text_bytes: int, body_bytes: int
    ) -> None:
        if magic != _MAGIC:
            raise ServiceError(f"a frame begins with {magic!r}: this is another protocol")
        if version != VERSION:
            raise ServiceError(
                f"the other end speaks version {version} of the protocol, this is version "
                f"{VERSION}: run the same release on both"
            )
        if kind not in list(Kind):
            raise ServiceError(f"a frame is of the unknown kind {kind}")
        for what, length, most in (
            ("text", text_bytes, MOST_TEXT), ("body", body_bytes, self._most_body)
        ):
            if length > most:
                raise ServiceError(f"a frame's {what} has {length} bytes, {most} are the most")

    def _take(self, count: int, deadline: float | None, at_start: bool = False) -> Any:
        """That many bytes before the deadline; memory is the system's until they come."""
        taken, done = np.empty(count, np.uint8), 0
        view = taken.data
        while done < count:
            if deadline is not None:
                self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                came = self._socket.recv_into(view[done:])
            except TimeoutError:
                raise PeerGone("the other end did not finish a frame in time") from None
            except OSError as error:
                raise PeerGone(f"the other end has gone: {error.strerror or error}") from None
            if not came:
                if at_start:
                    return None
                raise PeerGone(f"the other end closed after {done} of {count} bytes")
            done += came
        return taken
