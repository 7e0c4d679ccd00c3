"""Cycle figures of the gateware: exact, so that they hold to the digit on every machine.

    python -m bench.rtl_cycles [name ...]

Beside them, where `make pnr` has left results, what the clock makes of them.
"""

import argparse
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hw.rtl.insertion_engine import InsertionEngine
from hw.rtl.layouts import tuple_layout
from hw.rtl.merger import Merger
from hw.rtl.wide_merger import WideMerger
from hw.spec import JoinParams
from sim.elaborate import simulate
from sim.probing_tops import ProbingTop

__all__ = ["SUITE", "Figures", "routed", "run", "side_by_side"]

ROUTED = Path(__file__).with_name("results") / "pnr.json"
STORED = 1 << 16
INSERTED = 1 << 12
#: Memories: what MemoryBfm is told, and the words that it can move in a cycle.
MEMORIES: dict[str, tuple[dict[str, Any], float]] = {
    "block": ({}, 2.0),
    "slow": (dict(latency_cycles=15, refresh_every=512, refresh_cycles=16), 2 * 512 / 528),
    "shared": (
        dict(latency_cycles=15, refresh_every=512, refresh_cycles=16, shared=True), 512 / 528,
    ),
}


#: Kind of keys -> name of a figure -> its value.
Figures = dict[str, dict[str, Any]]


def _figures(text: str) -> Figures:
    found = re.findall(r"FIGURE (\{.*\})", text)
    return {figure.pop("kind"): figure for figure in map(json.loads, found)}


def merger() -> Figures:
    dut = Merger(tuple_layout(JoinParams()))
    return _figures(simulate(dut, "sim.merger_tb", name="merger", only="a_tuple_a_cycle"))


def wide_merger(lanes: int) -> Figures:
    dut = WideMerger(tuple_layout(JoinParams()), lanes)
    settings = {"lanes": lanes}
    return _figures(
        simulate(dut, "sim.wide_merger_tb", name=f"wide_merger_{lanes}", settings=settings,
                 only="every_lane_gives_a_tuple_a_cycle")
    )


def insertion(design: str, lanes: int, memory: str) -> Figures:
    """A batch of 4K into 64K. `share_of_memory` is of what the memory's busier way can move."""
    sizes: dict[str, Any] = {
        "subwindow": 2 * STORED, "insert_buffer": INSERTED, "mergers": 8, "lanes": lanes,
    }
    options, words_a_cycle = MEMORIES[memory]
    settings: dict[str, Any] = {"params": sizes, "stored": STORED, "memory": options}
    params = JoinParams(**sizes)
    main_bits = (2 * params.subwindow // lanes - 1).bit_length()
    batch_bits = (params.insert_buffer // lanes - 1).bit_length()
    figures = _figures(
        simulate(
            InsertionEngine(params, main_bits, batch_bits, design), "sim.insertion_cycles_tb",
            name=f"insertion_{design}_{lanes}", settings=settings,
        )
    )
    for figure in figures.values():
        words = figure.pop("words")
        busier = words if "shared" in options else 2 * (STORED + INSERTED) // lanes
        figure["share_of_memory"] = round(busier / (figure["cycles"] * words_a_cycle), 3)
    return figures


def probing(*, far: bool = False) -> Figures:
    """Eight probers: batch of an eighth (dense) and of a 1024th of 64K tuples (sparse, alone); a
    `far` engine is one that lies all over a chip.
    """
    sizes: dict[str, Any] = dict(subwindow=STORED, partitions=STORED // 4, lanes=4, probers=8)
    text = simulate(
        ProbingTop(JoinParams(**sizes), far=far), "sim.probing_engine_tb",
        name="probing_engine_8" + "_far" * far, settings={"params": sizes, "figures": True},
    )
    found = re.findall(r"figure probing engine, (.+?): .*?(\d+) cycles, ([\d.]+) probes", text)
    return {
        shape: {"cycles": int(cycles), "probes_a_cycle": float(rate)}
        for shape, cycles, rate in found
    }


SUITE: dict[str, Callable[[], Figures]] = {
    "merger": merger,
    "wide_merger_2": lambda: wide_merger(2),
    "wide_merger_4": lambda: wide_merger(4),
    "wide_merger_8": lambda: wide_merger(8),
    "insertion_wide_8_block": lambda: insertion("wide", 8, "block"),
    "insertion_narrow_8_block": lambda: insertion("narrow", 8, "block"),
    "insertion_wide_4_block": lambda: insertion("wide", 4, "block"),
    "insertion_wide_4_slow": lambda: insertion("wide", 4, "slow"),
    "insertion_wide_4_shared": lambda: insertion("wide", 4, "shared"),
    "insertion_narrow_4_block": lambda: insertion("narrow", 4, "block"),
    "insertion_narrow_4_slow": lambda: insertion("narrow", 4, "slow"),
    "probing": probing,
    "probing_far": lambda: probing(far=True),
}


#: The two ways to insert, by tuples of a memory word, which is what the wide merger takes a cycle:
#: what they are called in `SUITE` and in the results of sim.pnr.
DESIGNS = {
    "one wide merger, words of 4": "insertion_wide_4",
    "8 narrow mergers, words of 4": "insertion_narrow_4",
    "one wide merger, words of 8": "insertion_wide_8",
    "8 narrow mergers, words of 8": "insertion_narrow_8",
}


def side_by_side(cycles: dict[str, Figures]) -> dict[str, dict[str, Any]]:
    """Both insertion designs over one memory: tuples a cycle, and with their clock, a second."""
    results = routed()
    table = {}
    for title, name in DESIGNS.items():
        rate = min(figure["tuples_a_cycle"] for figure in cycles[f"{name}_block"].values())
        table[title] = {"tuples_a_cycle": rate}
        if name in results:
            clock = results[name]["mhz"]
            table[title] |= {
                "luts": results[name]["luts"], "mhz": clock,
                "tuples_a_second": round(rate * clock * 1e6),
            }
    return table


def routed() -> dict[str, Any]:
    """What place and route gave, by design."""
    found: dict[str, Any] = json.loads(ROUTED.read_text()) if ROUTED.exists() else {}
    return {result["design"]: result for result in found.get("results", [])}


def run(names: Iterable[str] | None = None) -> dict[str, Figures]:
    """Name -> kind of keys -> figures."""
    return {name: SUITE[name]() for name in names or SUITE}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*SUITE, []], help="all of them by default")
    cycles: dict[str, Figures] = {}
    for name in parser.parse_args().names or SUITE:
        cycles |= run([name])
        print(json.dumps({name: cycles[name]}), flush=True)
    if len(cycles) == len(SUITE):
        print(json.dumps({"insertion designs": side_by_side(cycles)}))


if __name__ == "__main__":
    main()
