"""What goes into a board's chip: hw.boards.top on the board's pins and clock."""

from functools import partial

from amaranth.hdl import *
from amaranth.lib import io

from hw.boards.board import Board
from hw.boards.clock import ClockSource
from hw.boards.top import BoardTop
from hw.rtl.block_core import BlockCore
from hw.rtl.sdram_core import SdramCore

__all__ = ["Chip", "board_top"]


def board_top(
    board: Board, digest: str, divisor: int | None = None, sdram_core=SdramCore
) -> BoardTop:
    """The board without its pins, as it is simulated, too; there with another `divisor`, and
    where the main arrays are in SDRAM with an `sdram_core` that has the chip beside it.
    """
    if board.sdram:
        core = partial(
            sdram_core, board.params, board.sdram, board.pll.hertz, slots=board.slots
        )
    else:
        core = partial(BlockCore, board.params, slots=board.slots)
    return BoardTop(board.params, core, divisor=divisor or board.divisor, digest=digest)


class Chip(Elaboratable):
    """The top level of a bitstream that says `digest` of itself."""

    def __init__(self, board: Board, digest: str):
        self.board, self.digest = board, digest

    def elaborate(self, platform):
        m = Module()
        board = self.board
        # A reset of all registers at once would be far slower than the clock: they begin as they
        # are configured, and what has to begin anew later has a restart of its own.
        m.domains.sync = ClockDomain(reset_less=True)
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
            m.d.comb += clock.button.eq(pin(board.reset, "i").i)
        m.d.comb += top.restart.eq(clock.unsure)
        m.d.comb += top.rx.eq(pin(("uart", 0, "rx"), "i").i)
        m.d.comb += pin(("uart", 0, "tx"), "o").o.eq(top.tx)
        for n, where in enumerate(board.lights):
            m.d.comb += pin(where, "o").o.eq(top.leds[n])
        if board.sdram:
            self._connect_sdram(m, platform, top.engine.cores[0].pins)
        return m

    @staticmethod
    def _connect_sdram(m, platform, pins):
        """The chip's pins; it is clocked half a period late, so that pins are stable by then.

        It drives a datum from `tAC` behind one of its edges until `tOH` behind the next, and both
        come later here by the way out of its clock and the way in of the data, which nobody knows
        well. The falling edge of the clock here comes before that next edge, so that only their
        sum and `tAC` must be less than a period; at the rising edge behind it the datum might be
        gone already.
        """
        m.domains.falling = ClockDomain(clk_edge="neg", reset_less=True, local=True)
        m.d.comb += ClockSignal("falling").eq(ClockSignal("sync"))
        port = platform.request("sdram", 0, dir="-")
        command = pins.command.as_value()
        outputs = {
            "clk_en": C(1), "cs": C(1), "ras": command[2], "cas": command[1], "we": command[0],
            "ba": pins.bank, "a": pins.address, "dqm": pins.mask.replicate(2),
        }
        for name, value in outputs.items():
            m.submodules[f"sdram_{name}"] = buffer = io.Buffer("o", getattr(port, name))
            m.d.comb += buffer.o.eq(value)
        m.submodules.sdram_clk = clock = io.DDRBuffer("o", port.clk)
        m.d.comb += [clock.o[0].eq(0), clock.o[1].eq(1)]
        m.submodules.sdram_dq = data = io.Buffer("io", port.dq)
        m.d.comb += [data.o.eq(pins.dq_o), data.oe.eq(pins.dq_oe)]
        m.d.falling += pins.dq_i.eq(data.i)
