"""The gateware's figures: cycles, which are exact, clocks of place and route: suite `rtl`."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench import rtl_cycles
from bench.figures import figure
from host.backend import Probes
from host.backends.rtl_backend import RtlBackend
from hw.rtl.digest import library_directory
from hw.spec import Band, JoinParams, Predicate, Side, tuple_dtype
from sim.build import backend_params, build_library
from sim.verilated import QUICK as QUICK_BUILD

__all__ = ["run"]

#: What is asked of the cycles: name in rtl_cycles.SUITE, figure, at least.
CYCLES = {
    "merger": ("tuples_a_cycle", 0.99),
    "wide_merger_2": ("tuples_a_cycle", 0.98 * 2),
    "wide_merger_4": ("tuples_a_cycle", 0.98 * 4),
    "wide_merger_8": ("tuples_a_cycle", 0.98 * 8),
    "insertion_wide_8_block": ("tuples_a_cycle", 7.0),
    "insertion_narrow_8_block": ("tuples_a_cycle", 7.0),
    "insertion_wide_4_slow": ("share_of_memory", 0.9),
    "insertion_wide_4_shared": ("share_of_memory", 0.9),
}
PROBING = {"dense": 2.0, "sparse": 1.0, "alone": 1.0}
#: Clocks in MHz, and what a whole core may take of the chip's LUTs.
CLOCKS = {"merger": 220.0, "wide_merger_4": 210.0, "prober": 200.0, "core_wide": 140.0}
CORE, CORE_SHARE = "core_wide", 0.25
LIBRARY_CYCLES_PER_S = 100_000.0
#: What a quick run needs: the small simulation and the small library of the tests.
QUICK = ("merger",)
QUICK_SIZES: dict[str, Any] = dict(
    subwindow=64, partitions=8, lanes=2, probers=2, mergers=2, insert_buffer=32
)


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """Every figure beside what is asked of it, and both ways to insert."""
    cycles: dict[str, rtl_cycles.Figures] = {}
    for name in QUICK if quick else rtl_cycles.SUITE:
        progress(f"rtl: {name}")
        cycles |= rtl_cycles.run([name])
    progress("rtl: the library's speed")
    result: dict[str, Any] = {
        "quick": quick,
        "cycles": cycles,
        "figures": [*_of_cycles(cycles), *_of_clocks()],
        "library": library_speed(quick),
    }
    if not quick:
        result["insertion_designs"] = rtl_cycles.side_by_side(cycles)
    return result


def _of_cycles(cycles: dict[str, rtl_cycles.Figures]) -> list[dict[str, Any]]:
    """The worst kind of keys counts."""
    found = []
    for name, (field, at_least) in CYCLES.items():
        if name in cycles:
            worst = min(one[field] for one in cycles[name].values())
            found.append(figure(f"{name}: {field.replace('_', ' ')}", worst, at_least=at_least))
    return found + _of_probes("probing", cycles) + _of_probes("probing_far", cycles)


def _of_probes(name: str, cycles: dict[str, rtl_cycles.Figures]) -> list[dict[str, Any]]:
    """Of a far engine batches that follow each other: one alone takes its longer way as well."""
    return [
        figure(
            f"{name.replace('_', ', ')}, {shape}: probes a cycle", one["probes_a_cycle"],
            at_least=PROBING[shape.split()[0]],
        )
        for shape, one in cycles.get(name, {}).items()
        if not (name == "probing_far" and shape.startswith("alone"))
    ]


def _of_clocks() -> list[dict[str, Any]]:
    """What `make pnr` has left in pnr.json."""
    routed = rtl_cycles.routed()
    found = [
        figure(f"{name}: MHz", routed[name]["mhz"], at_least=at_least)
        for name, at_least in CLOCKS.items() if name in routed
    ]
    if CORE in routed:
        share = routed[CORE]["lut_share"]
        found.append(figure(f"{CORE}: share of the LUTs", share, at_most=CORE_SHARE))
    return found


def library_speed(quick: bool) -> dict[str, Any]:
    """Simulated cycles a second of the rtl backend's library: inserts, then dense probes."""
    params, where = backend_params(32), None
    if quick:
        params, where = JoinParams(**QUICK_SIZES), library_directory() / "small"
        build_library(params, slots=7, where=where, optimise=QUICK_BUILD)
    else:
        build_library(params)
    cycles, seconds = _run_library(params, where)
    bound = {} if quick else {"at_least": LIBRARY_CYCLES_PER_S}
    rate = cycles / seconds
    return figure("library: simulated cycles a second", rate, **bound) | {"cycles": cycles}


def _run_library(params: JoinParams, where: Path | None) -> tuple[int, float]:
    rng = np.random.default_rng(1)
    backend = RtlBackend(params, where)
    rows = backend.params.subwindow
    tuples = np.zeros(rows, tuple_dtype(32))
    tuples["key"] = rng.integers(0, 8 * rows, rows)
    backend.create(Side.LEFT, 1, rows)
    began = time.perf_counter()
    step = backend.params.insert_buffer
    for first in range(0, rows, step):
        backend.insert(Side.LEFT, 1, np.sort(tuples[first : first + step], order="key"))
    keys = np.sort(rng.integers(0, 8 * rows, 4 * rows)).astype(np.int32)
    backend.probe(Side.LEFT, [1], Probes(Side.RIGHT, keys, Predicate((Band(-2, 3),))))
    seconds = time.perf_counter() - began
    cycles = backend.use().cycles
    backend.close()
    return cycles, seconds
