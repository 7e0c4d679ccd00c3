"""The engines as OpenCL programs: throughput kernels for any device, and the FPGA form."""

from hw.opencl.devices import Device, DeviceError, choose, list_devices, measure_bandwidth

__all__ = ["Device", "DeviceError", "choose", "list_devices", "measure_bandwidth"]
