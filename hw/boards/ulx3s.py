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
    platform=ULX3S_85F_Platform,
    clock=("clk25", 0, None),
    # 650 MHz / 8 = 81.25 MHz, of which 27 cycles make a bit on the line within 0.3 %.
    pll=Pll(source_hertz=25_000_000, divide=1, multiply=1, feedback=26, output=8),
    reset=("button_fire", 0, None),
    lights=tuple(("led", number, None) for number in range(5)),
    params=JoinParams(
        subwindow=1 << 10, partitions=1 << 9, insert_buffer=1 << 8, lanes=2, mergers=2, probers=2,
        cores=1,
    ),
    slots=7,
    seed=2,
)

#: The same board with one core whose main arrays are in its SDRAM: slower, and 64 times the window.
ULX3S_SDRAM = replace(
    ULX3S,
    name="ulx3s-sdram",
    params=JoinParams(
        subwindow=1 << 16, partitions=1 << 10, insert_buffer=1 << 8, lanes=2, mergers=2, probers=2,
        cores=1,
    ),
    sdram=ULX3S_CHIP,
)
