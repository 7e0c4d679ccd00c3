"""Daemon: holds joins behind a Unix socket for clients of one user."""

import contextlib
import fcntl
import os
import select
import socket
import sys
import threading
import time
from typing import Any

import pyarrow as pa

from host.errors import JoinError, ServiceError
from host.service.answer import Answer
from host.service.frames import Connection, Frame, Kind, PeerGone
from host.service.held_join import HeldJoin
from host.service.job import Job, check_messages
from host.service.places import Place, peer_uid

__all__ = ["AlreadyServed", "Daemon"]

#: Clients at once; a Spark executor has one for each of its tasks.
_MOST_CLIENTS = 256
_TICK_S = 1.0
_RETRY_S = 0.05
#: Windows that nobody asked for this long are let go.
_FORGET_S = 600.0
#: A client that waits hears of it that often.
_BUSY_S = 10.0

_COMMANDS = (Kind.RUN, Kind.AHEAD, Kind.STATUS)

Key = tuple[str, str, str, int, int, str]


class AlreadyServed(ServiceError):
    """Another daemon has this place."""


class Daemon:
    """Serves until it is told to end, its owners have gone, or nobody asked for `idle_s`.

    idle_s      0 is for ever
    patience_s  time that a client may take for one frame
    engine      options of the backend and device that all its joins run on
    """

    def __init__(
        self, place: Place, engine: dict[str, Any], idle_s: float = 0.0, patience_s: float = 600.0
    ) -> None:
        self.place = place
        self._engine = engine
        self._idle_s, self._patience_s = idle_s, patience_s
        self._joins: dict[Key, HeldJoin] = {}
        self._owners: dict[int, int] = {}  # pid -> its descriptor
        self._owned = False
        self._lock = threading.Lock()
        self._clients = threading.BoundedSemaphore(_MOST_CLIENTS)
        self._used = time.monotonic()
        place.prepare()
        self._held_lock = _locked(place)
        self._listener = _listening(place)

    def serve(self) -> None:
        """Accept clients; returns when it is time to end."""
        while not self._is_over():
            self._forget_unused()
            if not _is_readable(self._listener.fileno(), _TICK_S):
                continue
            try:
                accepted, _ = self._listener.accept()
            except OSError:  # it left, or there are too many files: others may go meanwhile
                time.sleep(_RETRY_S)
            else:
                self._admit(accepted)

    def close(self) -> None:
        """Take the socket away; what clients still read is broken off."""
        self.place.socket.unlink(missing_ok=True)
        self._listener.close()
        os.close(self._held_lock)

    def _is_over(self) -> bool:
        if self._owned and not self._living_owners():
            return True
        return bool(self._idle_s) and time.monotonic() - self._used > self._idle_s

    def _admit(self, accepted: socket.socket) -> None:
        connection = Connection(accepted, self._patience_s, most_body=0)
        uid = peer_uid(accepted)
        if uid != os.geteuid():
            refusal = f"this daemon serves user {os.geteuid()} and not user {uid}"
        elif not self._clients.acquire(blocking=False):
            refusal = f"this daemon has {_MOST_CLIENTS} clients already"
        else:
            thread = threading.Thread(target=self._attend, args=(connection,), daemon=True)
            thread.start()
            return
        # A few bytes: they fit into the socket, so nobody is waited for.
        _send_last(connection, ServiceError(refusal))
        connection.close()

    def _attend(self, connection: Connection) -> None:
        """One client, command by command."""
        try:
            while (frame := connection.receive()) is not None:
                self._used = time.monotonic()
                self._obey(connection, frame)
                self._used = time.monotonic()
        except PeerGone:
            pass  # whatever it asked for is kept for the next one that asks
        except JoinError as error:
            _send_last(connection, error)
        finally:
            connection.close()
            self._clients.release()

    def _obey(self, connection: Connection, frame: Frame) -> None:
        if frame.kind not in _COMMANDS or not isinstance(frame.text, dict):
            raise ServiceError(f"a client sends commands, and {frame.kind.name} is none")
        self._add_owner(frame.text.get("owner"))
        if frame.kind is Kind.AHEAD:
            self._run_ahead(frame.text)
            return
        if frame.kind is Kind.STATUS:
            connection.send(Kind.END, self._status())
            return
        try:
            job = Job.from_json(frame.text.get("job"))
            _send(connection, self._begun(job))
        except PeerGone:
            raise
        except Exception as error:
            connection.send(Kind.ERROR, _described(error))

    def _run_ahead(self, text: dict[str, Any]) -> None:
        """Only for windows that are here: there is no hurry to make them."""
        job, name, messages = Job.from_json(text.get("job")), text.get("name"), text.get("messages")
        check_messages(name, messages)
        with self._lock:
            held = self._joins.get(_key(job))
            if held is not None:
                held.run_ahead(job, str(name), [tuple(one) for one in messages or ()])

    def _begun(self, job: Job) -> Answer:
        key = _key(job)
        with self._lock:
            if key not in self._joins:
                self._joins[key] = HeldJoin(job, self._engine)
            return self._joins[key].run(job)

    def _forget_unused(self) -> None:
        """Give back the memory of queries that have ended; the log would bring them back."""
        with self._lock:
            for key, held in list(self._joins.items()):
                if held.unused_s > _FORGET_S:
                    self._joins.pop(key).close()

    def _add_owner(self, pid: Any) -> None:
        with self._lock:
            if not isinstance(pid, int) or pid in self._owners:
                return
            with contextlib.suppress(OSError, OverflowError):  # it may have gone meanwhile
                self._owners[pid] = os.pidfd_open(pid)
            self._owned = True

    def _living_owners(self) -> list[int]:
        with self._lock:
            for pid, handle in list(self._owners.items()):
                if _is_readable(handle, 0.0):  # the process has ended
                    os.close(self._owners.pop(pid))
            return sorted(self._owners)

    def _status(self) -> dict[str, Any]:
        owners = self._living_owners()
        with self._lock:
            joins = [
                {"query": key[1], "join": key[2], "worker": key[3], "workers": key[4],
                 "epoch": held.epoch, "unused_s": held.unused_s}
                for key, held in self._joins.items()
            ]
        return {"pid": os.getpid(), "joins": joins, "owners": owners}


