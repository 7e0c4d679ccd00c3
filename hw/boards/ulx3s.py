"""The ULX3S with an LFE5U-85F, speed grade 6."""

from dataclasses import replace

from amaranth_boards.ulx3s import ULX3S_85F_Platform

from hw.boards.board import Board
from hw.boards.clock import Pll
from hw.rtl.sdram import ULX3S_CHIP
from hw.spec import JoinParams

__all__ = ["ULX3S", "ULX3S_SDRAM"]

ULX3S = Board(
    name="ulx3s",
    loader="ulx3s",
    platform=ULX3S_85F_Platform,
    clock=("clk25", 0, None),
    # 650 MHz / 8 = 81.25 MHz, of which 27 cycles make a bit on the line within 0.3 %.
    pll=Pll(source_hertz=25_000_000, divide=1, multiply=1, feedback=26, output=8),
    reset=("button_fire", 0, None),
    lights=tuple(("led", number, None) for number in range(5)),
    params=JoinParams(
        subwindow=1 << 11, partitions=1 << 10, insert_buffer=1 << 8, lanes=2, mergers=2, probers=2,
        cores=2,
    ),
    slots=7,
)

def _index(way: int) -> list[str]:
    """The index array of a way of the engine in SDRAM, level by level."""
    name = f"top.port.engine.core_0.core.probing.partitioner_{way}.level_"
    halves = [f"{name}{level}_{side}" for level in range(2, 7) for side in ("lo", "hi")]
    return [*halves, *(f"{name}{level}" for level in (7, 8, 9))]


#: The same board with one core whose main arrays are in its SDRAM: slower, and 64 times the window.
ULX3S_SDRAM = replace(
    ULX3S,
    name="ulx3s-sdram",
    # 725 MHz / 11 = 65.9 MHz, of which 22 cycles make a bit on the line within 0.2 %.
    pll=Pll(source_hertz=25_000_000, divide=1, multiply=1, feedback=29, output=11),
    params=JoinParams(
        subwindow=1 << 16, partitions=1 << 10, insert_buffer=1 << 8, lanes=2, mergers=2, probers=2,
        cores=1,
    ),
    sdram=ULX3S_CHIP,
    seed=1,
    # The many equal blocks of the last levels never leave each other in the static placer.
    blocks={
        0: [18, *_index(0)[-1:]], 1: [14, *_index(0)[:-1]], 2: [14, *_index(1)[:-1]],
        3: [18, *_index(1)[-1:]],
    },
)
