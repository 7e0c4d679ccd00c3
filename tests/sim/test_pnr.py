"""The floorplan of the core that sim.pnr routes."""

from hw.boards.floorplan import SITES, constrain
from sim.pnr import core_floorplan


def core_netlist():
    """The blocks of the routed core by their names, and nothing else of it."""
    blocks = {"dut.core.batch.cells": 8}
    for n in range(4):
        way = f"dut.core.probing.partitioner_{n}.level_"
        blocks |= {f"{way}{level}_{side}": 1 for level in range(5, 10) for side in ("lo", "hi")}
        blocks |= {f"{way}10": 2, f"{way}11": 4}
        blocks |= {f"dut.core.probing.partitioner_{n}.out.storage": 3}
        blocks |= {f"dut.memory.keys_{n}": 15, f"dut.memory.rids_{n}": 15}
    cells = {f"{name}.0.{number}": {"type": "DP16KD", "attributes": {}}
             for name, count in blocks.items() for number in range(count)}
    return {"modules": {"ring": {"attributes": {"top": "1"}, "cells": cells}}}


def test_each_bank_and_each_way_has_a_row_of_its_own():
    netlist = core_netlist()
    constrain(netlist, core_floorplan(netlist))
    cells = netlist["modules"]["ring"]["cells"]
    for n, row in enumerate(SITES):
        placed = {cell["attributes"].get("BEL"): name for name, cell in cells.items()}
        names = [placed[site].split(".0.")[0] for site in row if site in placed]
        order = list(dict.fromkeys(names))
        levels = [name.rsplit("level_")[-1] for name in order if "level_" in name]
        assert levels == [*(f"{n}_{side}" for n in range(5, 10) for side in ("hi", "lo")),
                          "10", "11"]
        assert order[len(levels):] == [
            f"dut.core.probing.partitioner_{n}.out.storage",
            f"dut.memory.keys_{n}", f"dut.memory.rids_{n}",
        ]
        assert len(names) == 49


def test_the_batch_memory_is_the_placers():
    netlist = core_netlist()
    constrain(netlist, core_floorplan(netlist))
    cells = netlist["modules"]["ring"]["cells"]
    free = {name for name, cell in cells.items() if "BEL" not in cell["attributes"]}
    assert free == {f"dut.core.batch.cells.0.{n}" for n in range(8)}
