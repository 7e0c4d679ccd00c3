"""host.threads: a signal that comes while a thread is started does not keep the process."""

import subprocess
import sys

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
