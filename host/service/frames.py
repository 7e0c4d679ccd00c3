"""Frames between a worker daemon and its clients: a header, JSON, and bytes of Arrow.

    magic, version, kind, length of the JSON, length of the body | JSON | body

Nothing on the wire is executable. Lengths are looked at before anything is allocated, and every
frame has a time in which it must have come or gone.
"""

import contextlib
import json
import socket
import struct
import time
from collections.abc import Iterator
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
#: What a socket takes before anybody reads, where the system allows as much.
_SENT_BYTES = 1 << 20


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


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    """What a socket raises that is read from, as the other end's doing."""
    try:
        yield
    except TimeoutError:
        raise PeerGone("the other end did not finish a frame in time") from None
    except OSError as error:
        raise PeerGone(f"the other end has gone: {error.strerror or error}") from None


@dataclass(frozen=True)
class Frame:
    kind: Kind
    text: Any
    body: pa.Buffer | None = None


class Connection:
    """One end of a Unix socket; `patience_s` is the time that one frame may take."""

    def __init__(self, sock: socket.socket, patience_s: float, most_body: int = MOST_BODY) -> None:
        self._socket = sock
        # A frame of results fits, so that its sender need not wait for its reader.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SENT_BYTES)
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
            # In one piece: the reader would wake up for the header and wait for the rest.
            sent = self._socket.sendmsg([header + encoded, view]) - len(header) - len(encoded)
            if sent < 0:
                self._socket.sendall((header + encoded)[sent:])
            if max(0, sent) < view.nbytes:
                self._socket.sendall(view[max(0, sent) :])
        except TimeoutError:
            raise PeerGone(f"the other end took nothing for {self._patience_s:g} s") from None
        except OSError as error:
            raise PeerGone(f"the other end has gone: {error.strerror or error}") from None

    def receive(self, wait_s: float | None = None) -> Frame | None:
        """The next frame, whose first byte may take `wait_s`; None if the other end closed."""
        self._socket.settimeout(wait_s)
        begun = self._begun(_HEADER.size)
        if not begun:
            return None
        deadline = time.monotonic() + self._patience_s
        rest = self._take(_HEADER.size - len(begun), deadline)
        magic, version, kind, text_bytes, body_bytes = _HEADER.unpack(begun + bytes(rest))
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

    def _begun(self, most: int) -> bytes:
        """The first bytes of a frame, as they come; none if the other end closed."""
        with _told_apart():
            return self._socket.recv(most)

    def _take(self, count: int, deadline: float) -> Any:
        """That many bytes before the deadline; memory is the system's until they come."""
        taken, done = np.empty(count, np.uint8), 0
        view = taken.data
        while done < count:
            self._socket.settimeout(max(0.001, deadline - time.monotonic()))
            with _told_apart():
                came = self._socket.recv_into(view[done:])
            if not came:
                raise PeerGone(f"the other end closed after {done} of {count} bytes")
            done += came
        return taken