def _key(job: Job) -> Key:
    return (job.state_dir, job.query, job.join, job.worker, job.workers, job.routing)


def _is_readable(handle: int, wait_s: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(wait_s * 1000))


def _send(connection: Connection, answer: Answer) -> None:
    begun = False
    for message in answer.messages(_BUSY_S):
        if message is None:
            connection.send(Kind.BUSY)
            continue
        if not begun:
            assert answer.schema is not None
            connection.send(Kind.SCHEMA, None, answer.schema.serialize())
            begun = True
        connection.send(Kind.ROWS, None, message)
    for letter, rows in answer.late:
        with pa.BufferOutputStream() as sink:
            with pa.ipc.new_stream(sink, rows.schema) as writer:
                writer.write_batch(rows)
            connection.send(Kind.LATE, letter, sink.getvalue())
    connection.send(Kind.END, answer.report)


def _send_last(connection: Connection, error: JoinError) -> None:
    with contextlib.suppress(PeerGone):
        connection.send(Kind.ERROR, _described(error))


def _described(error: BaseException) -> dict[str, str]:
    if not isinstance(error, JoinError):
        print(f"watersmeet: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
    return {"error": type(error).__name__, "message": str(error)}


def _locked(place: Place) -> int:
    """Hold the place for this process's life; the system lets go of it with the process."""
    handle = os.open(place.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise AlreadyServed(f"another daemon serves {place.socket} already") from None
    return handle


def _listening(place: Place) -> socket.socket:
    place.socket.unlink(missing_ok=True)  # of a daemon that was killed
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        with place.address() as address:
            listener.bind(address)
    finally:
        os.umask(before)
    listener.listen(64)
    return listener
