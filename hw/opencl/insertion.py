"""The insertion engine: batches into the tier, the tier into the main array."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import ARRAY, SLABS, Program
from hw.opencl.steps import Step, Steps
from hw.opencl.subwindow import RID_BYTES, KeyArray, Subwindow
from hw.spec.params import JoinParams
from hw.spec.tuples import key_dtype

__all__ = ["Insertion", "InsertionEngine"]

_U4, _U8 = np.uint32, np.uint64
#: From this many stored tuples to one new tuple on, moving runs in place beats merging.
_IN_PLACE = 8
_SMALLEST_ROOM = 1 << 16
_ENTRIES = 16  # ARRAY words of one insertion; each of its steps has words of its own
#: Up to so many tuples one item moves in less time than several take to be cut and woken.
_ALONE = 1 << 18


class InsertionEngine:
    """Insertions into any number of subwindows at a time."""

    QUEUES = True

    def __init__(
        self, program: Program, pool: Pool, params: JoinParams,
        tier_rows: tuple[int, int] = (1 << 16, 1 << 18),
    ) -> None:
        self._pool, self._params, self._tier_rows = pool, params, tier_rows
        self._kernels = {
            name: program.kernel(name, [*[None] * SLABS, _U8])
            for name in ("merge", "save", "move", "sort", "sample")
        }
        self._steps = Steps(pool)
        self._insertions: list[Insertion] = []

    def insert(self, batches: Sequence[tuple[Subwindow, np.ndarray]]) -> None:
        """Take sorted tuples that fit, each into another subwindow.

        It is queued when this returns, where `QUEUES`: the next launch comes after it, and a host
        that looks at the memory has to wait with Pool.finish.
        """
        batches = [batch for batch in batches if len(batch[1])]
        while len(self._insertions) < len(batches):
            self._insertions.append(self._insertion())
        self._pool.finish()  # what was queued last may still read the arrays of its batches
        with self._pool.keeping():
            steps = [
                insertion.insert(*batch)
                for insertion, batch in zip(self._insertions, batches, strict=False)
            ]
            self._steps.run(steps)
        if self.QUEUES:
            self._pool.leave()
        else:
            self._pool.finish()

    def _insertion(self) -> "Insertion":
        return Insertion(self._kernels, self._pool, self._params, self._tier_rows)


class Insertion:
    """One insertion at a time; sorted insertion tier before the main array.

    A batch is merged into the tier; a full tier is merged into the main array; a batch as large
    as the tier goes there at once. The tier's size follows the main array's, from `tier_rows[0]`
    to `tier_rows[1]`: a main merge costs the same for any tier, and a larger tier shares it among
    more tuples.
    """

    def __init__(
        self, kernels: Mapping[str, Any], pool: Pool, params: JoinParams,
        tier_rows: tuple[int, int],
    ) -> None:
        self._pool, self._params, self._tier_rows = pool, params, tier_rows
        units = pool.device.compute_units
        cpu = pool.device.kind == "cpu"
        # Two pieces to a compute unit: a slow one does not hold up the other for long.
        self._pieces = units * (2 if cpu else 64)
        self._moves_in_place = cpu  # the pieces of a GPU would be smaller than their zones
        self._merge, self._save, self._move = (kernels[name] for name in ("merge", "save", "move"))
        key = key_dtype(params.key_bits)
        self._keys, self._rids = HostArray(pool, key), HostArray(pool, _U4)
        self._entries = HostArray(pool, ARRAY).reserve(_ENTRIES)
        self._used = 0
        self._saved = HostArray(pool, _U4)
        self._zones, self._zone_rids = HostArray(pool, key), HostArray(pool, _U4)
        self._splits = HostArray(pool, _U8).reserve(self._pieces + 2)
        self._todo: list[Step] = []

    def insert(self, subwindow: Subwindow, tuples: np.ndarray) -> list[Step]:
        """What has to be done until the subwindow is as it says it is from now on."""
        count = len(tuples)
        self._begin()
        keys, rids = self._keys.reserve(count), self._rids.reserve(count)
        keys.host[:count], rids.host[:count] = tuples["key"], tuples["rid"]
        keys.upload(count)
        rids.upload(count)
        if subwindow.count + count > subwindow.room:
            self._grow(subwindow, subwindow.count + count)
        self._store(subwindow, count)
        if subwindow.count == subwindow.capacity:
            # It takes no more: from now on it is one sorted array.
            self._flush(subwindow)
            subwindow.free_tier()
        subwindow.version += 1
        return self._todo

    def _begin(self) -> None:
        self._used, self._todo = 0, []

    def _store(self, subwindow: Subwindow, count: int) -> None:
        limit = self._tier_limit(subwindow)
        if subwindow.tier_count and subwindow.tier_count + count > limit:
            self._flush(subwindow)
            limit = self._tier_limit(subwindow)
        if count > limit or count == subwindow.capacity:
            self._into_main(subwindow, self._keys.place, self._rids.place, count)
        else:
            self._into_tier(subwindow, count, limit)

    def _tier_limit(self, subwindow: Subwindow) -> int:
        least, most = self._tier_rows
        return min(subwindow.capacity, max(least, min(most, subwindow.main_count // 16)))

    def _into_tier(self, subwindow: Subwindow, count: int, limit: int) -> None:
        if subwindow.tier is None or subwindow.tier.room < limit:
            subwindow.free_tier()  # empty: its limit only changes when it was flushed
            subwindow.tier, subwindow.spare = self._key_array(limit), self._key_array(limit)
        tier, spare = subwindow.tier, subwindow.spare
        assert tier is not None and spare is not None
        rids, held = subwindow.tier_rids, tier.count
        if self._moves_in_place and held >= _IN_PLACE * count:
            self._move_into(tier, rids, self._keys.place, self._rids.place, count)
            return
        saved = self._saved.reserve(held).place
        if held:
            self._step(self._save, 0, 0, 0, 0, 0, 0, 0, rids, saved, held)
        spare.count = held + count
        self._merge_into(tier, saved, self._keys.place, self._rids.place, count, spare, rids)
        subwindow.tier, subwindow.spare = spare, tier

    def _flush(self, subwindow: Subwindow) -> None:
        """Merge the tier into the main array."""
        tier = subwindow.tier
        if tier is None or tier.count == 0:
            return
        count, rids = tier.count, subwindow.tier_rids
        self._into_main(subwindow, tier.keys, rids, count, from_tier=True)
        tier.count = 0

    def _into_main(
        self, subwindow: Subwindow, keys: int, rids: int, count: int, from_tier: bool = False
    ) -> None:
        """Merge a batch, or with `from_tier` the tier, whose rids lie where `move` writes."""
        main = subwindow.main
        assert main is not None
        subwindow.main_version += 1
        if self._moves_in_place and main.count >= _IN_PLACE * count:
            self._move_into(main, subwindow.rids, keys, rids, count, save_rids=from_tier)
            return
        room = subwindow.room
        if main.count == 0 and not from_tier:
            place, main.count = subwindow.rids, count
            self._merge_into(main, place, keys, rids, count, main, place, held=0)
            return
        out, out_rids = self._key_array(room), self._pool.allocate(room * RID_BYTES)
        out.count = main.count + count
        self._merge_into(main, subwindow.rids, keys, rids, count, out, out_rids)
        subwindow.replace_main(out, out_rids, room)

    def _grow(self, subwindow: Subwindow, needed: int) -> None:
        """Twice the room, or what is needed; the tier is merged on the way."""
        room = min(subwindow.capacity, max(needed, 2 * subwindow.room, _SMALLEST_ROOM))
        out, out_rids = self._key_array(room), self._pool.allocate(room * RID_BYTES)
        main, tier, old_rids = subwindow.main, subwindow.tier, subwindow.tier_rids
        subwindow.main_version += 1
        if main is not None and subwindow.count:
            held = subwindow.tier_count
            out.count = subwindow.count
            keys = tier.keys if tier else main.keys
            self._merge_into(main, subwindow.rids, keys, old_rids, held, out, out_rids)
            if tier:
                tier.count = 0
        subwindow.replace_main(out, out_rids, room)

    def _key_array(self, room: int) -> KeyArray:
        return KeyArray(self._pool, self._params.key_bits, room)

    def _merge_into(
        self, array: KeyArray, rids: int, keys: int, new_rids: int, count: int,
        out: KeyArray, out_rids: int, held: int | None = None,
    ) -> None:
        """array + batch -> out; `held` is what the array holds, if not its count."""
        source, target = self._entry(array, rids, held), self._entry(out, out_rids)
        self._step(self._merge, source, rids, keys, new_rids, count, target)

    def _move_into(
        self, array: KeyArray, rids: int, keys: int, new_rids: int, count: int,
        save_rids: bool = False,
    ) -> None:
        entry = self._entry(array, rids)
        array.count += count
        if array.count <= _ALONE and not save_rids:
            self._step(self._move, entry, keys, new_rids, count, 0, 0, 0, 0, items=1)
            return
        room = -(-count // 64) * 64 + 64
        zones = self._zones.reserve(room * self._pieces).place
        zone_rids = self._zone_rids.reserve(room * self._pieces).place
        saved = self._saved.reserve(count).place if save_rids else new_rids
        splits = self._splits.place
        self._step(
            self._save, entry, keys, count, splits, zones, zone_rids, room,
            new_rids, saved, count if save_rids else 0,
        )
        self._step(self._move, entry, keys, saved, count, splits, zones, zone_rids, room)

    def _entry(self, array: KeyArray, rids: int, count: int | None = None) -> int:
        """Place of the array's description, as it is now."""
        self._entries.host[self._used] = array.entry(rids, 0, count)
        self._used += 1
        if not self._pool.shared:
            self._entries.upload(self._used)
        return self._entries.place + (self._used - 1) * ARRAY.itemsize

    def _step(self, kernel: Any, *task: int, items: int | None = None) -> None:
        self._todo.append(Step(kernel, items or self._pieces, task))
