"""Where block RAM lies on the LFE5*-85F: blocks that work together get sites side by side.

    netlist = json.loads(path.read_text())          # of yosys: synth_ecp5 -json
    constrain(netlist, {0: ["core.keys", 4, "core.rids"], 2: ["core.index"]})
    path.write_text(json.dumps(netlist))            # for nextpnr, with any placer

or ``python -m hw.boards.floorplan netlist.json plan.json``, which rewrites the netlist.

A plan has, for each row of sites that it uses, what lies there from the left to the right: the
hierarchical name of a memory, which stands for all of its blocks, or a number of sites that stay
free. Blocks of memories that a plan does not name are the placer's, and so is all other logic,
which follows the blocks.
"""

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["ROWS", "SITES", "Plan", "constrain", "memories"]

#: What lies in a row, from the left to the right: names of memories, numbers of free sites.
Plan = Mapping[int, Sequence[str | int]]
#: The rows of the chip that have block RAM, and the columns of the sites in each of them.
ROWS = (22, 46, 70, 82)
_GROUPS = (*range(4, 59, 9), *range(69, 115, 9))
_COLUMNS = [left + 2 * n for left in _GROUPS for n in range(4)]
#: The sites of each row, from the left to the right, as nextpnr names them.
SITES = [
    [f"X{column}/Y{row}/EBR{n % 4}" for n, column in enumerate(_COLUMNS)] for row in ROWS
]
_BLOCK = "DP16KD"


def memories(netlist: dict) -> dict[str, list[str]]:
    """The names of the netlist's memories in block RAM, and of each one's blocks in order."""
    found: dict[str, list[str]] = {}
    for name, cell in _cells(netlist).items():
        if cell["type"] == _BLOCK:
            # yosys names a block by its memory, and by its place among the memory's blocks.
            found.setdefault(re.sub(r"(\.\d+)+$", "", name), []).append(name)
    for memory, blocks in found.items():
        blocks.sort(key=lambda name: [int(n) for n in name[len(memory) + 1 :].split(".") if n])
    return found


def constrain(netlist: dict, plan: Plan) -> None:
    """Give the blocks of the plan's memories their sites: the attribute BEL of each cell.

    ValueError for a memory that is not there or that is named twice, for a row that the chip does
    not have, and for more blocks than a row has sites.
    """
    cells, blocks_of = _cells(netlist), memories(netlist)
    for row, items in plan.items():
        if row not in range(len(ROWS)):
            raise ValueError(f"rows of block RAM are 0 to {len(ROWS) - 1}, not {row}")
        at = 0
        for item in items:
            if isinstance(item, int):
                at += item
                continue
            if item not in blocks_of:
                raise ValueError(f"{item} is no memory in block RAM, or is named twice")
            for block in blocks_of.pop(item):
                if at >= len(SITES[row]):
                    raise ValueError(f"row {row} has {len(SITES[row])} sites, too few for {item}")
                cells[block]["attributes"]["BEL"] = SITES[row][at]
                at += 1


def _cells(netlist):
    """The cells of the top module."""
    for module in netlist["modules"].values():
        if int(module.get("attributes", {}).get("top", "0"), 2):
            return module["cells"]
    raise ValueError("the netlist has no top module")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("netlist", type=Path, help="JSON of yosys, which is rewritten")
    parser.add_argument("plan", type=Path, help="JSON: row to names and numbers of free sites")
    said = parser.parse_args()
    netlist = json.loads(said.netlist.read_text())
    plan = json.loads(said.plan.read_text())
    constrain(netlist, {int(row): items for row, items in plan.items()})
    said.netlist.write_text(json.dumps(netlist))


if __name__ == "__main__":
    main()
