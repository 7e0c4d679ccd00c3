"""PoCL's threads are spread over the cores that the process may use, and give way there."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.opencl

#: Tells the cores and the policy of each thread that the devices begin, once the process may use
#: only those cores that it is told.
CORES = """
import os
import sys
from pathlib import Path

import pyopencl as cl
from hw.opencl.devices import list_devices

os.sched_setaffinity(0, set(map(int, sys.argv[1:])))
tasks = Path("/proc/self/task")
before = set(tasks.iterdir())
units = sum(one.compute_units for one in list_devices() if "Portable" in one.platform)
begun = set(tasks.iterdir()) - before
print(units)
for task in sorted(begun, key=lambda task: int(task.name)):
    thread = int(task.name)
    print(os.sched_getscheduler(thread), *sorted(os.sched_getaffinity(thread)))
"""


def told(cores, **environment):
    """PoCL's compute units, the cores of each of its threads, and the threads' policies."""
    run = subprocess.run(
        [sys.executable, "-c", CORES, *map(str, cores)], capture_output=True, text=True, check=True,
        env=os.environ | environment,
    )
    units, *threads = run.stdout.splitlines()
    policies, placed = zip(*(thread.split(" ", 1) for thread in threads), strict=True)
    return int(units), list(placed), set(map(int, policies))


def test_each_thread_has_a_core_of_its_own_and_pushes_nobody_aside():
    cores = sorted(os.sched_getaffinity(0))
    units, threads, policies = told(cores)
    assert units == len(threads) > 0
    assert threads == [str(cores[number % len(cores)]) for number in range(units)]
    assert policies == {os.SCHED_BATCH}


def test_cores_that_the_process_may_not_use_are_left_alone():
    only = max(os.sched_getaffinity(0))
    units, threads, _ = told([only])
    assert threads == [str(only)] * units


def test_fewer_threads_than_cores_are_where_the_system_wants_them():
    cores = sorted(os.sched_getaffinity(0))
    units, threads, _ = told(cores, POCL_MAX_PTHREAD_COUNT="1")
    assert units == 1
    assert threads == [" ".join(map(str, cores))]
