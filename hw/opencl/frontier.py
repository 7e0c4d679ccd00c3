"""Frontiers: which positions of a subwindow all probes of a batch see, and which only some."""

from collections.abc import Sequence
from itertools import count
from math import sqrt
from typing import NamedTuple

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import FAN, FRONTIER, MARK, Program
from hw.opencl.subwindow import RID_BYTES, Subwindow
from hw.spec.tuples import Side
from hw.spec.windows import Sight

__all__ = ["MARKED", "Frontier", "Frontiers", "Watched"]

#: Positions to a mark; see kernels/sight.cl.
MARKED = 64
#: Looks at single tuples that take the time of a frontier, to a tuple of the subwindow.
_SWEPT = 0.25
#: Most batches for which a frontier is made.
_MOST_BATCHES = 16

_numbers = count(1)

#: Rids [begin, end).
Span = tuple[int, int]


class Watched(NamedTuple):
    """Probes of one batch, and what they see of each of some subwindows: None where it is all.

    The rids of these are below their capacities.
    """

    side: Side
    probes: int
    subwindows: Sequence[Subwindow]
    sights: Sequence[Sight | None]


class Frontier:
    """One subwindow's memory for it: places, and what was marked there.

    version  the subwindow's, when it was made
    every    rids that are marked as seen by every probe
    some     rids that hold what any probe may see
    number   that no other has had, nor this one before: sums over it are right while it stays
    """

    def __init__(self, pool: Pool, room: int) -> None:
        self._pool = pool
        self.room = room
        self.version = -1
        self.every, self.some = (0, 0), (0, 0)
        self.number = 0
        self._size = (room // MARKED + 1) * MARK.itemsize
        self.marks = pool.allocate(self._size)
        self.edges, self.edges_room = 0, 0

    def holds(self, version: int, some: Span, every: Span) -> bool:
        """Whether it is right for probes that see this: where it is unsure, they look."""
        return self.version == version and _within(self.every, every) and _within(some, self.some)

    def become(self, version: int, some: Span, every: Span) -> None:
        """What it is about to be made of."""
        self.version, self.some, self.every = version, some, every
        self.number = next(_numbers)
        self._reserve_edges(_length(some) - _length(every))

    def free(self) -> None:
        self._pool.free(self.marks, self._size)
        self._free_edges()

    def _reserve_edges(self, rids: int) -> None:
        if rids > self.edges_room:
            self._free_edges()
            self.edges_room = 1 << (rids - 1).bit_length()
            self.edges = self._pool.allocate(self.edges_room * RID_BYTES)

    def _free_edges(self) -> None:
        if self.edges_room:
            self._pool.free(self.edges, self.edges_room * RID_BYTES)


class Frontiers:
    """Makes them where it pays: what the probes of the last batch met tells."""

    def __init__(self, program: Program, pool: Pool) -> None:
        self._pool = pool
        units = program.device.compute_units
        self._pieces = units * (2 if program.device.kind == "cpu" else 16)
        arguments = [*[None] * 8, np.uint64]
        self._mark, self._line_up = (
            program.kernel(name, arguments) for name in ("mark", "line_up")
        )
        self._words = HostArray(pool, FRONTIER)
        self._sums, self._apart = HostArray(pool, np.uint32), HostArray(pool, np.uint32)
        #: By the side of the probes: tuples of subwindows seen in part that one of them matched.
        self._met = [0.0] * len(Side)
        self._used: dict[Subwindow, Frontier] = {}

    def note(self, side: Side, probes: int, met: int) -> None:
        """What the probes of a batch have met in subwindows that they see in part."""
        self._met[side] = met / max(1, probes)

    def of(self, subwindows: Sequence[Subwindow]) -> list[Frontier | None]:
        """Their frontiers for this batch."""
        return [self._used.get(subwindow) for subwindow in subwindows]

    def make(self, watched: Sequence[Watched]) -> bool:
        """Queue the frontiers of a batch, of each subwindow that is worth one.

        False where these are the same subwindows as before.
        """
        before, self._used = set(self._used), {}
        stale: list[Subwindow] = []
        for one in watched:
            looks = one.probes * self._met[one.side]
            for subwindow, sight in zip(one.subwindows, one.sights, strict=True):
                if sight is not None and sight.some is not None:
                    stale += self._use(subwindow, sight, looks)
        if stale:
            self._launch(stale)
        return set(self._used) != before

    def _use(self, subwindow: Subwindow, sight: Sight, looks: float) -> list[Subwindow]:
        """Use a frontier of the subwindow if it pays; the subwindow, if it has to be made first."""
        some, every = (_clipped(span, subwindow) for span in (sight.some, sight.every))
        # Where nothing has come since the last batch, nothing is likely to come.
        steady, subwindow.watched = subwindow.watched == subwindow.version, subwindow.version
        frontier: Frontier | None = subwindow.frontier
        if frontier is not None and frontier.holds(subwindow.version, some, every):
            self._used[subwindow] = frontier
            return []
        edge = _length(some) - _length(every)
        if looks * (1 - edge / max(1, subwindow.count)) <= _SWEPT * subwindow.count:
            return []
        if frontier is None or frontier.room < subwindow.count:
            if frontier is not None:
                frontier.free()
            frontier = subwindow.frontier = Frontier(self._pool, subwindow.room)
        batches = _batches(subwindow.count, looks, edge) if steady else 1
        frontier.become(subwindow.version, *_ahead(batches, some, every, subwindow))
        self._used[subwindow] = frontier
        return [subwindow]

    def _launch(self, stale: Sequence[Subwindow]) -> None:
        words = self._words.reserve(len(stale))
        sums = self._sums.reserve(2 * self._pieces * len(stale)).place
        rooms = [self._room(subwindow) for subwindow in stale]
        apart = self._apart.reserve(self._pieces * sum(rooms)).place
        for number, (subwindow, room) in enumerate(zip(stale, rooms, strict=True)):
            frontier = self._used[subwindow]
            words.host[number] = (
                subwindow.rids, frontier.marks, frontier.edges, apart, sums, subwindow.count, room,
                frontier.every, frontier.some,
            )
            apart += 4 * self._pieces * room
            sums += 4 * 2 * self._pieces
        words.upload(len(stale))
        for kernel in (self._mark, self._line_up):
            self._pool.launch(kernel, (self._pieces, len(stale)), words.place)

    def _room(self, subwindow: Subwindow) -> int:
        """For the rids on the edge of each piece, and a line more."""
        frontier = self._used[subwindow]
        marks = -(-(subwindow.count // MARKED + 1) // self._pieces)
        return min(_length(frontier.some) - _length(frontier.every), marks * MARKED) + FAN


def _batches(tuples: int, looks: float, edge: int) -> int:
    """For how many batches a frontier of so many tuples is best made.

    Made for n, it costs a look at each of its tuples once in n batches; and each probe then looks
    at what n batches have on the edge. The sum is least at this n.
    """
    best = round(tuples / max(1.0, sqrt(looks * edge)))
    return min(_MOST_BATCHES, max(1, best))


def _ahead(batches: int, some: Span, every: Span, subwindow: Subwindow) -> tuple[Span, Span]:
    """What batches to come will see, if the edges go on as they went in this one."""
    if not _length(every):
        return some, (0, 0)
    more = batches - 1
    begin = every[0] + more * (every[0] - some[0])
    end = some[1] + more * (some[1] - every[1])
    return (some[0], min(end, subwindow.capacity)), _span(begin, every[1])


def _clipped(span: Span | None, subwindow: Subwindow) -> Span:
    """The rids among them that there are."""
    return _span(*(min(max(0, rid), subwindow.capacity) for rid in span or (0, 0)))


def _span(begin: int, end: int) -> Span:
    return (begin, end) if begin < end else (0, 0)


def _length(span: Span) -> int:
    return span[1] - span[0]


def _within(inner: Span, outer: Span) -> bool:
    return not _length(inner) or (outer[0] <= inner[0] and inner[1] <= outer[1])
