"""What goes wrong on an OpenCL device, as the error that a join ends with."""

from collections.abc import Iterator
from contextlib import contextmanager

from host.errors import BackendUnavailable
from hw.opencl.devices import DeviceError

__all__ = ["device_errors"]


@contextmanager
def device_errors() -> Iterator[None]:
    """Turn a device's own errors into BackendUnavailable."""
    try:
        yield
    except DeviceError as error:
        raise BackendUnavailable(str(error)) from error
