"""WorkerClient: asks a worker daemon of this machine, and starts it where there is none."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from host import errors
from host.errors import JoinError, ServiceError
from host.service.frames import Connection, Frame, Kind, PeerGone
from host.service.job import Job
from host.service.places import Place, peer_uid
from host.spool import Message

__all__ = ["WorkerClient"]

#: Time in which a daemon must have opened its socket, on a machine however busy.
_START_S = 300.0
_POLL_S = 0.02
#: A daemon that works says so more often than this.
_PATIENCE_S = 120.0
_TRIES = 3
#: The daemon is told where its packages are: they may have been shipped with the application.
_BOOT = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from host.__main__ import main
sys.exit(main())
"""


class WorkerClient:
    """A connection to the daemon of one backend and device; for one thread at a time."""

    def __init__(self, place: Place, start: list[str] | None, owner: int | None) -> None:
        self._place = place
        self._start = start
        self._owner = owner
        self._connection: Connection | None = None
        self._late: list[tuple[str, pa.RecordBatch]] = []
        self.report: dict[str, Any] = {}

    @classmethod
    def connect(
        cls,
        *,
        device: str | None = None,
        backend: str = "auto",
        directory: str | None = None,
        start: bool = True,
        owner: int | None = None,
    ) -> "WorkerClient":
        """The client of the daemon that serves this backend and device from `directory`.

        With `start`, one is started where none is; it ends with the process `owner` (and with
        those that other clients named), or when nobody asked for an hour. Both ends check that
        the other is of the same user.
        """
        place = Place.of(directory, backend, device)
        place.prepare()
        command = ["serve", "--directory", str(place.directory), "--backend", backend]
        command += ["--device", device] if device is not None else []
        client = cls(place, [*command, "--idle", "3600"] if start else None, owner)
        client._connected()
        return client

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """The results of one command as they come; `report` and `late` are there at the end.

        Raises what the daemon raised. A daemon that dies before the first result is replaced by
        another one, which does the same from the log.
        """
        for attempt in range(1, _TRIES + 1):
            begun = False
            try:
                for batch in self._results(job):
                    begun = True
                    yield batch
                return
            except PeerGone as gone:
                if begun or attempt == _TRIES:
                    raise ServiceError(
                        f"the worker daemon at {self._place.socket} broke off: {gone}; "
                        f"run the command again, and see {self._place.log}"
                    ) from None

    def run_ahead(self, job: Job, name: str, messages: list[Message]) -> None:
        """Let the daemon begin with rows of a part that is still being written.

        `job` has no parts yet; `name` is the file's for now. Nothing comes of it but time saved.
        """
        with contextlib.suppress(PeerGone):
            text = {"job": job.to_json(), "name": name, "messages": messages}
            self._connected().send(Kind.AHEAD, text)
            return
        self.close()

    def late(self) -> list[tuple[str, pa.RecordBatch]]:
        """After a run with late='keep': ('l' or 'r', rows) that were too late to be joined."""
        return self._late

    def status(self) -> dict[str, Any]:
        """What the daemon holds, for a look at its health."""
        connection = self._connected()
        connection.send(Kind.STATUS, {"owner": self._owner})
        status: dict[str, Any] = self._next(connection).text
        return status

    def close(self) -> None:
        """Leave the daemon; it goes on."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> "WorkerClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _results(self, job: Job) -> Iterator[pa.RecordBatch]:
        self.report, self._late, schema = {}, [], None
        connection = self._connected()
        try:
            connection.send(Kind.RUN, {"job": job.to_json(), "owner": self._owner})
            while (frame := self._next(connection)).kind is not Kind.END:
                if frame.kind is Kind.SCHEMA:
                    schema = pa.ipc.read_schema(frame.body)
                elif frame.kind is Kind.ROWS:
                    yield pa.ipc.read_record_batch(frame.body, schema)
                elif frame.kind is Kind.LATE:
                    rows = pa.ipc.open_stream(frame.body).read_all().combine_chunks()
                    self._late.append((frame.text, rows.to_batches()[0]))
            self.report = frame.text
        except _Refused as refused:
            raise refused.error from None
        except BaseException:
            # Also a reader who has enough: what is still on its way must not be taken for the
            # next answer.
            self.close()
            raise

    def _next(self, connection: Connection) -> Frame:
        frame = connection.receive(_PATIENCE_S)
        if frame is None:
            raise PeerGone("it closed the connection")
        if frame.kind is Kind.ERROR:
            raise _Refused(_error(frame.text))
        return frame

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._dial()
        return self._connection

    def _dial(self) -> Connection:
        deadline = time.monotonic() + _START_S
        while (connected := self._try()) is None:
            if self._start is None:
                raise ServiceError(
                    f"no worker daemon serves {self._place.socket}: start watersmeet serve"
                )
            if time.monotonic() > deadline:
                raise ServiceError(
                    f"the worker daemon at {self._place.socket} does not answer: "
                    f"see {self._place.log}"
                )
            _launch(self._start)
        return Connection(connected, _PATIENCE_S)

    def _try(self) -> socket.socket | None:
        sock = socket.socket(socket.AF_UNIX)
        try:
            with self._place.address() as address:
                sock.connect(address)
        except (FileNotFoundError, ConnectionRefusedError):
            sock.close()
            return None
        if peer_uid(sock) != os.geteuid():
            sock.close()
            raise ServiceError(f"the daemon at {self._place.socket} is of another user")
        return sock


class _Refused(Exception):
    """Carries an error of the daemon past the handling of those of the connection."""

    def __init__(self, error: JoinError) -> None:
        super().__init__(str(error))
        self.error = error


def _error(text: dict[str, str]) -> JoinError:
    """The error that the daemon described, if it is one of ours."""
    name, message = text["error"], text["message"]
    if name in errors.__all__:
        made: JoinError = getattr(errors, name)(message)
        return made
    return ServiceError(f"the worker daemon failed, {name}: {message}")


def _launch(command: list[str]) -> None:
    """Start a daemon, unless another one is faster; it serves when this returns."""
    paths = json.dumps([os.path.abspath(path) for path in sys.path])
    try:
        done = subprocess.run(
            [sys.executable, "-c", _BOOT, paths, *command, "--detach"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, timeout=_START_S, check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServiceError(
            f"the worker daemon does not start: it is not up after {_START_S:g} s"
        ) from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise ServiceError(f"the worker daemon does not start: {lines[-1]}")
    time.sleep(_POLL_S)  # another one may be about to end
