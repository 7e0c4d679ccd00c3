"""watersmeet devices: the engines that this machine has."""

import argparse
import os
import platform
from collections.abc import Iterator
from dataclasses import astuple, dataclass

from hw.bitstreams import read_manifest
from hw.opencl.devices import Device, DeviceError, choose, list_devices, measure_bandwidth
from hw.opencl.fpga.channel_device import has_channels

__all__ = ["Engine", "list_engines", "run"]


@dataclass(frozen=True)
class Engine:
    """A line of the list: what a join can run on here, or why it cannot."""

    backend: str
    device: str = "-"  # for --device
    name: str = "-"
    kind: str = "-"
    units: str = "-"
    memory: str = "-"
    bandwidth: str = "-"
    driver: str = "-"


_TITLES = Engine("BACKEND", "DEVICE", "NAME", "KIND", "UNITS", "MEMORY", "BANDWIDTH", "DRIVER")


def list_engines() -> list[Engine]:
    """Everything a join could run on here."""
    return [_numpy(), *_opencl(), *_boards()]


def run(arguments: argparse.Namespace) -> int:
    rows = [astuple(line) for line in (_TITLES, *list_engines())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        print("  ".join(cells).rstrip())
    return 0


def _numpy() -> Engine:
    import numpy as np
    import psutil

    return Engine(
        "numpy", name=f"this computer ({platform.machine()})", kind="cpu",
        units=str(os.cpu_count()), memory=_gib(psutil.virtual_memory().total),
        driver=f"numpy {np.__version__}; always here",
    )


def _opencl() -> Iterator[Engine]:
    """Every OpenCL device with what its memory was measured at, or what is wrong and the cure."""
    try:
        devices = list_devices()
        choose(None, devices)  # says what to do where there is none
    except DeviceError as error:
        yield Engine("opencl", driver=str(error))
        return
    yield from map(_described, devices)


def _described(device: Device) -> Engine:
    # The version tells two platforms of one name apart; PoCL's goes on with its build options.
    driver = f"{device.platform}, {device.version.split('  ')[0]}, driver {device.driver}"
    try:
        bandwidth = f"{measure_bandwidth(device) / 1e9:.1f} GB/s"
    except DeviceError as error:
        bandwidth, driver = "fails", str(error)
    return Engine(
        "opencl", str(device.number), device.name,
        f"{device.kind}, FPGA form" if has_channels(device) else device.kind,
        str(device.compute_units), _gib(device.memory_bytes), bandwidth, driver,
    )


def _boards() -> Iterator[Engine]:
    """Boards by their serial ports, with the bitstream that is for them."""
    from host.backends.board_backend import find_boards

    for port, board in find_boards():
        known = [
            entry for entry in read_manifest().values()
            if entry.kind == "board" and entry.device["board"] == board
        ]
        yield Engine(
            "board", port, board, "fpga", units=str(known[0].params["cores"]) if known else "-",
            driver=f"{known[0].file}" if known else f"no bitstream: make bitstream BOARD={board}",
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
