"""What each probe sees of the subwindows that its window covers in part, on the device."""

from collections.abc import Sequence

import numpy as np

from hw.opencl.frontier import Frontier
from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import SIGHTS
from hw.spec.windows import Sight

__all__ = ["Sights"]

_SEES_ALL = _NO_FRONTIER = np.uint64((1 << 64) - 1)
_BY_PROBE = 0


class Sights:
    """The sights of a launch, and what its work items say of them; see kernels/sight.cl."""

    def __init__(self, pool: Pool, items: int) -> None:
        self._words = HostArray(pool, SIGHTS)
        self._rids = HostArray(pool, np.uint32)
        self._efforts = HostArray(pool, np.uint64).reserve(2 * items)
        self._items = items

    def stage(
        self, sights: Sequence[Sight | None], frontiers: Sequence[Frontier | None]
    ) -> tuple[int, int]:
        """Put them where the device sees them: two arguments of a kernel.

        One to a subwindow; None where every probe sees all of it, or it has no frontier.
        """
        words = self._words.reserve(len(sights))
        rids = self._rids.reserve(sum(2 * len(sight.first) for sight in sights if sight))
        used, staged = 0, dict[int, int]()
        for number, sight in enumerate(sights):
            if sight is None:
                words.host[number] = (_SEES_ALL, _NO_FRONTIER, 0, 0, 0)
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
            frontier = frontiers[number]
            marks, edges = (frontier.marks, frontier.edges) if frontier else (_NO_FRONTIER, 0)
            base = sight.base & 0xFFFF_FFFF
            words.host[number] = (staged[id(sight.first)], marks, edges, base, rows)
        words.upload(len(sights))
        rids.upload(used)
        self._efforts.host[: 2 * self._items] = 0
        self._efforts.upload(2 * self._items)
        return words.place, self._efforts.place

    @property
    def given_up(self) -> bool:
        """Whether a work item of the launch had too many tuples to look at."""
        return bool(self._efforts.download(2 * self._items)[1::2].any())

    @property
    def met(self) -> int:
        """Matches of the launch in what probes see in part, before it was looked what they see."""
        return int(self._efforts.download(2 * self._items)[::2].sum())
