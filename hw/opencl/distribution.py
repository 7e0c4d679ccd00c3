"""The distribution step: one batch to all cores, each of which stores the tuples of its turn."""

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import Program
from hw.spec.tuples import key_dtype, tuple_dtype

__all__ = ["DistributionEngine"]

_U4, _U8 = np.uint32, np.uint64


class DistributionEngine:
    """SplitJoin's store by round robin, for cores that each keep a part of every subwindow."""

    def __init__(self, program: Program, pool: Pool, key_bits: int) -> None:
        self._pool, self._key_bits = pool, key_bits
        self._kernel = program.kernel(
            "distribute", [*[None] * 8, _U8, _U8, _U4, _U4, _U8, _U8, _U8]
        )
        key = key_dtype(key_bits)
        self._keys, self._rids = HostArray(pool, key), HostArray(pool, _U4)
        self._out, self._out_rids = HostArray(pool, key), HostArray(pool, _U4)
        self._kept = HostArray(pool, _U4)

    def distribute(self, tuples: np.ndarray, cores: int, turn: int = 0) -> list[np.ndarray]:
        """The sorted tuples that each core stores: those with (rid + turn) % cores its number."""
        count, room = len(tuples), len(tuples) + 1
        keys, rids = self._keys.reserve(room), self._rids.reserve(room)
        keys.host[:count], rids.host[:count] = tuples["key"], tuples["rid"]
        keys.upload(count)
        rids.upload(count)
        out, out_rids = self._out.reserve(cores * room), self._out_rids.reserve(cores * room)
        kept = self._kept.reserve(cores)
        self._pool.launch(
            self._kernel, (cores,), keys.place, rids.place, count, turn % cores, out.place,
            out_rids.place, kept.place,
        )
        self._pool.finish()
        all_keys = out.download(cores * room).reshape(cores, room)
        all_rids = out_rids.download(cores * room).reshape(cores, room)
        parts = []
        for core, size in enumerate(kept.download(cores).tolist()):
            part = np.empty(size, tuple_dtype(self._key_bits))
            part["key"], part["rid"] = all_keys[core, :size], all_rids[core, :size]
            parts.append(part)
        return parts
