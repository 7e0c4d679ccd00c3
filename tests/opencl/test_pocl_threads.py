"""PoCL's threads are spread over the cores that the process may use."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.opencl

#: Tells the cores of each thread that the devices begin, once the process may use only those that
#: it is told.
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
    print(*sorted(os.sched_getaffinity(int(task.name))))
"""


def told(cores):
    """PoCL's compute units, and the cores of each of its threads."""
    run = subprocess.run(
        [sys.executable, "-c", CORES, *map(str, cores)], capture_output=True, text=True, check=True
    )
    units, *threads = run.stdout.splitlines()
    return int(units), threads


def test_each_thread_has_a_core_of_its_own():
    cores = sorted(os.sched_getaffinity(0))
    units, threads = told(cores)
    assert units == len(threads) > 0
    assert threads == [str(cores[number % len(cores)]) for number in range(units)]


def test_cores_that_the_process_may_not_use_are_left_alone():
    only = max(os.sched_getaffinity(0))
    units, threads = told([only])
    assert threads == [str(only)] * units
