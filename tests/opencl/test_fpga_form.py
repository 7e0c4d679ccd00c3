"""The FPGA form on Intel's FPGA emulator, in a process of its own.

The emulator has to be announced before OpenCL first looks for devices, and kernels that wait for
each other for ever can only be ended with their process.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hw.opencl.fpga import emulator

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIMEOUT_S = 300

pytestmark = [pytest.mark.opencl, pytest.mark.slow]


def test_the_fpga_form_keeps_its_promises_on_the_emulator(tmp_path):
    assert emulator.library().exists(), f"{emulator.library()} is missing: run make setup"
    files = [HERE / "fpga" / f"{name}.py" for name in ("insertion", "probing", "collecting")]
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files],
            cwd=ROOT, env={**os.environ, **emulator.environment(tmp_path)}, timeout=TIMEOUT_S,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )
    except subprocess.TimeoutExpired as stuck:
        pytest.fail(f"did not end in {TIMEOUT_S} s: {(stuck.stdout or b'').decode()}")
    assert run.returncode == 0, run.stdout
