"""The ECPIX-5 with an LFE5UM5G-85F, speed grade 8."""

from amaranth_boards.ecpix5 import ECPIX585Platform

from hw.boards.board import Board
from hw.boards.clock import Pll
from hw.spec import JoinParams

__all__ = ["ECPIX5"]

ECPIX5 = Board(
    name="ecpix5",
    loader="ecpix5",
    platform=ECPIX585Platform,
    clock=("clk100", 0, None),
    # 625 MHz / 5 = 125 MHz.
    pll=Pll(source_hertz=100_000_000, divide=4, multiply=1, feedback=25, output=5),
    reset=("rst", 0, None),
    # Green for what is well, blue for work: four lights of three colours.
    lights=(
        ("rgb_led", 0, "g"), ("rgb_led", 1, "g"), ("rgb_led", 2, "g"), ("rgb_led", 3, "g"),
        ("rgb_led", 3, "b"),
    ),
    params=JoinParams(
        subwindow=1 << 11, partitions=1 << 10, insert_buffer=1 << 8, lanes=2, mergers=2, probers=2,
        cores=2,
    ),
    slots=7,
    seed=2,
)
