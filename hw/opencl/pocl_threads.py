"""A core of its own for each of PoCL's threads, on which they give way to who queues their work.

PoCL begins a thread for every core when its device is first asked for, and leaves to the system
where they run. Kernels of a few hundred microseconds are over before the system spreads what it
woke on one core over the others, so that two threads may take turns on one for good, beside an
idle one. Its own setting, POCL_AFFINITY, would take cores that the process was not given.

Who has queued a kernel often goes on with something else, and one of the threads that wake up for
it has the same core: it would push its caller aside until the kernel is done, while another core
has nothing to do. Threads under SCHED_BATCH push nobody aside.
"""

import os
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any

__all__ = ["devices_of"]

_TASKS = Path("/proc/self/task")
_asking = Lock()


def devices_of(platform: Any) -> list[Any]:
    """The platform's devices; threads that PoCL begins for them are spread over the cores that
    the process may use.
    """
    with _asking:
        before = _threads()
        handles: list[Any] = platform.get_devices()
        begun = sorted(_threads() - before)
    is_pocl = "portable" in platform.name.lower()
    # Any other number: somebody else has begun a thread meanwhile, and which is not known.
    if is_pocl and len(begun) == sum(handle.max_compute_units for handle in handles):
        for thread in begun:
            _give_way(thread)
        _spread(begun)
    return handles


def _threads() -> set[int]:
    return {int(entry.name) for entry in _TASKS.iterdir()} if _TASKS.exists() else set()


def _give_way(thread: int) -> None:
    with suppress(OSError):  # where a sandbox forbids it, they stay as they were
        # A program that was given real-time priority keeps it for all of its threads.
        if os.sched_getscheduler(thread) == os.SCHED_OTHER:
            os.sched_setscheduler(thread, os.SCHED_BATCH, os.sched_param(0))


def _spread(threads: list[int]) -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(threads) < len(cores):
        return  # all processes that were given few threads would take the same cores
    for number, thread in enumerate(threads):
        with suppress(OSError):
            os.sched_setaffinity(thread, {cores[number % len(cores)]})
