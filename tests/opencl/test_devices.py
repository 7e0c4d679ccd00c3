"""Devices and programs: choice, layout, and errors that name the cure."""

import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import hw.opencl.devices
from host.backends.opencl_backend import OpenCLBackend
from host.errors import BackendUnavailable
from hw.opencl.building import build
from hw.opencl.devices import (
    Device,
    DeviceError,
    choose,
    list_devices,
    measure_bandwidth,
    open_device,
)
from hw.opencl.memory import Pool
from hw.opencl.program import c_structs, open_program
from hw.spec import JoinParams, Side, tuple_dtype
from tests.helpers import exactly

pytestmark = pytest.mark.opencl


def fake(number, place, name, version="OpenCL 3.0 PoCL 3.0", kind="cpu"):
    return Device(number, place, "Portable", version, name, "3.0", kind, 1 << 30, 2, handle=None)


TWINS = [
    fake(0, (0, 0), "cpu-one"),
    fake(1, (1, 0), "cpu-one", version="OpenCL 3.0 PoCL 3.1  Debian"),
    fake(2, (1, 1), "Big GPU", version="OpenCL 3.0 PoCL 3.1  Debian", kind="gpu"),
]
THERE = (
    "0 = cpu-one (Portable, OpenCL 3.0 PoCL 3.0); 1 = cpu-one (Portable, OpenCL 3.0 PoCL 3.1); "
    "2 = Big GPU (Portable, OpenCL 3.0 PoCL 3.1)"
)


def test_devices_say_what_they_are():
    device = list_devices()[0]
    assert device.compute_units >= 1
    assert device.memory_bytes > 1 << 20
    assert device.kind in ("cpu", "gpu", "accelerator")
    assert device.name and device.driver and device.platform and device.version
    assert measure_bandwidth(device, 1 << 22) > 1e6


def test_bandwidth_is_measured_also_where_no_kernel_can_be_built(monkeypatch):
    device = choose()
    fixed = SimpleNamespace(compiler_available=False)
    monkeypatch.setattr(hw.opencl.devices, "open_device", lambda _: open_device(device))
    assert measure_bandwidth(replace(device, handle=fixed), 1 << 22) > 1e6


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        (None, 2), ("0", 0), ("1", 1), ("big", 2), ("gpu", 2), ("0:0", 0), ("1:0", 1),
        ("1:gpu", 2), ("3.0:cpu", None), ("pocl 3.1:one", 1), ("poCL 3.0:one", 0), (" 2 ", 2),
    ],
)
def test_a_device_is_chosen_by_number_name_or_platform(wanted, number):
    if number is None:  # the version says 3.0 of OpenCL in both
        with pytest.raises(DeviceError):
            choose(wanted, TWINS)
    else:
        assert choose(wanted, TWINS).number == number


def test_a_device_that_is_not_there_is_refused_with_what_is():
    with pytest.raises(
        DeviceError, match=exactly(f"no OpenCL device matches 'fpga': choose one of {THERE}")
    ):
        choose("fpga", TWINS)


def test_a_name_of_two_devices_is_refused_with_both():
    both = THERE[: THERE.index("; 2")]
    message = f"2 OpenCL devices match 'one': choose by number one of {both}"
    with pytest.raises(DeviceError, match=exactly(message)):
        choose("one", TWINS)


def test_no_device_at_all_names_the_cure():
    message = (
        'there is no OpenCL device: install one with pip install "pyopencl[pocl]", or set '
        "OCL_ICD_VENDORS to the directory of your driver's .icd file"
    )
    with pytest.raises(DeviceError, match=exactly(message)):
        choose(None, [])


def test_without_pyopencl_the_backend_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    message = 'PyOpenCL is not installed: install it with pip install "pyopencl[pocl]"'
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        OpenCLBackend(JoinParams())


def test_the_backend_passes_on_a_devices_error():
    there = "; ".join(map(str, list_devices()))
    message = f"no OpenCL device matches 'nowhere': choose one of {there}"
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        OpenCLBackend(JoinParams(), device="nowhere")


def test_a_record_that_the_device_lays_out_otherwise_is_refused():
    device = choose()
    message = (
        f"the OpenCL device {device} lays out tuple_t in 16 bytes where 12 are meant: choose "
        "another with --device"
    )
    with pytest.raises(DeviceError, match=exactly(message)):
        c_structs(device, {"tuple_t": tuple_dtype(64)})


def test_a_program_that_does_not_build_says_where():
    device = choose()
    context = open_program(device, 32).context
    pattern = (
        rf"^the OpenCL device {re.escape(str(device))} does not build the engine "
        r"\(.*error: .*\): choose another with --device$"
    )
    with pytest.raises(DeviceError, match=pattern):
        build(device, context, "__kernel void broken(")


def test_memory_that_is_not_there_is_refused():
    device = choose()
    program = open_program(device, 32)
    pool = Pool(device, program.context, program.open_queue())
    message = (
        f"the OpenCL device {device} has no room for {1 << 30} MiB beside the 64 MiB in use: use "
        "a smaller window, smaller subwindows or more workers"
    )
    with pytest.raises(DeviceError, match=exactly(message)):
        pool.allocate(1 << 50)
    pool.close()


def test_a_window_that_the_device_cannot_hold_ends_the_join():
    engine = OpenCLBackend(JoinParams())
    small = SimpleNamespace(max_mem_alloc_size=1 << 20)
    engine._pool.device = replace(engine.device, handle=small)
    engine.create(Side.LEFT, 0, 1 << 25)
    tuples = np.zeros(1 << 23, tuple_dtype(32))
    message = (
        f"the OpenCL device {engine.device} has no room for 32 MiB beside the 64 MiB in use: use "
        "a smaller window, smaller subwindows or more workers"
    )
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        engine.insert(Side.LEFT, 0, tuples)
    engine.close()


def test_a_kernel_that_the_driver_refuses_names_the_device():
    engine = OpenCLBackend(JoinParams())
    kernel = open_program(engine.device, 32).kernel("sample", [*[None] * 8, np.uint64])
    pattern = (
        rf"^the OpenCL device {re.escape(str(engine.device))} fails \(.*INVALID.*\): choose "
        "another with --device$"
    )
    with pytest.raises(DeviceError, match=pattern):
        engine._pool.launch(kernel, (1, 1, 1, 1), 0)
    engine.close()


def test_a_program_is_built_once_for_a_device_and_width():
    device = choose()
    assert open_program(device, 32) is open_program(choose(), 32)
    assert open_program(device, 32) is not open_program(device, 64)
    assert open_program(device, 32).context is open_program(device, 64).context
