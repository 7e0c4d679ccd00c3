"""Engine of several cores -> Verilator shared library for the rtl backend.

    python -m sim.build_engine [--cores 2 4] [--key-bits 32]
"""

import argparse
import fcntl
import hashlib
import importlib.metadata
import json
import os
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from hw.rtl.digest import gateware_digest, library_directory
from hw.rtl.engine import Engine
from hw.rtl.engine_port import EnginePort
from hw.rtl.engine_words import head_layout
from hw.rtl.layouts import fields_of
from hw.spec import JoinParams
from sim.build import SLOTS, backend_params
from sim.elaborate import short_verilog
from sim.ported_memory import CELLS
from sim.simulated_core import SimulatedCore
from sim.verilated import QUICK, compile_library

__all__ = ["build_engine_library"]

HARNESS = Path(__file__).with_name("port_harness.cpp")


def build_engine_library(params: JoinParams, *, slots=SLOTS, where=None):
    """Build the library of an engine of `params.cores` cores unless it is there; its manifest."""
    where = Path(where or library_directory())
    where.mkdir(parents=True, exist_ok=True)
    manifest = where / f"engine{params.cores}-{params.key_bits}-{gateware_digest()}.json"
    with open(where / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if manifest.exists():
            return manifest
        engine = Engine(params, lambda: SimulatedCore(params, slots=slots, verilog=True))
        text = short_verilog(EnginePort(params, engine), "core") + CELLS
        made_of = [text, HARNESS.read_text(), QUICK, importlib.metadata.version("verilator")]
        digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:20]
        library = where / f"engine-{digest}.so"
        if not library.exists():
            with tempfile.TemporaryDirectory(prefix="engine-", dir=where) as directory:
                os.replace(compile_library(text, HARNESS, Path(directory), optimise=QUICK), library)
        about = {
            "library": library.name, "gateware": gateware_digest(), "params": asdict(params),
            "slots": slots, "head": fields_of(head_layout(params)),
        }
        manifest.write_text(json.dumps(about, indent=2) + "\n")
    return manifest


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cores", type=int, nargs="*", default=[2, 4], choices=(1, 2, 4, 8, 16))
    parser.add_argument("--key-bits", type=int, nargs="*", default=[32], choices=(32, 64))
    asked = parser.parse_args()
    for key_bits in asked.key_bits:
        for cores in asked.cores:
            params = replace(backend_params(key_bits), cores=cores)
            print(build_engine_library(params), flush=True)


if __name__ == "__main__":
    main()
