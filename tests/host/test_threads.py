"""host.threads: work beside the caller, and threads that no signal leaves behind."""

import subprocess
import sys
import threading
from functools import partial

import pytest

from host.threads import Beside

SCRIPT = """
import signal
import sys
from host.threads import one_thread

came = []

def end(*_):
    came.append(True)
    raise SystemExit(7)

signal.signal(signal.SIGALRM, end)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
kept = []
# Python ignores an exception that comes up while it clears a weak reference: then this ends it.
while not came:
    kept.append(one_thread("one"))
    if len(kept) > 50:
        kept.pop(0).shutdown()
sys.exit(7)
"""


def test_a_signal_at_a_threads_start_does_not_keep_the_process():
    for number in range(12):
        command = [sys.executable, "-c", SCRIPT, str(0.02 + number / 1000)]
        assert subprocess.run(command, timeout=60, check=False).returncode == 7


def test_what_is_started_is_done_beside_in_its_order():
    beside, done, go = Beside("test"), [], threading.Event()
    started = [beside.start(go.wait), *(beside.start(partial(done.append, n)) for n in range(9))]
    assert not done
    go.set()
    assert [one.result() for one in started] == [True, *[None] * 9]
    assert done == list(range(9))
    beside.close()


def test_what_a_call_raises_is_raised_by_its_result_and_the_next_is_done():
    beside = Beside("test")
    failing, next_ = beside.start(lambda: 1 // 0), beside.start(threading.get_ident)
    with pytest.raises(ZeroDivisionError):
        failing.result()
    assert next_.result() != threading.get_ident()
    beside.close()


def test_closing_ends_what_was_started_and_the_thread():
    beside, before = Beside("test"), threading.active_count()
    late = beside.start(lambda: sum(range(1_000_000)))
    beside.close()
    assert threading.active_count() == before - 1
    assert late.result() == 499_999_500_000


def test_who_forgets_to_close_it_is_not_kept():
    script = "from host.threads import Beside; print(Beside('test').start(lambda: 7).result())"
    command = [sys.executable, "-c", script]
    told = subprocess.run(command, timeout=60, check=True, capture_output=True, text=True)
    assert told.stdout == "7\n"
