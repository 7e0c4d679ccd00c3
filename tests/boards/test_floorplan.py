"""Block RAM gets the sites of a floorplan."""

import json
import sys

import pytest

from hw.boards import floorplan
from hw.boards.floorplan import ROWS, SITES, constrain, memories


def netlist(**memories):
    """Of a top module with so many blocks of each memory, and one other cell."""
    cells = {f"core.{name}.0.{n}": {"type": "DP16KD", "attributes": {}}
             for name, blocks in memories.items() for n in reversed(range(blocks))}
    cells["core.keys_or"] = {"type": "LUT4", "attributes": {}}
    return {"modules": {"LUT4": {"attributes": {"blackbox": "1"}, "cells": {}},
                        "top": {"attributes": {"top": "00000001"}, "cells": cells}}}


def sites(placed):
    """Where each block lies that has a place."""
    return {name: cell["attributes"]["BEL"]
            for name, cell in placed["modules"]["top"]["cells"].items()
            if "BEL" in cell["attributes"]}


def test_the_chip_has_208_sites():
    assert [len(row) for row in SITES] == [52] * len(ROWS)
    assert len({site for row in SITES for site in row}) == 208
    assert SITES[1][:5] == ["X4/Y46/EBR0", "X6/Y46/EBR1", "X8/Y46/EBR2", "X10/Y46/EBR3",
                            "X13/Y46/EBR0"]
    assert SITES[3][27:29] == ["X64/Y82/EBR3", "X69/Y82/EBR0"]
    assert SITES[0][-1] == "X120/Y22/EBR3"


def test_blocks_lie_in_their_order_from_the_left_to_the_right():
    planned = netlist(keys=12, rids=3)
    assert memories(planned)["core.keys"] == [f"core.keys.0.{n}" for n in range(12)]
    constrain(planned, {2: [1, "core.rids", 2, "core.keys"]})
    places = sites(planned)
    assert [places[f"core.rids.0.{n}"] for n in range(3)] == SITES[2][1:4]
    assert [places[f"core.keys.0.{n}"] for n in range(12)] == SITES[2][6:18]


def test_all_sites_can_be_taken_each_once():
    planned = netlist(**{f"bank_{n}": 52 for n in range(4)})
    constrain(planned, {n: [f"core.bank_{n}"] for n in range(4)})
    assert sorted(sites(planned).values()) == sorted(site for row in SITES for site in row)


def test_what_a_plan_does_not_name_is_the_placers():
    planned = netlist(keys=2, batch=2)
    constrain(planned, {0: ["core.keys"]})
    assert set(sites(planned)) == {"core.keys.0.0", "core.keys.0.1"}


@pytest.mark.parametrize("plan, complaint", [
    ({0: ["core.index"]}, "core.index is no memory"),
    ({0: ["core.keys_or"]}, "core.keys_or is no memory"),
    ({0: ["core.keys"], 1: ["core.keys"]}, "core.keys is no memory in block RAM, or is named twic"),
    ({4: ["core.keys"]}, "rows of block RAM are 0 to 3, not 4"),
    ({0: [52, "core.keys"]}, "row 0 has 52 sites, too few for core.keys"),
])  # fmt: skip
def test_a_plan_that_cannot_be_is_refused(plan, complaint):
    with pytest.raises(ValueError, match=complaint):
        constrain(netlist(keys=2), plan)


def test_a_netlist_without_a_top_module_is_refused():
    with pytest.raises(ValueError, match="no top module"):
        constrain({"modules": {}}, {0: ["core.keys"]})


def test_the_command_rewrites_the_netlist(tmp_path, monkeypatch):
    path, plan = tmp_path / "netlist.json", tmp_path / "plan.json"
    path.write_text(json.dumps(netlist(keys=2)))
    plan.write_text(json.dumps({1: ["core.keys"]}))
    monkeypatch.setattr(sys, "argv", ["floorplan", str(path), str(plan)])
    floorplan.main()
    placed = sites(json.loads(path.read_text()))
    assert placed == {"core.keys.0.0": SITES[1][0], "core.keys.0.1": SITES[1][1]}
