"""A CPU that PoCL's LLVM does not know, or not all of: programs build, and use what it has."""

import subprocess
import sys
from dataclasses import replace

import pyopencl as cl
import pytest

from hw.opencl.building import digest_of
from hw.opencl.devices import list_devices, open_device
from hw.opencl.pocl_cpu import name_cpu

pytestmark = pytest.mark.opencl

#: Gives the CPU a name as LLVM would, in a process of its own, and builds before and after the
#: engine has looked at it.
NAMED = """
import os
import sys
from pathlib import Path

import pyopencl as cl
from hw.opencl import pocl_cpu

(platform,) = [one for one in cl.get_platforms() if "Portable" in one.name]
(device,) = platform.get_devices()
called, cpuinfo = sys.argv[1], map(Path, sys.argv[2:])

def tell(name):
    try:
        cl.Program(cl.Context([device]), f"__kernel void of_{os.getpid()}() {{}}").build()
        print(name, "builds")
    except cl.Error as error:
        print(name, *[line for line in str(error).splitlines() if line.startswith("error:")])

name = device.version.partition("-gnu-")[2]
assert name == called or pocl_cpu._rename(device, name, called)
# PoCL keeps what it has found at first.
cl.Device.version = property(lambda self: "PoCL on x86_64-" + called)
tell(called)
tell(pocl_cpu.name_cpu(device, *cpuinfo))
"""


def told(called, *cpuinfo):
    run = subprocess.run(
        [sys.executable, "-c", NAMED, called, *cpuinfo], capture_output=True, text=True, check=False
    )
    assert not run.returncode, run.stderr
    return run.stdout.splitlines()


def test_programs_build_on_a_cpu_that_llvm_does_not_know():
    before, after = told("generic")
    assert before == "generic error: unknown target CPU 'generic'"
    assert after.endswith(" builds") and not after.startswith("generic")


V2 = "cx16 popcnt sse4_1 sse4_2 ssse3"
V3 = f"{V2} avx avx2 abm bmi1 bmi2 f16c fma movbe"
ZEN_3 = f"{V3} adx clzero sha_ni sse4a vaes vpclmulqdq"
AVX512 = (
    "avx512f avx512dq avx512ifma avx512cd avx512bw avx512vl avx512vbmi avx512_vbmi2 avx512_vnni "
    "avx512_bitalg avx512_vpopcntdq"
)


@pytest.mark.parametrize(
    ("flags", "name"),
    [
        ("fpu sse2", "x86-64"), (f"{V2} avx avx2", "x86-64-v2"), (f"{V3} avx512f", "x86-64-v3"),
        (f"{ZEN_3} avx512f", "znver3"), (f"{ZEN_3} gfni {AVX512}", "icelake-server"),
    ],
)
def test_the_name_promises_no_instruction_that_is_missing(flags, name, tmp_path):
    assert told("generic", cpu_with(flags, tmp_path))[1] == f"{name} builds"


@pytest.mark.parametrize(
    ("called", "flags", "name"),
    [
        ("znver3", f"{ZEN_3} gfni {AVX512}", "icelake-server"), ("znver3", ZEN_3, ""),
        ("x86-64-v2", f"{V3} avx512f", "x86-64-v3"), ("haswell", f"{ZEN_3} gfni {AVX512}", ""),
    ],
)
def test_a_name_that_llvm_gave_is_bettered_where_the_cpu_has_more(called, flags, name, tmp_path):
    assert told(called, cpu_with(flags, tmp_path))[1] == f"{name} builds"


def cpu_with(flags, folder):
    cpuinfo = folder / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbugs\t\t:\n")
    return str(cpuinfo)


def test_a_binary_is_for_the_name_that_was_given():
    device = list_devices()[0]
    other = replace(device, cpu="x86-64-v2")
    assert other.identity["target"] == f"{device.handle.version} as x86-64-v2"
    assert digest_of(device, "", ()) != digest_of(other, "", ())


def test_every_device_builds_whatever_its_cpu():
    for device in list_devices():
        assert name_cpu(device.handle) == device.cpu
        cl.Program(open_device(device), "__kernel void empty() {}").build()
