"""Daemons of the tests: each in a directory of its own, none left behind."""

import contextlib
import os
import select
import signal
import tempfile
from pathlib import Path

import pytest

from host.errors import ServiceError
from host.service import WorkerClient
from tests.service.workers import Workers


class Daemons:
    """Clients of the daemons of one directory."""

    def __init__(self, directory):
        self.directory = directory
        self._clients = []

    def client(self, **more):
        options = {"backend": "numpy", "directory": str(self.directory)} | more
        self._clients.append(WorkerClient.connect(**options))
        return self._clients[-1]

    def kill(self, how=signal.SIGKILL):
        """End the daemon, if there is one, and wait until it has gone."""
        try:
            with WorkerClient.connect(
                backend="numpy", directory=str(self.directory), start=False
            ) as client:
                pid = client.status()["pid"]
        except ServiceError:
            return
        handle = os.pidfd_open(pid)
        os.kill(pid, how)
        select.select([handle], [], [])
        os.close(handle)

    def close(self):
        for client in self._clients:
            client.close()
        self.kill(signal.SIGTERM)


@contextlib.contextmanager
def a_directory():
    with tempfile.TemporaryDirectory() as directory:
        daemons = Daemons(Path(directory) / "run")
        yield daemons
        daemons.close()


@pytest.fixture
def daemons():
    """For tests that end a daemon, or ask for another one."""
    with a_directory() as daemons:
        yield daemons


@pytest.fixture(scope="module")
def shared_daemon():
    """For tests that leave it alive."""
    with a_directory() as daemons:
        yield daemons


@pytest.fixture
def workers_of():
    """Makes workers; they end with the test."""
    made = []

    def make(*arguments, **more):
        made.append(Workers(*arguments, **more))
        return made[-1]

    yield make
    for workers in made:
        workers.close()


@pytest.fixture(scope="module")
def without_fsync():
    """What is on the disk after a power cut is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda number: None)
        yield
