"""Frontiers: which positions of a subwindow all probes of a batch see, and which only some."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hw.opencl.memory import HostArray, Pool
from hw.opencl.program import FRONTIER, MARK, Program
from hw.opencl.subwindow import RID_BYTES, Subwindow
from hw.spec.tuples import Side
from hw.spec.windows import Sight

__all__ = ["MARKED", "Frontier", "Frontiers", "Watched"]

#: Positions to a mark; see kernels/sight.cl.
MARKED = 64
_AGE_BITS = 8
_AGES = 1 << _AGE_BITS
_STAGGER = 24
#: Looks at single tuples that take the time of a frontier, to a tuple of the subwindow: where the
#: last one is followed, and where tuples have to be dealt by age.
_FOLLOWED, _DEALT = 0.25, 8.0


class Watched(NamedTuple):
    """Probes of one batch, and what they see of each of some subwindows: None where it is all.

    The rids of these are below their capacities.
    """

    side: Side
    probes: int
    subwindows: Sequence[Subwindow]
    sights: Sequence[Sight | None]


class Frontier:
    """One subwindow's memory for it: places. `version` is the subwindow's when it was made."""

    def __init__(self, pool: Pool, room: int) -> None:
        self._pool = pool
        self.room = room
        self.version = -1
        self.every = (0, 0)  # rids that were marked as seen by every probe
        sizes = (room + _AGES * _STAGGER) * 8, _AGES * 8, (room // MARKED + 1) * MARK.itemsize
        self._parts = [(pool.allocate(size), size) for size in sizes]
        self.by_age, self.ages, self.marks = (place for place, _ in self._parts)
        self.edges, self.edges_room = 0, 0

    def reserve_edges(self, count: int) -> None:
        """Make room for so many rids on the edge."""
        if count > self.edges_room:
            self._free_edges()
            self.edges_room = 1 << (count - 1).bit_length()
            self.edges = self._pool.allocate(self.edges_room * RID_BYTES)

    def free(self) -> None:
        for part in self._parts:
            self._pool.free(*part)
        self._free_edges()

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
        self._tally, self._deal, self._mark, self._line_up = (
            program.kernel(name, arguments) for name in ("tally", "deal", "mark", "line_up")
        )
        self._tallies = HostArray(pool, np.uint32)
        self._words = HostArray(pool, FRONTIER)
        self._sums = HostArray(pool, np.uint32)
        #: By the side of the probes: tuples of subwindows seen in part that one of them matched.
        self._met = [0.0] * len(Side)
        self._made: dict[Subwindow, Frontier] = {}

    def note(self, side: Side, probes: int, met: int) -> None:
        """What the probes of a batch have met in subwindows that they see in part."""
        self._met[side] = met / max(1, probes)

    def of(self, subwindows: Sequence[Subwindow]) -> list[Frontier | None]:
        """The frontiers that were made of them for this batch."""
        return [self._made.get(subwindow) for subwindow in subwindows]

    def make(self, watched: Sequence[Watched]) -> bool:
        """Queue the frontiers of a batch, of each subwindow that is worth one.

        False where these are the same subwindows as before.
        """
        before, self._made = set(self._made), {}
        made: list[_Made] = []
        for one in watched:
            looks = one.probes * self._met[one.side]
            for subwindow, sight in zip(one.subwindows, one.sights, strict=True):
                if sight is not None and sight.some is not None:
                    self._consider(subwindow, sight, looks, made)
        if made:
            self._launch(sorted(made, key=lambda one: one.fresh))
        return set(self._made) != before

    def _consider(
        self, subwindow: Subwindow, sight: Sight, looks: float, made: list["_Made"]
    ) -> None:
        some, every = (_clipped(span, subwindow) for span in (sight.some, sight.every))
        edge = some[1] - some[0] - (every[1] - every[0])
        # Where nothing has come since the last batch, dealing is likely to be for many of them.
        steady, subwindow.watched = subwindow.watched == subwindow.version, subwindow.version
        cost = subwindow.count * (_FOLLOWED if steady else _DEALT)
        if looks * (1 - edge / max(1, subwindow.count)) <= cost:
            return
        frontier = subwindow.frontier
        if frontier is None or frontier.room < subwindow.count:
            if frontier is not None:
                frontier.free()
            frontier = subwindow.frontier = Frontier(self._pool, subwindow.room)
        frontier.reserve_edges(min(subwindow.count, edge))
        self._made[subwindow] = frontier
        fresh = frontier.version == subwindow.version
        made.append(_Made(fresh, frontier, subwindow, some, every))

    def _launch(self, made: Sequence["_Made"]) -> None:
        words = self._words.reserve(len(made))
        tallies = self._tallies.reserve(_AGES * self._pieces * len(made))
        sums = self._sums.reserve(2 * self._pieces * len(made))
        for number, one in enumerate(made):
            words.host[number] = one.word(
                tallies.place + 4 * number * _AGES * self._pieces,
                sums.place + 4 * number * 2 * self._pieces,
            )
        words.upload(len(made))
        stale = sum(not one.fresh for one in made)
        steps = (
            (self._tally, stale), (self._deal, stale), (self._mark, len(made)),
            (self._line_up, len(made)),
        )
        for kernel, frontiers in steps:
            if frontiers:
                self._pool.launch(kernel, (self._pieces, frontiers), words.place)


class _Made(NamedTuple):
    """One that is about to be made; `fresh` where the last one of the subwindow is followed."""

    fresh: bool
    frontier: Frontier
    subwindow: Subwindow
    some: tuple[int, int]
    every: tuple[int, int]

    def word(self, tallies: int, sums: int) -> tuple[object, ...]:
        """As a FRONTIER word; it counts as made from then on."""
        frontier, subwindow, some, every = self.frontier, self.subwindow, self.some, self.every
        before = frontier.every if self.fresh else every
        frontier.version, frontier.every = subwindow.version, every
        moved = (*sorted((before[0], every[0])), *sorted((before[1], every[1])))
        edge = (some[0], every[0], every[1], some[1]) if every[0] < every[1] else (*some, 0, 0)
        shift = max(0, (subwindow.capacity - 1).bit_length() - _AGE_BITS)
        return (
            subwindow.rids, frontier.by_age, frontier.ages, tallies, frontier.marks,
            frontier.edges, sums, subwindow.count, shift, every, moved, edge,
        )


def _clipped(span: tuple[int, int] | None, subwindow: Subwindow) -> tuple[int, int]:
    """The rids among them that there are."""
    begin, end = (min(max(0, rid), subwindow.capacity) for rid in span or (0, 0))
    return (begin, end) if begin < end else (0, 0)
