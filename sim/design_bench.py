"""What every bench of a design shares: its clock, its reset, and the ends that drive it."""

from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge

__all__ = ["DesignBench"]


class DesignBench:
    """A design under test; a bench adds its sources, sinks and memories as attributes."""

    def __init__(self, dut):
        self.dut = dut

    async def start(self):
        """Begin the clock and come out of reset."""
        Clock(self.dut.clk, 10, unit="ns").start()
        await self.reset()

    async def reset(self):
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 2)
        self.dut.rst.value = 0

    async def stop(self):
        """Let every end of the bench go, so that the next test finds the design alone."""
        await RisingEdge(self.dut.clk)
        for end in vars(self).values():
            if end is not self.dut and hasattr(end, "stop"):
                end.stop()
