"""What engines that count clock cycles say about a join, and the time that it would take."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

__all__ = ["ROUTED", "Clock", "CoreUse", "CountsCycles", "cycle_report", "routed_clock"]

#: What place and route reached (`make pnr`).
ROUTED = Path(__file__).resolve().parents[1] / "bench" / "results" / "pnr.json"


@dataclass(frozen=True)
class CoreUse:
    """What an engine's cores did, by their own statistics registers."""

    cycles: int
    stalled: int
    tuples: int
    records: int


@dataclass(frozen=True)
class Clock:
    """The clock of a circuit, or why it is not known."""

    mhz: float | None
    source: str


@runtime_checkable
class CountsCycles(Protocol):
    """An engine that knows its cycles and its clock."""

    def use(self) -> CoreUse:
        """Since it was opened, also after it was closed; not while it works."""

    def clock(self) -> Clock:
        """Of the circuit that is simulated."""


def routed_clock(name: str | None, path: Path | None = None) -> Clock:
    """The clock that place and route gave for the design of that name, if it has one."""
    path = path or ROUTED
    if name is None:
        return Clock(None, "no core of these sizes is placed and routed")
    results: list[dict[str, Any]] = (
        json.loads(path.read_text())["results"] if path.exists() else []
    )
    for result in results:
        if result["design"] == name:
            return Clock(result["mhz"], name)
    return Clock(None, f"{path.name} has no {name}: run make pnr")


def cycle_report(uses: Sequence[CoreUse], clock: Clock, tuples: int) -> str:
    """One line about `tuples` joined by engines side by side: the busiest one sets the time."""
    busiest = max(uses, key=lambda use: use.cycles)
    cycles = max(1, busiest.cycles)
    line = (
        f"rtl: {busiest.cycles:,} cycles, {busiest.stalled / cycles:.0%} of them waiting for "
        f"memory, {tuples / cycles:.3f} tuples a cycle; "
    )
    if clock.mhz is None:
        return f"{line}its time is unknown, as {clock.source}"
    seconds = busiest.cycles / (clock.mhz * 1e6)
    rate = tuples / seconds if seconds else 0.0
    return f"{line}{seconds:.6f} s, {rate:,.0f} tuples/s at the {clock.mhz} MHz of {clock.source}"
