"""StreamSource and StreamSink: drive, stall, record, police the stream contract.

Both drive at the falling edge and judge in ReadOnly, so that every simulator agrees to the cycle.
"""

from collections import deque

from amaranth.lib import data
from cocotb import start_soon
from cocotb.queue import Queue
from cocotb.triggers import FallingEdge, ReadOnly

__all__ = ["Codec", "StreamSource", "StreamSink", "never", "stalls"]


def never():
    """A pause that never comes."""
    return False


def stalls(rng, rate):
    """A pause that comes in the fraction `rate` of the cycles, from a seeded generator."""
    return (lambda: rng.random() < rate) if rate else never


class Codec:
    """Integers on wires <-> plain Python values of a layout: int, dict or list."""

    def __init__(self, shape):
        self.shape = shape
        self.fields = None
        if isinstance(shape, data.Layout):
            self.fields = [(key, field.offset, Codec(field.shape)) for key, field in shape]
            self.is_list = isinstance(shape, data.ArrayLayout)
            self.width = shape.size
        else:
            from amaranth.hdl import Shape

            cast = Shape.cast(shape)
            self.width, self.signed = cast.width, cast.signed

    def pack(self, value):
        if self.fields is None:
            return int(value) & ((1 << self.width) - 1)
        bits = 0
        for key, offset, codec in self.fields:
            bits |= codec.pack(value[key]) << offset
        return bits

    def unpack(self, bits):
        if self.fields is None:
            bits &= (1 << self.width) - 1
            return bits - (1 << self.width) if self.signed and bits >> (self.width - 1) else bits
        parts = {key: codec.unpack(bits >> offset) for key, offset, codec in self.fields}
        return [parts[n] for n in range(len(parts))] if self.is_list else parts


class StreamSource:
    """Sends values into the input stream `name` of the design.

    An offered value is held until it is taken. `pause()` is asked once a cycle while nothing is
    offered. `taken` counts the values that went in, `cycles` lists the cycle of each.
    """

    def __init__(self, dut, name, *, shape=None, pause=never, clk="clk"):
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")
        self.payload = getattr(dut, f"{name}__payload")
        self.clk = getattr(dut, clk)
        self.codec = Codec(shape) if shape is not None else None
        self.pause = pause
        self.pending = deque()
        self.taken = 0
        self.cycles = []
        self.valid.value = 0
        self._task = start_soon(self._run())

    def send(self, values):
        """Queue values to be sent one after the other."""
        pack = self.codec.pack if self.codec else int
        self.pending.extend(pack(value) for value in values)

    @property
    def idle(self):
        return not self.pending

    def stop(self):
        """Withdraw what is left and drive nothing more."""
        self._task.cancel()
        self.pending.clear()
        self.valid.value = 0

    async def _run(self):
        offered = False
        cycle = 0
        while True:
            await FallingEdge(self.clk)
            cycle += 1
            if not offered and self.pending and not self.pause():
                self.payload.value = self.pending[0]
                offered = True
            self.valid.value = int(offered)
            # Nothing that a contract-keeping design shows changes between here and the edge.
            await ReadOnly()
            if offered and self.ready.value == 1:
                self.pending.popleft()
                self.taken += 1
                self.cycles.append(cycle)
                offered = False


class StreamSink:
    """Takes values from the output stream `name` and asserts that an offer is kept.

    `received` lists the values, `cycles` the cycle each was taken in, counted from the start.
    """

    def __init__(self, dut, name, *, shape=None, pause=never, clk="clk", rst="rst"):
        self.name = name
        self.valid = getattr(dut, f"{name}__valid")
        self.ready = getattr(dut, f"{name}__ready")
        self.payload = getattr(dut, f"{name}__payload")
        self.clk = getattr(dut, clk)
        self.rst = getattr(dut, rst)
        self.codec = Codec(shape) if shape is not None else None
        self.pause = pause
        self.queue = Queue()
        self.received = []
        self.cycles = []
        self.ready.value = 0
        self._task = start_soon(self._run())

    def stop(self):
        self._task.cancel()
        self.ready.value = 0

    async def frame(self):
        """Wait for the next `end` token; the tokens before it."""
        tokens = []
        while True:
            token = await self.queue.get()
            if token["end"]:
                return tokens
            tokens.append(token)

    async def _run(self):
        waiting = None  # the payload that was offered in the cycle before and not taken
        cycle = 0
        while True:
            await FallingEdge(self.clk)
            cycle += 1
            ready = not self.pause()
            self.ready.value = int(ready)
            await ReadOnly()
            if self.rst.value == 1:
                waiting = None
                continue
            valid = self.valid.value == 1
            bits = int(self.payload.value) if valid else None
            if waiting is not None:
                assert valid, f"{self.name} withdrew an offered payload"
                assert bits == waiting, f"{self.name} changed an offered payload"
            waiting = None
            if valid and ready:
                value = self.codec.unpack(bits) if self.codec else bits
                self.received.append(value)
                self.cycles.append(cycle)
                self.queue.put_nowait(value)
            elif valid:
                waiting = bits
