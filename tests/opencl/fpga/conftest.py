"""Engines of several sizes on the FPGA emulator; tests/opencl/test_fpga_form.py starts these."""

from dataclasses import replace

import pytest

from host.backends.opencl_fpga_backend import FpgaFormBackend
from hw.opencl.fpga.channel_device import find_device
from hw.opencl.fpga.engine import Engine
from hw.spec.params import JoinParams

#: Each is one program, built once: the paper's engine, and two with several cores.
SIZES = {
    "8 mergers, 8 probers": JoinParams(key_bits=32, partitions=32),
    "2 cores, 64 bits": JoinParams(key_bits=64, partitions=8, mergers=2, probers=2, cores=2),
    "4 cores": JoinParams(key_bits=32, partitions=16, mergers=1, probers=1, cores=4),
}
#: Small enough for channels of 64 words and for kernels that really run at once.
SMALL = JoinParams(key_bits=32, partitions=16, mergers=2, probers=2)
TIMEOUT_S = 20.0


@pytest.fixture(params=SIZES)
def params(request):
    return SIZES[request.param]


@pytest.fixture
def engine(params):
    """An engine by itself, for what its interface does not show."""
    opened = Engine(params, find_device(), timeout_s=TIMEOUT_S)
    yield opened
    opened.close()


@pytest.fixture
def backend(params):
    opened = FpgaFormBackend(params, timeout_s=TIMEOUT_S)
    yield opened
    opened.close()


@pytest.fixture(params=["staged", "at once"])
def shallow(request):
    """An engine with channels of 64 words: many launches for a batch, or kernels that wait."""
    where = replace(
        find_device(), staged=request.param == "staged", depth=64, key_depth=64
    )
    opened = Engine(SMALL, where, timeout_s=TIMEOUT_S)
    yield opened
    opened.close()
