"""A name of the CPU for PoCL where its LLVM is older than the CPU.

PoCL 3.0, the one on PyPI, asks LLVM 14 what the CPU is called. Of one that came later LLVM says
either "generic" (AMD's family 26, Zen 5), which its own compiler then refuses, so that no program
builds: https://github.com/pocl/pocl/issues/1049. Or it gives the name of the one before (Zen 3
for Zen 4), and leaves what is new, AVX-512, unused. No setting changes that. So the name is
replaced where PoCL keeps it, by that of an older CPU whose instructions this one has too.
"""

import ctypes
import os
import struct
from pathlib import Path
from typing import Any

__all__ = ["name_cpu"]

_UNKNOWN = "generic"
_V2 = {"cx16", "popcnt", "sse4_1", "sse4_2", "ssse3"}
_V3 = _V2 | {"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"}
_AVX512 = {
    "avx512_bitalg", "avx512_vbmi2", "avx512_vnni", "avx512_vpopcntdq", "avx512bw", "avx512cd",
    "avx512dq", "avx512f", "avx512ifma", "avx512vbmi", "avx512vl",
}
#: What PoCL's LLVM may know, the best first, and which flags of /proc/cpuinfo it needs.
_NAMES = {
    # What it has besides (sgx, pconfig, wbnoinvd, pku), no compiler uses of its own accord.
    "icelake-server": _V3 | _AVX512 | {"adx", "gfni", "sha_ni", "vaes", "vpclmulqdq"},
    "znver3": _V3 | {"adx", "clzero", "sha_ni", "sse4a", "vaes", "vpclmulqdq"},
    "x86-64-v3": _V3,
    "x86-64-v2": _V2,
    "x86-64": set[str](),
}
#: Words of PoCL's description of a device in which the name is looked for.
_WORDS = 256


#: Names that were given, by the place of PoCL's description of the device.
_given: dict[int, str] = {}


def name_cpu(handle: Any, cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Give a PoCL device the best name among those that its CPU keeps the promise of, where it
    has none or a lesser one of them; return what it got.

    Any other device is left alone, and so is one that no name helps: its programs are built, or
    fail to build with PoCL's own words, as they would be without this.
    """
    if handle.int_ptr in _given:
        return _given[handle.int_ptr]
    names = (*_NAMES, _UNKNOWN)
    called = next((name for name in names if handle.version.endswith(f"-{name}")), None)
    if os.uname().machine != "x86_64" or called is None:
        return ""
    flags, known = _flags(cpuinfo.read_text()), called
    for name, needed in _NAMES.items():
        if name == called:
            break
        if needed <= flags and _rename(handle, known, name):
            if _builds(handle, name):
                _given[handle.int_ptr] = name
                return name
            known = name
    if known != called:
        _rename(handle, known, called)
    return ""


def _flags(cpuinfo: str) -> set[str]:
    for line in cpuinfo.splitlines():
        if line.startswith("flags"):
            return set(line.partition(":")[2].split())
    return set()


def _builds(handle: Any, name: str) -> bool:
    import pyopencl as cl

    # The text has the name: caches of built programs do not know under which one they were built.
    text = f"// {name}\n__kernel void probe(__global int *a) {{ a[0] = 1; }}"
    try:
        cl.Program(cl.Context([handle]), text).build()
    except cl.Error:
        return False
    return True


def _rename(handle: Any, old: str, new: str) -> bool:
    """Replace the CPU's name in PoCL's description of the device; False where it is not there.

    That is a C struct which has a pointer to the name. Where in it depends on PoCL's version, so
    the pointer is found by what it points to.
    """
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        words = struct.unpack(f"{_WORDS}Q", os.pread(memory, 8 * _WORDS, handle.int_ptr))
        place = next((n for n, word in enumerate(words) if _is_text(memory, word, old)), None)
    finally:
        os.close(memory)
    if place is None:
        return False
    ctypes.c_uint64.from_address(handle.int_ptr + 8 * place).value = _kept(new)
    return True


def _is_text(memory: int, place: int, text: str) -> bool:
    """Whether that C string is at a place, which need not be one."""
    expected = f"{text}\0".encode()
    try:
        return os.pread(memory, len(expected), place) == expected
    except (OSError, OverflowError):
        return False


def _kept(text: str) -> int:
    """A C string that PoCL may free."""
    duplicate = ctypes.CDLL(None).strdup
    duplicate.restype = ctypes.c_void_p
    place: int = duplicate(text.encode())
    return place
