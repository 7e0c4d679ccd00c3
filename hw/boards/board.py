"""A board as data: its chip, its clock, the engine that it carries, the pins that it lends."""

from collections.abc import Callable
from dataclasses import dataclass

from amaranth.vendor import LatticeECP5Platform

from hw.boards.clock import Pll
from hw.boards.floorplan import Plan
from hw.rtl.sdram import SdramTiming
from hw.spec import JoinParams
from hw.spec.link import BAUD

__all__ = ["Board", "Pin"]

#: A resource's name, its number, and which part of it, if it has parts.
Pin = tuple[str, int, str | None]


@dataclass(frozen=True, kw_only=True)
class Board:
    """All that tells one board from another.

    name      as in `make bitstream BOARD=name` and the names of bitstreams
    loader    openFPGALoader's name of it
    platform  makes its description from amaranth-boards
    clock     the pin that its oscillator drives
    pll       what is made of it: the clock of everything inside
    reset     a button that restarts everything; None where the platform has none
    lights    for each of hw.boards.top.LEDS the pin of a light
    params    the engine that fills its chip
    slots     subwindows of each of its cores
    sdram     its chip, where that holds the main arrays; it serves one core
    seed      of placement, the best of those that were tried
    blocks    where block RAM lies, as far as the placer is not to choose
    """

    name: str
    loader: str
    platform: Callable[[], LatticeECP5Platform]
    clock: Pin
    pll: Pll
    reset: Pin | None
    lights: tuple[Pin, ...]
    params: JoinParams
    slots: int
    sdram: SdramTiming | None = None
    seed: int = 1
    blocks: Plan | None = None

    def __post_init__(self) -> None:
        if self.sdram and self.params.cores != 1:
            raise ValueError(f"SDRAM serves one core, not {self.params.cores}")

    @property
    def divisor(self) -> int:
        """Clock cycles of a bit on the line."""
        return round(self.pll.hertz / BAUD)
