"""The nested loop over the window, compiled: the core of SplitJoin, which compares every tuple."""

from typing import Any

import numpy as np
import pyarrow as pa

from bench.peers import Windows, bounds
from bench.workload import BandWorkload
from hw.opencl.building import build
from hw.opencl.devices import choose, open_device
from hw.opencl.memory import Pool
from hw.opencl.program import Program

__all__ = ["NestedLoopPeer"]

#: A work item takes a chunk of the probes. Tiles of the window that stay in the first cache are
#: compared with four probes at a time, which stay in registers.
_TEXT = """
#define TILE 512u
#define AT(type, slab, place) ((__global type *)(slab + place))

__kernel void nested_loop(__global const uchar *stored_slab, ulong stored_at, uint tiles,
                          __global const uchar *wanted_slab, ulong wanted_at, uint probes,
                          __global uchar *counts_slab, ulong counts_at)
{
    __global const int16 *stored = AT(const int16, stored_slab, stored_at);
    __global const int2 *wanted = AT(const int2, wanted_slab, wanted_at);
    __global uint *counts = AT(uint, counts_slab, counts_at);
    uint groups = (probes + 3) / 4, chunks = get_global_size(0), chunk = get_global_id(0);
    uint first = (ulong)groups * chunk / chunks, last = (ulong)groups * (chunk + 1) / chunks;
    for (uint tile = 0; tile < tiles; tile++) {
        __global const int16 *keys = stored + tile * TILE;
        for (uint group = first; group < last; group++) {
            __global const int2 *four = wanted + 4 * group;
            int16 lo0 = four[0].x, hi0 = four[0].y, lo1 = four[1].x, hi1 = four[1].y;
            int16 lo2 = four[2].x, hi2 = four[2].y, lo3 = four[3].x, hi3 = four[3].y;
            int16 found0 = 0, found1 = 0, found2 = 0, found3 = 0;
            for (uint i = 0; i < TILE; i++) {
                int16 key = keys[i];
                found0 -= (key >= lo0) & (key <= hi0);
                found1 -= (key >= lo1) & (key <= hi1);
                found2 -= (key >= lo2) & (key <= hi2);
                found3 -= (key >= lo3) & (key <= hi3);
            }
            int16 found[4] = {found0, found1, found2, found3};
            for (uint j = 0; j < 4; j++) {
                int8 eight = found[j].lo + found[j].hi;
                int4 quad = eight.lo + eight.hi;
                counts[4 * group + j] += quad.x + quad.y + quad.z + quad.w;
            }
        }
    }
}
"""
_TILE_ROWS = 512 * 16
_GROUP = 4


class NestedLoopPeer:
    """Compares each tuple of a batch with each tuple of the other window, on the same device.

    The window's rows must be whole tiles: a multiple of 8,192.
    """

    def __init__(
        self, workload: BandWorkload, windows: Windows, device: str | None = None
    ) -> None:
        if any(len(keys) % _TILE_ROWS for keys in windows):
            raise ValueError(f"windows must be multiples of {_TILE_ROWS} rows")
        self.width = workload.width
        chosen = choose(device)
        context = open_device(chosen)
        program = Program(chosen, context, build(chosen, context, _TEXT))
        u4, u8 = np.uint32, np.uint64
        self._kernel = program.kernel("nested_loop", [None, u8, u4, None, u8, u4, None, u8])
        self._queue = program.open_queue()
        self._pool = Pool(chosen, context, self._queue)
        self._chunks = chosen.compute_units * (8 if chosen.kind == "cpu" else 256)
        self._windows = [(self._kept(keys), len(keys)) for keys in windows]

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        return self._matches(left, 1) + self._matches(right, 0)

    def probe(self, left: pa.RecordBatch) -> int:
        return self._matches(left, 1)

    def close(self) -> None:
        self._queue.finish()
        self._pool.close()

    def _kept(self, data: np.ndarray) -> int:
        place = self._pool.allocate(data.nbytes)
        self._pool.fill(place, data)
        return place

    def _matches(self, batch: pa.RecordBatch, side: int) -> int:
        probes = batch.num_rows
        room = -(-probes // _GROUP) * _GROUP
        wanted = np.zeros((room, 2), np.int32)
        wanted[:, 0], wanted[:, 1] = 1, 0  # those that fill the last group match nothing
        wanted[:probes, 0], wanted[:probes, 1] = bounds(batch, self.width)
        wanted_at, counts_at = self._kept(wanted.ravel()), self._kept(np.zeros(room, np.uint32))
        stored_at, rows = self._windows[side]
        self._kernel(
            self._queue, (min(self._chunks, room // _GROUP),), (1,),
            *self._argument(stored_at), rows // _TILE_ROWS,
            *self._argument(wanted_at), probes, *self._argument(counts_at),
        )
        self._queue.finish()
        found = int(self._pool.view(counts_at, np.uint32, probes).sum(dtype=np.int64))
        self._pool.free(wanted_at, wanted.nbytes)
        self._pool.free(counts_at, 4 * room)
        return found

    def _argument(self, place: int) -> tuple[Any, int]:
        return self._pool.slabs[place >> 56], place & ((1 << 56) - 1)
