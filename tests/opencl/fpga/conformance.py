"""A plugin for pytest: the backend opencl is asked for the FPGA emulator, with small sizes.

With it the one conformance suite, tests/host/test_backends.py, judges the FPGA form, chosen the way
a user chooses it.
"""

from dataclasses import replace

from host.backends.choice import BackendOpener
from host.backends.opencl_fpga_backend import FpgaFormBackend

_open = BackendOpener.__call__


def opened(self):
    assert self.name == "opencl"
    params = replace(self.params, mergers=2, probers=2, partitions=64)
    engine = _open(replace(self, params=params, device="emulation"))
    assert isinstance(engine, FpgaFormBackend)
    return engine


def pytest_configure(config):
    BackendOpener.__call__ = opened
