"""The memories of all cores on one device: keys, rids and index arrays."""

from collections.abc import Sequence

import numpy as np
import pyopencl as cl

from hw.opencl.devices import DeviceError
from hw.opencl.fpga.arena import Arena
from hw.spec.params import JoinParams
from hw.spec.tuples import key_dtype, tuple_dtype

__all__ = ["CoreMemory"]


class CoreMemory:
    """Every core's arrays, laid out alike: a row or entry has one number in all of them.

    cores   array name ("keys", "rids", "index") -> buffer, for each core; apart, so that probers
            read keys alone
    staged  each core's share of the batch that it is to merge
    """

    def __init__(self, context: cl.Context, params: JoinParams) -> None:
        self._context, self._params = context, params
        self._copies = cl.CommandQueue(context)
        key_bytes = key_dtype(params.key_bits).itemsize
        self._widths = {"keys": key_bytes, "rids": 4, "index": key_bytes}
        self._arenas = {"rows": Arena(1 << 12), "entries": Arena(1 << 10)}
        self.cores = [
            {name: self.buffer(self._arena(name).size * width)
             for name, width in self._widths.items()}
            for _ in range(params.cores)
        ]
        self.staged: list[cl.Buffer] = []
        self._staged_rows = 0

    def buffer(self, size: int) -> cl.Buffer:
        """That many bytes, of any content."""
        return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(size, 16))

    def zeros(self, size: int) -> cl.Buffer:
        buffer = self.buffer(size)
        zero = np.zeros(1, np.uint32)
        cl.enqueue_fill_buffer(self._copies, buffer, zero, 0, max(size, 16)).wait()
        return buffer

    def given(self, array: np.ndarray) -> cl.Buffer:
        """The array as device memory for the next launch."""
        if array.nbytes == 0:
            return self.buffer(0)
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self._context, flags, hostbuf=np.ascontiguousarray(array))

    def read(self, into: np.ndarray, buffer: cl.Buffer, first_byte: int = 0) -> np.ndarray:
        """Fill the array from a buffer, and return it."""
        if into.nbytes:
            cl.enqueue_copy(self._copies, into, buffer, src_offset=first_byte)
        return into

    def column(self, name: str, dtype: np.dtype, first: int, counts: Sequence[int]) -> np.ndarray:
        """`counts` rows from row `first` on of each core's array of that name, core after core."""
        column = np.empty(sum(counts), dtype)
        done = 0
        for memory, count in zip(self.cores, counts, strict=True):
            part = column[done : done + count]
            self.read(part, memory[name], first * dtype.itemsize)
            done += count
        return column

    def take(self, kind: str, places: int) -> int:
        """Free rows or entries at the same place of every core's memory."""
        arena = self._arenas[kind]
        first = arena.take(places)
        if first is None:
            self._grow(kind, 2 * arena.size + places)
            first = arena.take(places)
            assert first is not None
        return first

    def give_back(self, kind: str, first: int, places: int) -> None:
        self._arenas[kind].give_back(first, places)

    def stage(self, tuples: int) -> None:
        """Make room for each core's share of a batch."""
        share = -(-tuples // self._params.cores)
        if share > self._staged_rows:
            size = share * tuple_dtype(self._params.key_bits).itemsize
            self.staged = [self.buffer(size) for _ in range(self._params.cores)]
            self._staged_rows = share

    def close(self) -> None:
        self.cores.clear()
        self.staged.clear()

    def _arena(self, name: str) -> Arena:
        return self._arenas["entries" if name == "index" else "rows"]

    def _grow(self, kind: str, places: int) -> None:
        """Make every core's memory longer; what is there stays."""
        arena = self._arenas[kind]
        if places >= 1 << 32:
            raise DeviceError(f"an engine of the FPGA form holds 2**32 {kind}, not {places}")
        for memory in self.cores:
            for name in memory:
                if self._arena(name) is arena:
                    longer = self.buffer(places * self._widths[name])
                    count = arena.size * self._widths[name]
                    cl.enqueue_copy(self._copies, longer, memory[name], byte_count=count).wait()
                    memory[name] = longer
        arena.grow(places)
