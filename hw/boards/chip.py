"""What goes into a board's chip: hw.boards.top on the board's pins and clock."""

from functools import partial

from amaranth.hdl import *
from amaranth.lib import io

from hw.boards.board import Board
from hw.boards.clock import ClockSource
from hw.boards.top import BoardTop
from hw.rtl.block_core import BlockCore

__all__ = ["Chip", "board_top"]


def board_top(board: Board, digest: str, divisor: int | None = None) -> BoardTop:
    """The board without its pins, as it is simulated, too; there with another `divisor`."""
    core = partial(BlockCore, board.params, slots=board.slots)
    return BoardTop(board.params, core, divisor=divisor or board.divisor, digest=digest)


class Chip(Elaboratable):
    """The top level of a bitstream that says `digest` of itself."""

    def __init__(self, board: Board, digest: str):
        self.board, self.digest = board, digest

    def elaborate(self, platform):
        m = Module()
        board = self.board
        m.submodules.clock = clock = ClockSource(board.pll)
        m.submodules.top = top = board_top(board, self.digest)
        asked = {}

        def pin(where, direction):
            name, number, part = where
            if (name, number) not in asked:
                asked[name, number] = platform.request(name, number, dir="-")
            port = asked[name, number]
            buffer = io.Buffer(direction, getattr(port, part) if part else port)
            m.submodules += buffer
            return buffer

        m.d.comb += clock.source.eq(pin(board.clock, "i").i)
        if board.reset is not None:
            m.d.comb += clock.restart.eq(pin(board.reset, "i").i)
        m.d.comb += top.rx.eq(pin(("uart", 0, "rx"), "i").i)
        m.d.comb += pin(("uart", 0, "tx"), "o").o.eq(top.tx)
        for n, where in enumerate(board.lights):
            m.d.comb += pin(where, "o").o.eq(top.leds[n])
        return m
