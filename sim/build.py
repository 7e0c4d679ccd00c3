"""Gateware -> Verilator shared library for the rtl backend.

    python -m sim.build [--key-bits 32 64]

A library is cached by the content it is made of; beside it lies a manifest by the digest of the
gateware's sources, which tells the host where the fields of a command are.
"""

import argparse
import fcntl
import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from hw.rtl.block_core import BlockCore
from hw.rtl.digest import gateware_digest, library_directory
from hw.rtl.join_core import command_layout, reply_layout
from hw.rtl.layouts import fields_of, key_shape, tuple_layout
from hw.spec import JoinParams
from sim.elaborate import short_verilog
from sim.ported_memory import CELLS
from sim.simulated_core import SimulatedCore
from sim.verilated import OPTIMISE, compile_library

__all__ = ["build_library", "backend_params", "SLOTS"]

HARNESS = Path(__file__).with_name("core_harness.cpp")
#: What a library is made of, beside the gateware: if none of it changed, nothing is elaborated.
SOURCES = ("build.py", "core_harness.cpp", "elaborate.py", "ported_memory.py", "simulated_core.py",
           "verilated.py")
#: Subwindows of one simulated core; a backend opens another core when they are taken.
SLOTS = 3
#: The core that place and route is given: one main array of 16K tuples, double-buffered, and an
#: index entry for every memory word.
ROUTED = JoinParams(subwindow=1 << 14, partitions=1 << 12)
ROUTED_SLOTS = 1


def backend_params(key_bits):
    """The core of the rtl backend: the one that is placed and routed, whose clock is known."""
    return replace(ROUTED, key_bits=key_bits)


def build_library(params, *, slots=ROUTED_SLOTS, where=None, design="wide", optimise=OPTIMISE):
    """Build the library of a simulated core unless it is there; the path of its manifest.

    It is the chip's core, with its block RAM, where a partition is a memory word.
    """
    where = Path(where or library_directory())
    where.mkdir(parents=True, exist_ok=True)
    manifest = where / f"core{params.key_bits}-{gateware_digest()}.json"
    recipe = _recipe(params, slots, design, optimise)
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_made(manifest, recipe):
            return manifest
        text = short_verilog(_core(params, slots, design), "core") + CELLS
        made_of = [text, HARNESS.read_text(), optimise, importlib.metadata.version("verilator")]
        digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:20]
        library = where / f"core-{digest}.so"
        if not library.exists():
            with tempfile.TemporaryDirectory(prefix="core-", dir=where) as directory:
                os.replace(_compile(text, params, Path(directory), optimise), library)
        about = _manifest(params, slots, library, design) | {"recipe": recipe}
        manifest.write_text(json.dumps(about, indent=2) + "\n")
    return manifest


def _core(params, slots, design):
    if params.partition_rows == params.lanes:
        return BlockCore(params, slots=slots, design=design)
    return SimulatedCore(params, slots=slots, design=design, verilog=True)


def _recipe(params, *choices):
    """A digest of all that decides what the library is."""
    text = hashlib.sha256(repr((gateware_digest(), params, choices)).encode())
    for name in SOURCES:
        text.update(HARNESS.with_name(name).read_bytes())
    for tool in ("amaranth", "verilator"):
        text.update(importlib.metadata.version(tool).encode())
    return text.hexdigest()[:20]


def _is_made(manifest, recipe):
    """Whether the manifest is of that recipe and its library is there."""
    if not manifest.exists():
        return False
    about = json.loads(manifest.read_text())
    return about.get("recipe") == recipe and (manifest.parent / about["library"]).exists()


def _manifest(params, slots, library, design):
    layouts = {"command": command_layout(params), "reply": reply_layout()}
    return {
        "library": library.name,
        "gateware": gateware_digest(),
        "params": asdict(params),
        "slots": slots,
        "design": design,
        "routed": _routed_name(params, slots, design),
        **{name: fields_of(layout) for name, layout in layouts.items()},
    }


def _routed_name(params, slots, design):
    """Which design of sim.pnr this core is, if it is one: its clock is this core's."""
    return f"core_{design}" if (params, slots) == (ROUTED, ROUTED_SLOTS) else None


def _compile(text, params, where, optimise):
    """The library, fresh from Verilator and the C++ compiler."""
    lanes = params.lanes
    macros = {
        "LANES": lanes, "COUNT_BITS": lanes.bit_length(),
        "KEY_WORDS": key_shape(params).width // 32, "TUPLE_WORDS": tuple_layout(params).size // 32,
        "COMMAND_WORDS": -(-command_layout(params).size // 32),
        "REPLY_WORDS": -(-reply_layout().size // 32),
    }
    return compile_library(text, HARNESS, where, macros, optimise)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key-bits", type=int, nargs="*", default=[32, 64], choices=(32, 64))
    if not shutil.which("g++"):
        sys.exit("sim.build needs a C++ compiler: install g++ (Debian: apt-get install g++).")
    for key_bits in parser.parse_args().key_bits:
        print(build_library(backend_params(key_bits)), flush=True)


if __name__ == "__main__":
    main()
