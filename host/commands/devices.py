"""watersmeet devices: the engines that this machine has."""

import argparse
import importlib.util
import os
import platform

__all__ = ["list_engines", "run"]


def list_engines() -> list[tuple[str, str, str]]:
    """(backend, name for --device, details) of everything a join could run on here."""
    return [_numpy(), *_opencl()]


def run(arguments: argparse.Namespace) -> int:
    rows = [("BACKEND", "DEVICE", "DETAILS"), *list_engines()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    for backend, name, details in rows:
        print(f"{backend.ljust(widths[0])}  {name.ljust(widths[1])}  {details}".rstrip())
    return 0


def _numpy() -> tuple[str, str, str]:
    import numpy as np

    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    return "numpy", "-", f"numpy {np.__version__} on this computer ({machine}); always here"


def _opencl() -> list[tuple[str, str, str]]:
    """Devices of the opencl backend, once this version has it and a driver is installed."""
    if importlib.util.find_spec("host.backends.opencl_backend") is None:
        return []
    from hw.opencl.devices import DeviceError, list_devices

    try:
        devices = list_devices()
    except DeviceError as error:
        return [("opencl", "-", f"not available: {error}")]
    return [
        (
            "opencl",
            str(device.number),
            f"{device.name}, {device.kind}, {device.memory_bytes / 2**30:.1f} GiB, "
            f"{device.platform}",
        )
        for device in devices
    ]
