"""PanJoin's own insertion engine, with an unsorted buffer before the main array."""

from collections.abc import Mapping
from typing import Any

from hw.opencl.insertion import Insertion, InsertionEngine
from hw.opencl.memory import HostArray, Pool
from hw.opencl.steps import Step, Steps
from hw.opencl.subwindow import RID_BYTES, KeyArray, Subwindow
from hw.spec.params import JoinParams
from hw.spec.tuples import key_dtype

__all__ = ["PaperInsertionEngine"]


class PaperInsertionEngine(InsertionEngine):
    """Insertions as in the paper; the baseline of the benchmarks."""

    QUEUES = False  # the host writes to the insertion buffer itself

    def order(self, subwindow: Subwindow) -> None:
        """Sort the insertion buffer where it is: only a sorted array has runs of positions."""
        tier = subwindow.tier
        if tier is None or tier.stride or not tier.count:
            return
        if not self._insertions:
            self._insertions.append(self._insertion())
        ordering = self._insertions[0]
        assert isinstance(ordering, PaperInsertion)
        self._steps.run([ordering.order(subwindow)])
        self._pool.finish()

    def _insertion(self) -> Insertion:
        return PaperInsertion(self._kernels, self._pool, self._params, self._steps)


class PaperInsertion(Insertion):
    """PanJoin's own: a small unsorted insertion buffer, and one index array of P entries.

    The buffer is sorted when it is full, or when records are asked for.
    """

    def __init__(
        self, kernels: Mapping[str, Any], pool: Pool, params: JoinParams, steps: Steps
    ) -> None:
        super().__init__(kernels, pool, params, (0, 0))
        self._steps = steps
        self._moves_in_place = False
        self._sort, self._sample = kernels["sort"], kernels["sample"]
        self._in_order = HostArray(pool, key_dtype(params.key_bits))

    def order(self, subwindow: Subwindow) -> list[Step]:
        """What has to be done until the buffer is sorted."""
        self._begin()
        tier, rids = subwindow.tier, subwindow.tier_rids
        assert tier is not None
        keys, saved = self._sorted_buffer(tier, rids)
        # Merged with nothing, which is a copy.
        nothing, target = self._entry(tier, rids, 0), self._entry(tier, rids)
        self._step(self._merge, nothing, rids, keys, saved, tier.count, target)
        # One entry, the first key, and one partition.
        tier.stride, tier.index = tier.room, tier.keys
        subwindow.version += 1
        return self._todo

    def _store(self, subwindow: Subwindow, count: int) -> None:
        limit = min(self._params.insert_buffer, subwindow.capacity)
        if subwindow.tier_count and subwindow.tier_count + count > limit:
            self._flush(subwindow)
        if count > limit:
            self._into_main(subwindow, self._keys.place, self._rids.place, count)
        else:
            self._into_tier(subwindow, count, limit)

    def _into_tier(self, subwindow: Subwindow, count: int, limit: int) -> None:
        if subwindow.tier is None:
            subwindow.tier = KeyArray(self._pool, self._params.key_bits, limit, stride=limit)
        tier = subwindow.tier
        width = key_dtype(self._params.key_bits).itemsize
        keys, rids = self._keys, self._rids
        self._copy(keys, tier.keys + tier.count * width, count)
        self._copy(rids, subwindow.tier_rids + tier.count * RID_BYTES, count)
        tier.count += count
        tier.stride = 0

    def _copy(self, array: HostArray, place: int, count: int) -> None:
        data = array.host[:count]
        if self._todo:  # a flush is still to read the buffer
            self._steps.run([self._todo])
            self._pool.finish()
            self._todo = []
        if self._pool.shared:
            self._pool.view(place, data.dtype, count)[:] = data
        else:
            self._pool.write(place, data)

    def _flush(self, subwindow: Subwindow) -> None:
        tier = subwindow.tier
        if tier is None or tier.count == 0:
            return
        keys, rids = self._sorted_buffer(tier, subwindow.tier_rids)
        self._into_main(subwindow, keys, rids, tier.count)
        tier.count = 0

    def _sorted_buffer(self, tier: KeyArray, rids: int) -> tuple[int, int]:
        keys = self._in_order.reserve(tier.count + 64).place
        saved = self._saved.reserve(tier.count).place
        self._step(self._sort, tier.keys, rids, tier.count, keys, saved)
        return keys, saved

    def _grow(self, subwindow: Subwindow, needed: int) -> None:
        self._flush(subwindow)
        super()._grow(subwindow, needed)

    def _key_array(self, room: int) -> KeyArray:
        stride = max(1, -(-room // self._params.partitions))
        return KeyArray(self._pool, self._params.key_bits, room, stride)

    def _merge_into(
        self, array: KeyArray, rids: int, keys: int, new_rids: int, count: int,
        out: KeyArray, out_rids: int, held: int | None = None,
    ) -> None:
        super()._merge_into(array, rids, keys, new_rids, count, out, out_rids, held)
        self._step(self._sample, self._entry(out, out_rids))
