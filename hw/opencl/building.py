"""Programs built: from a device binary in bitstreams/ where one matches, else from source."""

import warnings
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from hw import bitstreams
from hw.opencl.devices import Device, DeviceError, open_device

__all__ = ["OPTIONS", "build", "build_binary", "digest_of"]

OPTIONS = ("-Werror", "-cl-std=CL1.2")


def build(
    device: Device, context: Any, text: str, options: Sequence[str] = (), compiles: bool = True
) -> Any:
    """The built cl.Program: from bitstreams/ where one was made of the same text, options, device
    and driver, else from source, where the driver `compiles`. Warnings of its compiler are errors.
    """
    options = (*OPTIONS, *options)
    stored = bitstreams.find(digest_of(device, text, options))
    if stored is not None:
        try:
            return _load(device, context, stored, options)
        except DeviceError as error:
            if not compiles:
                raise
            warnings.warn(f"{error}; until then it is built from source", stacklevel=2)
    if not compiles:
        raise DeviceError(_no_bitstream(device))
    return _build_source(device, context, text, options)


def _load(
    device: Device, context: Any, stored: bitstreams.Bitstream, options: Sequence[str]
) -> Any:
    """The program of a device binary: PoCL's, an .aocx or an .xclbin."""
    import pyopencl as cl

    try:
        return cl.Program(context, [device.handle], [stored.read()]).build(list(options))
    except (cl.Error, bitstreams.DamagedBitstream) as error:
        reason = " ".join(str(error).split())
        raise DeviceError(
            f"the OpenCL device {device} does not load bitstreams/{stored.file} ({reason}): "
            "build it again, see bitstreams/README.md"
        ) from error


def _no_bitstream(device: Device) -> str:
    """What to do where a card has nothing of these sizes to load."""
    there = [
        ",".join(f"{name}={value}" for name, value in entry.params.items() if name != "engine")
        for entry in bitstreams.read_manifest().values()
        if entry.device == device.identity
    ]
    other = f", or ask with --params for one that is there ({'; '.join(there)})" if there else ""
    return (
        f"bitstreams/ has no engine of these sizes for the OpenCL device {device}: build one, see "
        f"bitstreams/README.md{other}"
    )


def _build_source(device: Device, context: Any, text: str, options: Sequence[str]) -> Any:
    import pyopencl as cl

    try:
        return cl.Program(context, text).build(list(options))
    except cl.RuntimeError as error:
        lines = [line for line in str(error).splitlines() if "error:" in line.lower()]
        raise DeviceError(
            f"the OpenCL device {device} does not build the engine ({'; '.join(lines[:2])}): "
            "choose another with --device"
        ) from error


def build_binary(device: Device, text: str, options: Sequence[str] = ()) -> bytes:
    """The device binary of a program, made from its source."""
    import pyopencl as cl

    built = cl.Program(open_device(device), text).build([*OPTIONS, *options])
    return bytes(built.get_info(cl.program_info.BINARIES)[0])


def digest_of(device: Device, text: str, options: Sequence[str]) -> str:
    """Names a device binary: its text, options, device and driver, and nothing else."""
    words = [text, *options, *device.identity.values()]
    return sha256("\0".join(words).encode()).hexdigest()
