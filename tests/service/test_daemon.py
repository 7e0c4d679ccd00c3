"""The worker daemon and its client, as processes: lives, deaths and twins."""

import os
import random
import select
import signal
import subprocess
import sys
import threading
import time

import pytest

from host.errors import ServiceError, StateError
from host.service import WorkerClient
from tests.helpers import exactly, in_splits, pairs_of, same_pairs
from tests.service.micro_batches import Source, streams

SPLITS = in_splits(40, 44, [(9, 3), (0, 0), (2, 12)])


def run_epoch(client, job):
    return sorted(pairs_of(client.run(job)))


def test_epochs_give_their_pairs_and_a_repeated_one_the_same_again(shared_daemon, tmp_path):
    source = Source(tmp_path, streams(), SPLITS, "rows 9,7")
    client = shared_daemon.client()
    for epoch, wanted in enumerate(source.expected()):
        assert run_epoch(client, source.job(epoch)) == wanted
        assert run_epoch(client, source.job(epoch)) == wanted
        assert client.report["epoch"] == epoch
        assert client.report["pairs"] == len(wanted)
    assert client.report["window_left"] > 0 and client.report["state_bytes"] > 0
    assert client.report["recovered"] is False


def test_late_rows_and_errors_come_over_the_socket(daemons, tmp_path):
    source = Source(tmp_path, streams(), SPLITS, "-2 s..3 s", time="t", lateness="2 s", late="keep")
    client = daemons.client()
    late = set()
    for epoch, wanted in enumerate(source.expected()):
        for _ in range(2):
            assert run_epoch(client, source.job(epoch)) == wanted
            rows = {("lr".index(letter), row) for letter, batch in client.late()
                    for row in batch.column("id").to_pylist()}
        late |= rows
    assert late == source.late() and late
    path = source.directory / "plan.json"
    path.write_text("gone")
    daemons.kill()
    with pytest.raises(StateError, match=exactly(
        f"the state file {path} is damaged: its bytes do not have their checksum"
    )):
        run_epoch(client, source.job(epoch))


def test_a_daemon_killed_at_any_moment_changes_nothing(daemons, tmp_path):
    """Random times of death, while two workers are asked over and over by clients that retry."""
    source = Source(tmp_path, streams((400, 440)), in_splits(400, 440, [(90, 30), (20, 120)]),
                    "rows 90,70", batch=16)
    expected = source.expected()
    dice = random.Random(os.environ["WATERSMEET_SEED"])
    client = daemons.client()
    over = threading.Event()

    def reap():
        for _ in range(4):
            time.sleep(dice.uniform(0.0, 0.4))
            daemons.kill()
        over.set()

    reaper = threading.Thread(target=reap)
    reaper.start()
    epoch = 0
    while epoch < len(expected):
        found = []
        for worker in range(2):
            found += patiently(client, source.job(epoch, worker, 2, routing="random"))
        same_pairs(found, expected[epoch])
        # Stay in the middle of things until all deaths were died.
        epoch += 1 if over.is_set() or epoch < len(expected) - 2 else 0
    reaper.join()


def patiently(client, job):
    """As Spark does: a task that fails is run again."""
    for _ in range(10):
        try:
            return pairs_of(client.run(job))
        except ServiceError:
            continue
    raise AssertionError("it fails again and again")


def test_twins_get_one_answer(shared_daemon, tmp_path):
    source = Source(tmp_path, streams((900, 900)), [(900, 900)], "none", batch=32)
    job, found = source.job(0), [None] * 4
    clients = [shared_daemon.client() for _ in found]
    before = len(clients[0].status()["joins"])

    def ask(number):
        found[number] = run_epoch(clients[number], job)

    twins = [threading.Thread(target=ask, args=(number,)) for number in range(len(found))]
    for twin in twins:
        twin.start()
    for twin in twins:
        twin.join()
    assert len(clients[0].status()["joins"]) == before + 1
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) > 10_000


def test_a_reader_that_leaves_early_spoils_nothing(shared_daemon, tmp_path):
    source = Source(tmp_path, streams((900, 900)), [(600, 600), (300, 300)], "none", batch=32)
    client = shared_daemon.client()
    results = client.run(source.job(0))
    first = next(results)
    results.close()
    again = run_epoch(client, source.job(0))
    assert set(pairs_of([first])) <= set(again)
    assert client.report["pairs"] == len(again)
    assert run_epoch(client, source.job(1))
    assert not client.report["recovered"]


def test_a_daemon_that_dies_in_the_middle_of_its_results_is_an_error(daemons, tmp_path):
    source = Source(tmp_path, streams((900, 900)), [(900, 900)], "none", batch=32)
    client = daemons.client()
    results = client.run(source.job(0))
    found = pairs_of([next(results)])
    daemons.kill()
    place = daemons.directory / "numpy-default"
    with pytest.raises(ServiceError) as caught:
        found += pairs_of(results)
    said = str(caught.value)
    assert said.startswith(f"the worker daemon at {place}.sock broke off: ")
    assert said.endswith(f"; run the command again, and see {place}.log")
    again = run_epoch(client, source.job(0))
    assert set(found) < set(again)


def test_a_daemon_ends_with_its_owners(daemons):
    owners = [subprocess.Popen(["sleep", "1000"]) for _ in range(2)]
    clients = [daemons.client(owner=owner.pid) for owner in owners]
    pid = clients[0].status()["pid"]
    assert clients[1].status()["owners"] == sorted(owner.pid for owner in owners)
    handle = os.pidfd_open(pid)
    owners[0].kill()
    owners[0].wait()
    assert clients[1].status()["owners"] == [owners[1].pid]
    owners[1].kill()
    owners[1].wait()
    wait_for(handle)


def wait_for(handle):
    select.select([handle], [], [])
    os.close(handle)


def test_a_standing_daemon_serves_and_ends_when_asked(daemons):
    command = [sys.executable, "-m", "host", "serve", "--directory", str(daemons.directory),
               "--backend", "numpy"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as daemon:
        line = f"watersmeet: serving {daemons.directory}/numpy-default.sock\n"
        assert daemon.stderr.readline() == line
        with daemons.client(start=False) as client:
            assert client.status()["pid"] == daemon.pid
        second = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (second.returncode, second.stderr) == (
            1, f"watersmeet: another daemon serves {daemons.directory}/numpy-default.sock already\n"
        )
        daemon.send_signal(signal.SIGTERM)
        assert daemon.wait() == 143
    assert not (daemons.directory / "numpy-default.sock").exists()
    with pytest.raises(ServiceError, match=exactly(
        f"no worker daemon serves {daemons.directory}/numpy-default.sock: start watersmeet serve"
    )):
        daemons.client(start=False)


def test_a_daemon_that_nobody_asks_ends(daemons):
    command = [sys.executable, "-m", "host", "serve", "--directory", str(daemons.directory),
               "--backend", "numpy", "--idle", "0.1"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def test_a_directory_with_a_long_name_is_no_obstacle(tmp_path):
    directory = tmp_path / ("a" * 120)
    client = WorkerClient.connect(backend="numpy", directory=str(directory))
    with client:
        os.kill(client.status()["pid"], signal.SIGTERM)
