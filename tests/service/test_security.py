"""Who may talk to a daemon, and what strange bytes do to it: nothing."""

import json
import os
import socket
import stat
import struct
import subprocess
import sys
import time

import pytest

from host.errors import OptionError, ServiceError
from host.service import Job, WorkerClient
from host.service.daemon import Daemon
from host.service.frames import Connection, Kind
from host.service.places import Place
from tests.helpers import exactly, pairs_of
from tests.service.micro_batches import Source, streams

HEADER = struct.Struct("<4sHHIQ")


@pytest.fixture
def patient_daemon(daemons):
    """A standing daemon that gives a client half a second for a frame."""
    command = [sys.executable, "-m", "host", "serve", "--directory", str(daemons.directory),
               "--backend", "numpy", "--patience", "0.5"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        daemon.stderr.readline()
        yield daemons
        daemon.terminate()
        said = daemon.stderr.read()
    assert said == "", "it should have nothing to complain of"


def dial(daemons):
    place = Place.of(str(daemons.directory), "numpy", None)
    sock = socket.socket(socket.AF_UNIX)
    with place.address() as address:
        sock.connect(address)
    return sock


def answer_to(daemons, data, close=False):
    """What the daemon says to those bytes: a frame's kind and text, or None if it hangs up."""
    with dial(daemons) as sock:
        sock.sendall(data)
        if close:
            sock.shutdown(socket.SHUT_WR)
        frame = Connection(sock, 10.0).receive(10.0)
        if frame is None:
            return None
        # Whatever it was, the daemon is done with this client, or waits for its next command.
        return frame.kind, frame.text.get("message")


def frame_of(kind=Kind.STATUS, text=b"{}", magic=b"WSMT", version=2, length=None, body=0):
    return HEADER.pack(magic, version, kind, len(text) if length is None else length, body) + text


def test_strange_bytes_are_refused_and_hurt_nobody(patient_daemon, tmp_path):
    daemons = patient_daemon
    refused = {
        frame_of(magic=b"GET "): "a frame begins with b'GET ': this is another protocol",
        frame_of(version=9): "the other end speaks version 9 of the protocol, this is version 2: "
        "run the same release on both",
        frame_of(kind=99): "a frame is of the unknown kind 99",
        frame_of(length=1 << 31): "a frame's text has 2147483648 bytes, 16777216 are the most",
        frame_of(body=1): "a frame's body has 1 bytes, 0 are the most",
        frame_of(body=1 << 63): f"a frame's body has {1 << 63} bytes, 0 are the most",
        frame_of(text=b"\x80\x04K\x01."): "a frame's text is not JSON",
        frame_of(text=b"[" * 100_000): "a frame's text is not JSON",
        frame_of(text=b"[]"): "a client sends commands, and STATUS is none",
        frame_of(kind=Kind.ROWS): "a client sends commands, and ROWS is none",
        os.urandom(200): None,
    }
    for data, sentence in refused.items():
        kind, message = answer_to(daemons, data)
        assert kind is Kind.ERROR
        assert sentence is None or message == sentence
    for cut in (1, 10, 21):  # a frame that ends too soon
        assert answer_to(daemons, frame_of()[:cut], close=True) is None
    assert answer_to(daemons, b"", close=True) is None
    # Commands that are whole frames, and no jobs.
    for job in (None, 7, "{}", "[1]", json.dumps({"parts": [{}]})):
        for command in (Kind.RUN, Kind.AHEAD):
            data = frame_of(command, json.dumps({"job": job}).encode())
            kind, message = answer_to(daemons, data)
            assert kind is Kind.ERROR and message.startswith("this is not a job: ")
    source = Source(tmp_path, streams(), [(40, 44)], "none")
    assert sorted(pairs_of(daemons.client().run(source.job(0)))) == source.expected()[0]


def test_a_slow_client_is_left_and_keeps_nobody_waiting(patient_daemon, tmp_path):
    daemons = patient_daemon
    source = Source(tmp_path, streams((900, 900)), [(900, 900)], "none", batch=32,
                    select="l.id,r.id,l.s,r.s,l.t,r.t")
    with dial(daemons) as half, dial(daemons) as deaf:
        half.sendall(frame_of()[:5])
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        command = json.dumps({"job": source.job(0).to_json()}).encode()
        deaf.sendall(frame_of(Kind.RUN, command))
        rows = sum(map(len, daemons.client().run(source.job(0))))
        assert rows > 10_000
        assert half.recv(1) == b""  # hung up on, after its time
        time.sleep(1.0)
        # The rest was not sent to one who did not listen.
        assert len(drained(deaf)) < rows * 16


def drained(sock):
    data = bytearray()
    while came := sock.recv(1 << 16):
        data += came
    return data


def test_the_socket_is_private(shared_daemon):
    shared_daemon.client()
    directory = shared_daemon.directory
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    for path in directory.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_ISSOCK((directory / "numpy-default.sock").stat().st_mode)


OTHER_USER = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX)
place = os.open(sys.argv[1], os.O_PATH)
os.setgid(65534); os.setuid(65534)
try:
    sock.connect(f"/proc/self/fd/{place}/numpy-default.sock")
