"""The probing engine: a batch against all listed subwindows in one launch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hw.opencl.frontier import Frontiers, Watched
from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import ARRAY, QUESTION, Program
from hw.opencl.sights import Sights
from hw.opencl.subwindow import Subwindow
from hw.spec.predicates import REGISTER, Bound, Predicate, registers
from hw.spec.tuples import NOT, RECORD, Side, interval_dtype, key_dtype
from hw.spec.windows import Sight

__all__ = ["Batch", "Counting", "ProbingEngine"]

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


@dataclass(frozen=True)
class Counting:
    """What is to be counted: matches of a batch in all of the subwindows together.

    With `sights`, one to a subwindow, matches are what the probe sees of them; the frontiers that
    ProbingEngine.frontiers has made are used. Sights and `not` do not go together.
    """

    subwindows: Sequence[Subwindow]
    batch: Batch
    sights: Sequence[Sight | None] | None = None

    @property
    def watched(self) -> Watched:
        sights = self.sights or [None] * len(self.subwindows)
        return Watched(self.batch.side, len(self.batch.keys), self.subwindows, sights)


class _Staged:
    """Where a batch of one side and the subwindows that it probes lie for the device."""

    def __init__(self, pool: Pool, key_bits: int, chunks: int) -> None:
        self.arrays = HostArray(pool, ARRAY)
        self.keys = HostArray(pool, key_dtype(key_bits))
        self.wanted = HostArray(pool, interval_dtype(key_bits))
        self.registers = HostArray(pool, REGISTER).reserve(4)
        self.programmed: Predicate | None = None
        self.counts = HostArray(pool, np.int64)
        self.sights = Sights(pool, chunks)


class ProbingEngine:
    """Boundary generator, partitioners and probers; one chunk of the batch to a work item."""

    def __init__(self, program: Program, pool: Pool, key_bits: int) -> None:
        self._pool, self._key_bits = pool, key_bits
        units = program.device.compute_units
        self._chunks = units * (8 if program.device.kind == "cpu" else 256)
        self._probe = program.kernel("probe", [*_POOL, *_PROBES, _U4, _U4, _U8])
        self._count = program.kernel("count", [*_POOL, _U8])
        self._staged = [_Staged(pool, key_bits, self._chunks) for _ in Side]
        self._questions = HostArray(pool, QUESTION).reserve(len(Side))
        self.frontiers = Frontiers(program, pool)
        self._bands = 1
        self.records_place = 0  # of the last probe, on the device
        self.arrays_place = 0  # of the ARRAY words of its subwindows

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

    def count(self, asked: Sequence[Counting]) -> list[np.ndarray] | None:
        """int64 for each probe of batches of different sides. The caller's.

        None where there are too many tuples in sight to look at each.
        """
        # What has no probes is not asked, but answered.
        empty = np.empty(0, np.int64)
        found = {one.batch.side: empty for one in asked}
        asked = [one for one in asked if len(one.batch.keys)]
        if asked and not self._counted(asked):
            # What was met tells now which frontiers are worth it.
            watched = [one.watched for one in asked]
            if not self.frontiers.make(watched) or not self._counted(asked):
                return None
        for one in asked:
            counts = self._staged[one.batch.side].counts
            found[one.batch.side] = counts.download(len(one.batch.keys)).copy()
        return list(found.values())

    def _counted(self, asked: Sequence[Counting]) -> bool:
        """Launch; False where it gave up."""
        for number, one in enumerate(asked):
            self._questions.host[number] = self._question(one)
        self._questions.upload(len(asked))
        probes = max(len(one.batch.keys) for one in asked)
        self._launch(self._count, probes, len(asked), self._questions.place)
        for one in asked:
            if one.sights is not None:
                met = self._staged[one.batch.side].sights.met
                self.frontiers.note(one.batch.side, len(one.batch.keys), met)
        return not any(self._staged[one.batch.side].sights.given_up for one in asked)

    def _question(self, asked: Counting) -> tuple[object, ...]:
        """As a QUESTION word."""
        subwindows, batch = asked.subwindows, asked.batch
        staged = self._staged[batch.side]
        arrays, many, keys, wanted, explicit, registers_, bands, probes = self.stage(
            subwindows, batch
        )
        counts = staged.counts.reserve(probes).place
        seen = staged.sights.stage(asked.watched.sights, self.frontiers.of(subwindows))
        return (
            arrays, keys, wanted, registers_, counts, *seen, many, explicit, bands, probes,
            int(batch.negated), b"",
        )

    def stage(self, subwindows: Sequence[Subwindow], batch: Batch) -> tuple[int, ...]:
        """Put subwindows and batch where the device sees them: the arguments PROBES."""
        staged = self._staged[batch.side]
        arrays = staged.arrays.reserve(2 * len(subwindows))
        for number, subwindow in enumerate(subwindows):
            arrays.host[2 * number], arrays.host[2 * number + 1] = subwindow.entries()
        arrays.upload(2 * len(subwindows))
        self.arrays_place = arrays.place
        probes = len(batch.keys)
        if batch.wanted is None:
            assert batch.predicate is not None
            self._program_registers(staged, batch.predicate, batch.side)
            keys = staged.keys.reserve(probes)
            keys.host[:probes] = batch.keys
            keys.upload(probes)
        else:
            self._bands = batch.wanted.shape[1]
            wanted = staged.wanted.reserve(batch.wanted.size)
            wanted.host[: batch.wanted.size] = batch.wanted.ravel()
            wanted.upload(batch.wanted.size)
        return (
            arrays.place, len(subwindows), staged.keys.place, staged.wanted.place,
            int(batch.wanted is not None), staged.registers.place, self._bands, probes,
        )

    @property
    def bands(self) -> int:
        """Intervals that each probe of the staged batch asks for."""
        return self._bands

    def _program_registers(self, staged: _Staged, predicate: Predicate, side: Side) -> None:
        """Write the side's registers where the predicate is another than the last."""
        words, held = len(predicate.bands), staged.registers
        self._bands = max(1, words)
        if staged.programmed == predicate:
            return
        held.reserve(self._bands)
        if words:
            held.host[:words] = registers(predicate, side, self._key_bits)
        else:
            held.host[0]["lo_bound"] = held.host[0]["hi_bound"] = Bound.NEVER
        held.upload(self._bands)
        staged.programmed = predicate

    def _launch(self, kernel: Any, probes: int, rows: int, *arguments: int) -> None:
        chunks = max(1, min(self._chunks, probes // 64))
        self._pool.launch(kernel, (chunks, rows), *arguments)
        self._pool.finish()
