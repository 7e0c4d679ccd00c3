"""The probing engine: a batch against all listed subwindows in one launch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import ARRAY, Program
from hw.opencl.sights import Sights
from hw.opencl.subwindow import Subwindow
from hw.spec.predicates import REGISTER, Bound, Predicate, registers
from hw.spec.tuples import NOT, RECORD, Side, interval_dtype, key_dtype
from hw.spec.windows import Sight

__all__ = ["Batch", "ProbingEngine"]

_U4, _U8 = np.uint32, np.uint64
_POOL = [None] * 8
_PROBES = [_U8, _U4, _U8, _U8, _U4, _U8, _U4, _U4]


@dataclass(frozen=True)
class Batch:
    """Probe tuples of `side`, ascending: keys and predicate, or explicit `wanted` intervals."""

    side: Side
    keys: np.ndarray
    predicate: Predicate | None
    wanted: np.ndarray | None

    @property
    def negated(self) -> bool:
        return self.wanted is None and self.predicate is not None and self.predicate.negated


class ProbingEngine:
    """Boundary generator, partitioners and probers; one chunk of the batch to a work item."""

    def __init__(self, program: Program, pool: Pool, key_bits: int) -> None:
        self._pool, self._key_bits = pool, key_bits
        units = program.device.compute_units
        self._chunks = units * (8 if program.device.kind == "cpu" else 256)
        self._probe = program.kernel("probe", [*_POOL, *_PROBES, _U4, _U4, _U8])
        self._count = program.kernel("count", [*_POOL, *_PROBES, _U4, _U8, _U8, _U8])
        self._sights = Sights(pool, self._chunks)
        self._arrays = HostArray(pool, ARRAY)
        self._keys = HostArray(pool, key_dtype(key_bits))
        self._wanted = HostArray(pool, interval_dtype(key_bits))
        self._registers = [HostArray(pool, REGISTER).reserve(4) for _ in Side]
        self._programmed: list[Predicate | None] = [None for _ in Side]
        self._bands = 1
        self.records_place = 0  # of the last probe, on the device
        self._counts = HostArray(pool, np.int64)

    @property
    def arrays_place(self) -> int:
        """Where the ARRAY words of the last probe's subwindows lie on the device."""
        return self._arrays.place

    def probe(self, subwindows: Sequence[Subwindow], batch: Batch) -> np.ndarray:
        """RECORD of shape (subwindows, probes, runs), the caller's.

        `runs` is the bands, twice if one of the subwindows has tuples in its tier.
        """
        arguments = self.stage(subwindows, batch)
        tiers = 1 + any(subwindow.tier_count for subwindow in subwindows)
        shape = (len(subwindows), len(batch.keys), self._bands * tiers)
        place, records = self._pool.lend(RECORD, shape[0] * shape[1] * shape[2])
        if records.size:
            label = int(NOT) if batch.negated else 0
            self._launch(
                self._probe, shape[1], len(subwindows), *arguments, tiers, label, place
            )
            self._pool.collect_lent(place, records)
        self.records_place = place
        return records.reshape(shape)

    def count(
        self,
        subwindows: Sequence[Subwindow],
        batch: Batch,
        sights: Sequence[Sight | None] | None = None,
    ) -> np.ndarray | None:
        """int64 for each probe: its matches in all subwindows. The caller's.

        With `sights`, one to a subwindow, matches are what the probe sees of them; None where
        there are too many to look at each. Sights and `not` do not go together.
        """
        arguments = self.stage(subwindows, batch)
        probes = len(batch.keys)
        counts = self._counts.reserve(probes)
        if probes:
            seen = self._sights.stage([None] * len(subwindows) if sights is None else sights)
            self._launch(
                self._count, probes, 1, *arguments, int(batch.negated), counts.place, *seen
            )
            if self._sights.given_up:
                return None
        return counts.download(probes).copy()

    def stage(self, subwindows: Sequence[Subwindow], batch: Batch) -> tuple[int, ...]:
        """Put subwindows and batch where the device sees them: the arguments PROBES."""
        arrays = self._arrays.reserve(2 * len(subwindows))
        for number, subwindow in enumerate(subwindows):
            arrays.host[2 * number], arrays.host[2 * number + 1] = subwindow.entries()
        arrays.upload(2 * len(subwindows))
        probes, held = len(batch.keys), self._registers[batch.side]
        if batch.wanted is None:
            assert batch.predicate is not None
            held = self._program_registers(batch.predicate, batch.side)
            keys = self._keys.reserve(probes)
            keys.host[:probes] = batch.keys
            keys.upload(probes)
        else:
            self._bands = batch.wanted.shape[1]
            wanted = self._wanted.reserve(batch.wanted.size)
            wanted.host[: batch.wanted.size] = batch.wanted.ravel()
            wanted.upload(batch.wanted.size)
        return (
            arrays.place, len(subwindows), self._keys.place, self._wanted.place,
            int(batch.wanted is not None), held.place, self._bands, probes,
        )

    @property
    def bands(self) -> int:
        """Intervals that each probe of the staged batch asks for."""
        return self._bands

    def _program_registers(self, predicate: Predicate, side: Side) -> HostArray:
        """The registers of that side, written where the predicate is another than the last."""
        words, held = len(predicate.bands), self._registers[side]
        self._bands = max(1, words)
        if self._programmed[side] == predicate:
            return held
        held.reserve(self._bands)
        if words:
            held.host[:words] = registers(predicate, side, self._key_bits)
        else:
            held.host[0]["lo_bound"] = held.host[0]["hi_bound"] = Bound.NEVER
        held.upload(self._bands)
        self._programmed[side] = predicate
        return held

    def _launch(self, kernel: Any, probes: int, rows: int, *arguments: int) -> None:
        chunks = max(1, min(self._chunks, probes // 64))
        self._pool.launch(kernel, (chunks, rows), *arguments)
        self._pool.finish()