except PermissionError:
    print("no permission")
    sys.exit()
sock.shutdown(socket.SHUT_WR)  # one who would be served is hung up on
print(sock.recv(1000)[20:].decode())
"""


@pytest.mark.parametrize("open_to_all", [False, True])
def test_another_user_is_refused(shared_daemon, open_to_all):
    """By the modes of directory and socket, and where these fail, by what the kernel says."""
    client = shared_daemon.client()
    if open_to_all:
        os.chmod(shared_daemon.directory, 0o755)
        os.chmod(shared_daemon.directory / "numpy-default.sock", 0o666)
    done = subprocess.run([sys.executable, "-c", OTHER_USER, str(shared_daemon.directory)],
                          capture_output=True, text=True, check=True)
    if open_to_all:
        message = f"this daemon serves user {os.geteuid()} and not user 65534"
        assert json.loads(done.stdout) == {"error": "ServiceError", "message": message}
    else:
        assert done.stdout == "no permission\n"
    os.chmod(shared_daemon.directory, 0o700)
    os.chmod(shared_daemon.directory / "numpy-default.sock", 0o600)
    assert client.status()["joins"] == []


def test_a_directory_that_others_can_enter_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    link = tmp_path / "link"
    link.symlink_to(shared)
    for directory, sentence in (
        (shared, f"{shared} is open to other users: chmod 700 it, or name another one"),
        (link, f"{link} is not a directory of this user: name another one"),
    ):
        with pytest.raises(ServiceError, match=exactly(sentence)):
            WorkerClient.connect(directory=str(directory))


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").touch()
    directory = tmp_path / "file" / "run"
    sentence = f"the directory {directory} cannot be used: Not a directory"
    with pytest.raises(ServiceError, match=exactly(sentence)):
        WorkerClient.connect(directory=str(directory))


def test_a_daemon_that_does_not_start_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    sentence = "the worker daemon does not start: exit code 1"
    with pytest.raises(ServiceError, match=exactly(sentence)):
        WorkerClient.connect(directory=str(tmp_path / "run"))


def test_a_daemon_that_takes_for_ever_to_start_is_an_error(tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 1000\n")
    slow.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(slow))
    monkeypatch.setattr("host.service.client._START_S", 0.1)
    sentence = "the worker daemon does not start: it is not up after 0.1 s"
    with pytest.raises(ServiceError, match=exactly(sentence)):
        WorkerClient.connect(directory=str(tmp_path / "run"))


def test_a_client_too_many_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("host.service.daemon._MOST_CLIENTS", 1)
    daemon = Daemon(Place.of(str(tmp_path / "run"), "numpy", None), {"backend": "numpy"})
    pairs = [socket.socketpair() for _ in range(2)]
    for _, other in pairs:
        daemon._admit(other)
    frame = Connection(pairs[1][0], 10.0).receive(10.0)
    assert frame.text["message"] == "this daemon has 1 clients already"
    for mine, _ in pairs:
        mine.close()
    daemon.close()


def test_a_client_does_not_talk_to_a_daemon_of_another_user(tmp_path):
    place = Place.of(str(tmp_path / "run"), "numpy", None)
    place.prepare()
    impostor = """
import os, socket, sys
sock = socket.socket(socket.AF_UNIX); sock.bind(sys.argv[1])
os.setgid(65534); os.setuid(65534)
sock.listen(); print("up", flush=True); sock.accept()
"""
    with subprocess.Popen([sys.executable, "-c", impostor, str(place.socket)],
                          stdout=subprocess.PIPE, text=True) as other:
        other.stdout.readline()
        sentence = f"the daemon at {place.socket} is of another user"
        with pytest.raises(ServiceError, match=exactly(sentence)):
            WorkerClient.connect(backend="numpy", directory=str(place.directory))
        other.kill()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"query": "../x"}, "the name of a query must be up to 128 letters, digits, dots, dashes "
         "and underscores, and begin with no dot, not '../x'"),
        ({"join": "a/b"}, "the name of a join must be up to 128 letters, digits, dots, dashes "
         "and underscores, and begin with no dot, not 'a/b'"),
        ({"epoch": -1}, "epoch must be a whole number from 0 on, not -1"),
        ({"epoch": True}, "epoch of a job must be int, not True"),
        ({"worker": 2, "workers": 2}, "worker 2 is not one of 2 workers"),
        ({"state_dir": "here"}, "state_dir must be an absolute path, not 'here'"),
    ],
)
def test_a_job_that_cannot_be_is_refused(changed, sentence):
    plain = {"query": "q", "join": "j", "epoch": 0, "state_dir": "/s", "options": {}}
    with pytest.raises(OptionError, match=exactly(sentence)):
        Job(**plain | changed)
