"""OpenCL devices: which there are, how fast their memory is, and which one is meant."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hw import bitstreams
from hw.opencl.pocl_cpu import name_cpu
from hw.opencl.pocl_threads import devices_of

__all__ = ["Device", "DeviceError", "choose", "list_devices", "measure_bandwidth", "open_device"]

_CURE = (
    'install one with pip install "pyopencl[pocl]", or set OCL_ICD_VENDORS to the directory '
    "of your driver's .icd file"
)
_COPY = """
__kernel void copy(__global const uint16 *restrict from, __global uint16 *restrict into)
{
    size_t pieces = get_global_size(0), each = (BLOCKS + pieces - 1) / pieces;
    size_t first = get_global_id(0) * each, stop = min((size_t)BLOCKS, first + each);
    for (size_t i = first; i < stop; i++)
        into[i] = from[i];
}
"""


class DeviceError(Exception):
    """A device is absent or fails; one sentence that names the cure."""


@dataclass(frozen=True)
class Device:
    """One device, as a person chooses it; `handle` is what PyOpenCL knows it by."""

    number: int
    place: tuple[int, int]  # of the platform, and of the device in its platform
    platform: str
    version: str  # of the platform: tells two of one name apart
    name: str
    driver: str
    kind: str  # "gpu", "cpu" or "accelerator"
    memory_bytes: int
    compute_units: int
    handle: Any = field(repr=False, compare=False)
    cpu: str = ""  # what it is called instead of a name that its driver does not have

    def __str__(self) -> str:
        # PoCL goes on with its build options, after two spaces.
        version = self.version.split("  ")[0]
        return f"{self.number} = {self.name} ({self.platform}, {version})"

    @property
    def identity(self) -> dict[str, str]:
        """What a device binary is made for."""
        target = " ".join([self.handle.version.strip(), *([f"as {self.cpu}"] if self.cpu else [])])
        return {
            "platform": self.platform, "version": self.version, "device": self.name,
            "driver": self.driver, "target": target,
        }


def list_devices() -> list[Device]:
    """Every device of every platform, in the order of the numbers that choose() takes.

    Raises DeviceError where PyOpenCL is not installed; no device at all is an empty list.
    """
    cl = _pyopencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # the loader calls an empty list an error
        return []
    devices: list[Device] = []
    for place, platform in enumerate(platforms):
        try:
            handles = devices_of(platform)
        except cl.Error:
            continue
        for number, handle in enumerate(handles):
            devices.append(_describe(len(devices), (place, number), platform, handle))
    return devices


def choose(wanted: str | None = None, devices: list[Device] | None = None) -> Device:
    """The device that `wanted` names: a number, a part of its name, or "platform:device".

    Both parts of "platform:device" are numbers or parts of names; a platform's version counts as
    its name, so that two of one name can be told apart. None is the first GPU, then CPU, then
    accelerator.
    """
    devices = list_devices() if devices is None else devices
    if not devices:
        raise DeviceError(f"there is no OpenCL device: {_CURE}")
    if wanted is None:
        return min(devices, key=lambda device: ("gpu", "cpu", "accelerator").index(device.kind))
    found = [device for device in devices if _is_meant(device, wanted.strip().lower())]
    there = "; ".join(map(str, devices))
    if not found:
        raise DeviceError(f"no OpenCL device matches {wanted!r}{_made_for(wanted)} one of {there}")
    if len(found) > 1:
        matching = "; ".join(map(str, found))
        raise DeviceError(
            f"{len(found)} OpenCL devices match {wanted!r}: choose by number one of {matching}"
        )
    return found[0]


def open_device(device: Device) -> Any:
    """A context on the device; DeviceError where its driver refuses."""
    cl = _pyopencl()
    try:
        return cl.Context([device.handle])
    except cl.Error as error:
        raise DeviceError(
            f"the OpenCL device {device} does not open ({error}): choose another with --device"
        ) from error


def measure_bandwidth(device: Device, size_bytes: int = 1 << 26) -> float:
    """Bytes a second that the device copies (each counted once), best of five.

    A kernel copies, or the driver where it builds no kernels: a card with a fixed program.
    """
    cl = _pyopencl()
    context = open_device(device)
    try:
        queue = cl.CommandQueue(context)
        buffers = [
            cl.Buffer(context, cl.mem_flags.READ_WRITE, size_bytes) for _ in ("from", "into")
        ]
        for buffer in buffers:
            cl.enqueue_fill_buffer(queue, buffer, np.array(0, np.uint32), 0, size_bytes)
        copy = _copying(device, context, queue, buffers, size_bytes)
        best = float("inf")
        for _ in range(5):
            queue.finish()
            start = time.perf_counter()
            copy()
            queue.finish()
            best = min(best, time.perf_counter() - start)
    except cl.Error as error:
        reason = " ".join(str(error).split())
        raise DeviceError(
            f"the OpenCL device {device} fails ({reason}): choose another with --device"
        ) from error
    return size_bytes / best


def _copying(
    device: Device, context: Any, queue: Any, buffers: list[Any], size_bytes: int
) -> Callable[[], object]:
    """What begins one copy."""
    cl = _pyopencl()
    if not device.handle.compiler_available:
        return lambda: cl.enqueue_copy(queue, buffers[1], buffers[0])
    with warnings.catch_warnings():
        # The FPGA emulator says of every kernel how it was built.
        warnings.simplefilter("ignore", cl.CompilerWarning)
        built = cl.Program(context, _COPY).build([f"-DBLOCKS={size_bytes // 64}"])
    kernel = cl.Kernel(built, "copy")
    pieces = device.compute_units * (2 if device.kind == "cpu" else 256)
    return lambda: kernel(queue, (pieces,), None, *buffers)


def _pyopencl() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise DeviceError(
            'PyOpenCL is not installed: install it with pip install "pyopencl[pocl]"'
        ) from error
    return pyopencl


def _describe(number: int, place: tuple[int, int], platform: Any, handle: Any) -> Device:
    types = _pyopencl().device_type
    kinds = {types.GPU: "gpu", types.CPU: "cpu"}
    kind = next((name for bit, name in kinds.items() if handle.type & bit), "accelerator")
    return Device(
        number=number, place=place, platform=platform.name.strip(),
        version=platform.version.strip(), name=handle.name.strip(),
        driver=handle.driver_version.strip(), kind=kind,
        memory_bytes=handle.global_mem_size, compute_units=handle.max_compute_units,
        handle=handle, cpu=name_cpu(handle),
    )


def _made_for(wanted: str) -> str:
    """What to do about a device that is not here, up to the list of those that are."""
    name = wanted.strip().lower()
    files = [
        entry.file
        for entry in bitstreams.read_manifest().values()
        if entry.kind == "opencl" and name in entry.device["device"].lower()
    ]
    if not files:
        return ": choose"
    made = f"bitstreams/{files[0]}"
    return f", which {made} is made for: plug it in and install its driver, or choose"


def _is_meant(device: Device, wanted: str) -> bool:
    platform, colon, name = wanted.partition(":")
    if colon:
        return _fits(platform, device.place[0], f"{device.platform} {device.version}") and _fits(
            name, device.place[1], device.name
        )
    names = f"{device.kind} {device.name} {device.platform} {device.version}"
    return _fits(wanted, device.number, names)


def _fits(wanted: str, number: int, text: str) -> bool:
    wanted = wanted.strip()
    return int(wanted) == number if wanted.isdecimal() else wanted in text.lower()
