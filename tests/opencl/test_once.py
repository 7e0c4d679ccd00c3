"""A device is opened once, and what runs on it is built once, also by threads at the same time."""

import subprocess
import sys
import time
from threading import Barrier, Thread

import pytest

from hw.opencl.once import once

pytestmark = pytest.mark.opencl

# In a process of its own: in this one the device may be open already.
SCRIPT = """
import threading, time
import hw.opencl.program as program
from hw.opencl.devices import choose

real = program.open_device

def slow(device):
    time.sleep(0.2)
    return real(device)

program.open_device = slow
device = choose()
asked = [(program.open_program, 32), (program.open_program, 64), (program.open_aggregates, False)]
made = []
threads = [
    threading.Thread(target=lambda ask=ask, what=what: made.append(ask(device, what)))
    for ask, what in asked
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(made) == 3
assert len({one.context.int_ptr for one in made}) == 1, "two contexts"
"""


def test_joins_that_begin_at_once_share_the_device():
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_threads_that_ask_at_once_are_given_one_thing():
    made = []

    @once
    def make(name):
        time.sleep(0.05)
        made.append(name)
        return object()

    together = Barrier(4)
    given = []

    def ask():
        together.wait()
        given.append(make("a"))

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == ["a"]
    assert len(given) == 4 and all(one is given[0] for one in given)
    assert make("b") is not given[0]


def test_what_failed_is_tried_again():
    tries = []

    @once
    def make():
        tries.append(len(tries))
        if len(tries) == 1:
            raise OSError("not yet")
        return 7

    with pytest.raises(OSError, match="not yet"):
        make()
    assert (make(), make()) == (7, 7)
    assert tries == [0, 1]
