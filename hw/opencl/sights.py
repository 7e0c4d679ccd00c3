"""What each probe sees of the subwindows that its window covers in part, on the device."""

from collections.abc import Sequence

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import SIGHTS
from hw.spec.windows import Sight

__all__ = ["Sights"]

_SEES_ALL = np.uint64((1 << 64) - 1)
_BY_PROBE = 0


class Sights:
    """The sights of a launch, and what its work items say of them; see kernels/sight.cl."""

    def __init__(self, pool: Pool, items: int) -> None:
        self._words = HostArray(pool, SIGHTS)
        self._rids = HostArray(pool, np.uint32)
        self._given_up = HostArray(pool, np.uint32).reserve(items)
        self._items = items

    def stage(self, sights: Sequence[Sight | None]) -> tuple[int, int]:
        """Put them where the device sees them: two arguments of a kernel.

        One to a subwindow; None where every probe sees all of it.
        """
        words = self._words.reserve(len(sights))
        rids = self._rids.reserve(sum(2 * len(sight.first) for sight in sights if sight))
        used, staged = 0, dict[int, int]()
        for number, sight in enumerate(sights):
            if sight is None:
                words.host[number] = (_SEES_ALL, 0, 0)
                continue
            parts, rows = [sight.first], _BY_PROBE
            if isinstance(sight.rows, int):
                rows = sight.rows
            else:
                parts.append(sight.rows)
            # Subwindows of a row window share one array: it goes over once.
            if rows == _BY_PROBE or id(sight.first) not in staged:
                staged[id(sight.first)] = rids.place + 4 * used
                for part in parts:
                    rids.host[used : used + len(part)] = part
                    used += len(part)
            words.host[number] = (staged[id(sight.first)], sight.base & 0xFFFF_FFFF, rows)
        words.upload(len(sights))
        rids.upload(used)
        self._given_up.host[: self._items] = 0
        self._given_up.upload(self._items)
        return words.place, self._given_up.place

    @property
    def given_up(self) -> bool:
        """Whether a work item of the launch had too many tuples to look at."""
        return bool(self._given_up.download(self._items).any())
