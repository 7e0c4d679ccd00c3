"""Trees, whole engines, link and bitstreams: suite `board`. Cycles are exact."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import board_cycles
from bench.board_cycles import BISORT, ORDERS, Sizes
from bench.figures import figure
from bench.link_load import link_load
from hw.bitstreams import read_manifest
from hw.boards.board import Board
from hw.boards.ecpix5 import ECPIX5
from hw.boards.ulx3s import ULX3S
from hw.spec import JoinParams
from hw.spec.link import BAUD
from sim.tree_latency import tree_latency

__all__ = ["run"]

#: Cycles that a token may take on its way beyond the depth of its tree.
LATENCY_BEYOND_DEPTH = 2
TREES = [(leaves, fan_out) for fan_out in (2, 4, 8) for leaves in (2, 4, 8, 16, 32, 64)]
QUICK_TREES = [(4, 2)]
#: What is asked of 8 cores: tuples of both streams a cycle, results a cycle, cost of an order.
INPUT, OUTPUT, ORDER_COST = 0.8, 0.95, 0.10
#: A window of one full subwindow and the one that fills; batches of a half and of a quarter.
WINDOW = BISORT.subwindow * BISORT.cores
SUSTAINED = [
    Sizes(batch=WINDOW // share, window=WINDOW, domain=8 * WINDOW, batches=2 * share)
    for share in (2, 4)
]
#: Every key is in every core.
MANY = Sizes(batch=1 << 10, window=WINDOW, domain=1 << 6, batches=2)
NESTED_WINDOWS = [1 << bits for bits in range(8, 15)]
COMPARISONS = 0.95
#: Of the chip: LUTs and block RAMs that a bitstream may take; MHz that it must reach.
CHIP = {"luts": 83_640, "brams": 208}
SHARES = {"luts": 0.85, "brams": 0.90}
CLOCKS = {"ulx3s": 80.0, "ecpix5": 125.0, "ulx3s-sdram": 65.0}
LINK, FRAMES = 0.95, 200
FAULTS, FAULTS_FILE = 1_000_000, Path(__file__).with_name("results") / "faults.json"
#: Watts at rest: core current of an LFE5U-85F in standby at 25 degrees (212 mA, at 1.1 V; with
#: LFE5UM5G at 1.2 V) and its auxiliary current (26 mA at 2.5 V). Not yet compared with the print of
#: the ECP5 family data sheet, FPGA-DS-02012, "Supply Current (Standby)".
STANDBY = {"ulx3s": 0.212 * 1.1 + 0.026 * 2.5, "ecpix5": 0.212 * 1.2 + 0.026 * 2.5}
#: Watts at most: what a USB port gives a board (USB 2.0, 500 mA at 5 V), all of the board in it.
USB_PORT = 2.5
#: Watts of PanJoin's Arria-10 (section V).
PAPER = 7.9
QUICK_ENGINE = JoinParams(
    subwindow=64, partitions=32, insert_buffer=32, lanes=2, mergers=2, probers=2, cores=2, bands=1
)
QUICK_NESTED = JoinParams(subwindow=256, partitions=64, lanes=2, cores=2, bands=1)


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """Every figure beside what is asked of it, and what the pictures are made of."""
    result: dict[str, Any] = {"quick": quick, "boards": _boards()}
    progress("board: latency of the trees")
    result["latency"] = [
        {"leaves": leaves, "fan_out": fan_out, **tree_latency(leaves, fan_out)}
        for leaves, fan_out in (QUICK_TREES if quick else TREES)
    ]
    progress("board: cores behind trees")
    result |= _engines(quick)
    progress("board: nested-loop cores")
    result |= _nested(quick)
    progress("board: the link under load")
    result["link"] = link_load(40 if quick else FRAMES)
    if FAULTS_FILE.exists():
        result["faults"] = json.loads(FAULTS_FILE.read_text())
    if not quick:
        progress("board: the engine of the boards")
        result["energy"] = _energy(result["boards"])
    result["figures"] = _figures(result)
    return result


def _engines(quick: bool) -> dict[str, Any]:
    """Cores of BI-Sort: input of both streams, and output where that is the limit."""
    if quick:
        engine = board_cycles.block_engine(QUICK_ENGINE)
        loads = [Sizes(batch=64, window=128, domain=1 << 10, batches=4)]
        many = Sizes(batch=64, window=128, domain=8, batches=1)
    else:
        engine = board_cycles.block_engine()
        loads, many = SUSTAINED, MANY
    found = {
        "sustained": [
            board_cycles.sustained(engine, sizes, order) for sizes in loads for order in ORDERS
        ],
        "output": [board_cycles.output_limited(engine, many, order) for order in ORDERS],
    }
    engine.close()
    return found


def _nested(quick: bool) -> dict[str, Any]:
    """Nested-loop cores, one BI-Sort core, and how many of the former it replaces."""
    windows = NESTED_WINDOWS[:1] if quick else NESTED_WINDOWS
    loops = board_cycles.nested_engine(*[QUICK_NESTED] * quick)
    core = (
        board_cycles.block_engine(JoinParams(**{**vars(QUICK_ENGINE), "cores": 1}), slots=1)
        if quick else board_cycles.block_engine(board_cycles.ONE_CORE, slots=1)
    )
    nested = board_cycles.comparisons(loops, windows)
    bisort = board_cycles.one_core(core, [64] if quick else windows)
    for engine in (loops, core):
        engine.close()
    return {
        "nested": nested, "one_core": bisort,
        "replaced": [
            {"window": one["window"],
             "cores": round(loop["cycles_a_tuple"] / one["cycles_a_tuple"], 1)}
            for loop, one in zip(nested, bisort, strict=True)
        ],
    }


def _boards() -> list[dict[str, Any]]:
    """What the manifest says of the bitstreams that are kept."""
    found = []
    for digest, entry in read_manifest().items():
        if entry.kind == "board":
            facts = {name: entry.facts[name] for name in ("clock_mhz", "mhz", "seed")}
            shares = {name: round(entry.facts[name] / CHIP[name], 4) for name in CHIP}
            found.append({
                "board": entry.device["board"], "chip": entry.device["chip"], "digest": digest,
                **facts, "margin": round(facts["mhz"] / facts["clock_mhz"] - 1, 4),
                "params": entry.params, "slots": entry.facts["slots"],
                **{f"{name}_share": share for name, share in shares.items()},
            })
    return found


def _energy(boards: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Joules a tuple at the rate of the board's engine, for what is known of its power."""
    found = []
    for board in (ULX3S, ECPIX5):
        kept = [one for one in boards if one["board"] == board.name]
        if not kept:
            continue
        rate = _board_rate(board) * kept[0]["clock_mhz"] * 1e6
        found.append({
            "board": board.name, "tuples_a_second": round(rate),
            "line_tuples_a_second": round(BAUD / 10 / _line_bytes(board)),
            "watts_at_rest": round(STANDBY[board.name], 3), "watts_at_most": USB_PORT,
            "microjoules_a_tuple": [
                round(1e6 * watts / rate, 3) for watts in (STANDBY[board.name], USB_PORT)
            ],
            "paper_watts": PAPER,
            "source": "standby current, to be compared with ECP5 data sheet FPGA-DS-02012; USB 2.0",
        })
    return found


