"""Where a daemon is found: a socket in a directory that only its user can enter."""

import os
import re
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from host.errors import ServiceError

__all__ = ["Place", "peer_uid"]

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True)
class Place:
    """The private directory and the names in it, for one backend and device."""

    directory: Path
    name: str

    @classmethod
    def of(cls, directory: str | None, backend: str, device: str | None) -> "Place":
        """The same for the same words; by default a directory of the user's own."""
        where = directory or f"{tempfile.gettempdir()}/watersmeet-{os.geteuid()}"
        slug = re.sub(r"[^A-Za-z0-9]+", "-", device or "default").strip("-").lower()
        if device is not None:
            # Different devices must not meet in one slug.
            slug += f"-{device.encode().hex()[:16]}"
        return cls(Path(where).absolute(), f"{backend}-{slug[:60]}")

    @property
    def socket(self) -> Path:
        return self.directory / f"{self.name}.sock"

    @property
    def lock(self) -> Path:
        return self.directory / f"{self.name}.lock"

    @property
    def log(self) -> Path:
        return self.directory / f"{self.name}.log"

    def prepare(self) -> None:
        """Make the directory; refuse one that somebody else could have a hand in."""
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = os.lstat(self.directory)
        except OSError as error:
            raise ServiceError(
                f"the directory {self.directory} cannot be used: {error.strerror}"
            ) from None
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise ServiceError(
                f"{self.directory} is not a directory of this user: name another one"
            )
        if stat.S_IMODE(found.st_mode) & 0o077:
            raise ServiceError(
                f"{self.directory} is open to other users: chmod 700 it, or name another one"
            )

    @contextmanager
    def address(self) -> Iterator[str]:
        """The socket's name, short enough for the system however long the directory's is."""
        handle = os.open(self.directory, os.O_PATH | os.O_DIRECTORY)
        try:
            yield f"/proc/self/fd/{handle}/{self.socket.name}"
        finally:
            os.close(handle)


def peer_uid(connected: socket.socket) -> int:
    """Who is at the other end, as the kernel knows it."""
    packed = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(packed)
    return int(uid)
