"""Memory outside of the design, behind its read and write ports: any size, any speed."""

from collections import deque

from cocotb import start_soon
from cocotb.triggers import FallingEdge, ReadOnly

__all__ = ["MemoryBfm"]


class MemoryBfm:
    """Serves the ReadPort `read` and the WritePort `write` of a design; either may be absent.

    cells           the words as integers, which the bench may read and change
    latency_cycles  from a request to its first word
    refresh_every   after so many cycles nothing moves for `refresh_cycles`; 0 for never
    shared          reads and writes share one word a cycle, in runs of up to 16

    Words go at the rate of one a cycle each way. `moved` counts them.
    """

    RUN = 16

    def __init__(
        self, dut, *, read=None, write=None, cells, address_bits, latency_cycles=3,
        refresh_every=0, refresh_cycles=0, shared=False, clk="clk", rst="rst",
    ):
        self.cells = cells
        self.address_bits = address_bits
        self.latency_cycles = latency_cycles
        self.refresh_every, self.refresh_cycles = refresh_every, refresh_cycles
        self.shared = shared
        self.moved = 0
        self.clk = getattr(dut, clk)
        self.rst = getattr(dut, rst)
        self.requests = _Stream(dut, f"{read}__requests") if read else None
        self.words = _Stream(dut, f"{read}__words") if read else None
        self.writes = _Stream(dut, f"{write}__writes") if write else None
        if read:
            self.requests.ready.value = 1
            self.words.valid.value = 0
        if write:
            self.writes.ready.value = 0
        self._task = start_soon(self._run())

    def stop(self):
        self._task.cancel()

    async def _run(self):
        due = deque()  # (cycle, address) of words that were asked for
        cycle = run = 0
        offered = writing = False
        mask = (1 << self.address_bits) - 1
        while True:
            await FallingEdge(self.clk)
            cycle += 1
            period = self.refresh_every + self.refresh_cycles
            awake = not self.refresh_every or cycle % period < self.refresh_every
            wants_read = bool(due) and due[0][0] <= cycle
            wants_write = self.writes is not None and self.writes.valid.value == 1
            if self.shared:
                others = wants_read if writing else wants_write
                mine = wants_write if writing else wants_read
                if others and (not mine or run >= self.RUN):
                    writing, run = not writing, 0
                run += 1
            if self.words is not None and not offered:
                offered = awake and wants_read and not (self.shared and writing)
                if offered:
                    self.words.payload.value = self.cells[due[0][1]]
                self.words.valid.value = int(offered)
            if self.writes is not None:
                self.writes.ready.value = int(awake and (writing or not self.shared))
            await ReadOnly()
            if self.rst.value == 1:  # what the design asks for now, it forgets
                due.clear()
                offered = False
                continue
            if self.words is not None:
                if offered and self.words.ready.value == 1:
                    due.popleft()
                    self.moved += 1
                    offered = False
                if self.requests.valid.value == 1:
                    bits = int(self.requests.payload.value)
                    address, count = bits & mask, bits >> self.address_bits
                    start = max(cycle + self.latency_cycles, due[-1][0] + 1 if due else 0)
                    due.extend((start + n, address + n) for n in range(count))
            if self.writes is not None and self.writes.valid.value == 1 == self.writes.ready.value:
                bits = int(self.writes.payload.value)
                self.cells[bits & mask] = bits >> self.address_bits
                self.moved += 1


class _Stream:
    def __init__(self, dut, name):
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")
        self.payload = getattr(dut, f"{name}__payload")