def _board_rate(board: Board) -> float:
    """Tuples of both streams a cycle of the board's engine, windows of two full slots."""
    engine = board_cycles.block_engine(board.params, board.slots)
    rows = board.params.subwindow * board.params.cores
    batch = board.params.insert_buffer * board.params.cores
    found = board_cycles.sustained(
        engine, Sizes(batch=batch, window=rows, domain=8 * rows, batches=2 * rows // batch)
    )
    engine.close()
    rate: float = found["tuples_a_cycle"]
    return rate


def _line_bytes(board: Board) -> float:
    """Bytes of a tuple on the line: itself, and its key for each of two subwindows."""
    lanes = board.params.lanes
    return (8 + 1 / lanes) + 2 * (4 + 1 / lanes)


def _figures(result: dict[str, Any]) -> list[dict[str, Any]]:
    quick = result["quick"]
    beyond = max(
        max(one["root_to_core"], one["core_to_root"]) - one["depth"] for one in result["latency"]
    )
    found = [figure("trees: cycles beyond the depth", beyond, at_most=LATENCY_BEYOND_DEPTH)]
    found += _of_engines(result, quick)
    share = min(result["link"]["to_board"], result["link"]["to_host"])
    found.append(figure("link: payload, of what the line carries", share, at_least=LINK))
    if "faults" in result:
        seen = result["faults"]
        found.append(
            figure("link: faults injected", seen["faults"], at_least=FAULTS, wrong=seen["wrong"])
        )
    for one in result["boards"]:
        asked = CLOCKS.get(one["board"])
        if asked:
            found.append(figure(f"{one['board']}: MHz", one["mhz"], at_least=asked))
            margin = one["mhz"] / one["clock_mhz"]
            found.append(figure(f"{one['board']}: clock over its own", margin, at_least=1.0))
            found += [
                figure(f"{one['board']}: share of the {name}", one[f"{name}_share"], at_most=most)
                for name, most in SHARES.items()
            ]
    return found


def _of_engines(result: dict[str, Any], quick: bool) -> list[dict[str, Any]]:
    def bound(**asked: float) -> dict[str, Any]:
        return {} if quick else asked

    sustained, output = result["sustained"], result["output"]
    plain = max(
        (one for one in sustained if one["order"] == "none"), key=lambda one: one["tuples_a_cycle"]
    )
    found = [
        figure("8 cores: tuples a cycle", plain["tuples_a_cycle"], **bound(at_least=INPUT),
               batch=plain["batch"], window=plain["window"]),
        figure("8 cores: results a cycle", output[0]["results_a_cycle"], **bound(at_least=OUTPUT)),
        figure("nested loop: comparisons a core and cycle",
               min(one["comparisons_a_core_and_cycle"] for one in result["nested"]),
               **bound(at_least=COMPARISONS)),
    ]
    for kind, ones, field in (
        ("input", sustained, "tuples_a_cycle"), ("output", output, "results_a_cycle")
    ):
        kept = min(
            strict[field] / free[field] for free, strict in zip(ones[::2], ones[1::2], strict=True)
        )
        found.append(
            figure(f"strict outer order beside none, {kind}-limited", round(kept, 4),
                   **bound(at_least=1 - ORDER_COST))
        )
    return found
