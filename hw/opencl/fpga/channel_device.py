"""Devices whose kernels can be joined by channels: which they are, and how each is launched."""

from dataclasses import dataclass

from hw.opencl.devices import Device, DeviceError, choose, list_devices

__all__ = ["ChannelDevice", "DeviceStuck", "find_device", "has_channels"]

_CURE = (
    "program a card, or run the command under Intel's FPGA emulator with python -m "
    "hw.opencl.fpga.emulator"
)


class DeviceStuck(DeviceError):
    """Kernels did not end in time, or failed; what is in the channels is unknown."""


@dataclass(frozen=True)
class ChannelDevice:
    """How to build and launch kernels that are joined by channels on one device.

    staged     Each kernel waits for those that feed it, and a launch carries no more than the
               channels hold. An emulator needs this: its kernels spin while they wait for each
               other, and without more processors than kernels that costs a scheduler's turn a word.
    depth, key_depth  of the channels: see hw.opencl.fpga.source
    options    of the program, beside what every program has
    compiles   whether the driver makes a program of source; a card only loads what its vendor's
               offline compiler made
    """

    device: Device
    staged: bool
    depth: int
    key_depth: int
    options: tuple[str, ...] = ()
    compiles: bool = False


def has_channels(device: Device) -> bool:
    """Whether the FPGA form can run on the device: Intel's channels, or Xilinx's pipes."""
    return _is_xilinx(device) or "cl_intel_channels" in device.handle.extensions.split()


def find_device(wanted: str | None = None) -> ChannelDevice:
    """The device that `wanted` names (see hw.opencl.devices.choose) among those with channels.

    Raises DeviceError where there is none.
    """
    devices = [device for device in list_devices() if has_channels(device)]
    if not devices:
        raise DeviceError(f"no OpenCL device has channels: {_CURE}")
    device = choose(wanted, devices)
    if "emulat" in device.name.lower():
        return ChannelDevice(device, staged=True, depth=8192, key_depth=16384, compiles=True)
    options = ("-DXILINX",) if _is_xilinx(device) else ()
    return ChannelDevice(device, staged=False, depth=64, key_depth=512, options=options)


def _is_xilinx(device: Device) -> bool:
    # Its driver lists no extension for pipes: they are a part of its compiler.
    return "xilinx" in device.platform.lower()
