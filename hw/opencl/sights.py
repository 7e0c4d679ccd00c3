"""What each probe sees of the subwindows that its window covers in part, on the device."""

from collections.abc import Sequence

import numpy as np

from hw.opencl.memory import HostArray, Pool

__all__ = ["Sight", "Sights"]

_SEES_ALL = np.uint64((1 << 64) - 1)

#: uint32 of each probe: it sees `rows` rids from `first` on. None: every probe sees all.
Sight = tuple[np.ndarray, np.ndarray] | None


class Sights:
    """The sights of a launch, and what its work items say of them; see kernels/sight.cl."""

    def __init__(self, pool: Pool, items: int) -> None:
        self._places = HostArray(pool, np.uint64)
        self._rids = HostArray(pool, np.uint32)
        self._given_up = HostArray(pool, np.uint32).reserve(items)
        self._items = items

    def stage(self, sights: Sequence[Sight]) -> tuple[int, int]:
        """Put them where the device sees them: two arguments of a kernel."""
        places = self._places.reserve(len(sights))
        rids = self._rids.reserve(sum(2 * len(sight[0]) for sight in sights if sight))
        used = 0
        for number, sight in enumerate(sights):
            places.host[number] = _SEES_ALL if sight is None else rids.place + 4 * used
            for part in sight or ():
                rids.host[used : used + len(part)] = part
                used += len(part)
        places.upload(len(sights))
        rids.upload(used)
        self._given_up.host[: self._items] = 0
        self._given_up.upload(self._items)
        return places.place, self._given_up.place

    @property
    def given_up(self) -> bool:
        """Whether a work item of the launch had too many tuples to look at."""
        return bool(self._given_up.download(self._items).any())
