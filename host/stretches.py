"""What a batch probes when it only counts and sums: stored tuples, and which of them are seen."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hw.spec.windows import Sight

__all__ = ["Stretch", "edges_of", "sight_of"]

_RIDS = 1 << 32
#: Probes from which on compiled code pays.
_LARGE = 1 << 12


@dataclass(frozen=True)
class Stretch:
    """A subwindow, or the tuples of the batch itself, which are not stored yet.

    number   of the subwindow; None for `tuples`, sorted as for an insert
    sight    what each probe sees of it; None where every probe sees all
    carried  arrays by rid: the measures
    nulls    names among them that are 0 somewhere; for one that says what is known, the others
             are nothing but a count
    """

    number: int | None
    tuples: np.ndarray | None
    sight: Sight | None
    carried: Mapping[str, np.ndarray]
    nulls: Set[str] = frozenset()


def edges_of(
    first: np.ndarray,
    last: np.ndarray,
    base: int,
    times: np.ndarray | None,
    order: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """The rids [first, end) of the places from `first` to `last`, if places follow arrivals.

    Rid 0 is row `base`. `times` are the places by rid; without them a row's number is its place.
    `order` has the arrivals of the probes, by which they are searched for faster.
    """
    if times is not None:
        if (times[1:] < times[:-1]).any():
            return None
        return _ranks(times, first, "left", order), _ranks(times, last, "right", order)
    # Places may be as far away as 64 bits reach.
    return np.maximum(first, base) - base, np.minimum(last, base + _RIDS) - base + 1


def _ranks(
    times: np.ndarray, places: np.ndarray, side: Literal["left", "right"], order: np.ndarray | None
) -> np.ndarray:
    """np.searchsorted; most windows reach beyond a subwindow at one end, which needs no search."""
    if not len(times) or not len(places):
        return np.zeros(len(places), np.int64)
    if side == "left" and places.max() <= times[0]:
        return np.zeros(len(places), np.int64)
    if side == "right" and places.min() >= times[-1]:
        return np.full(len(places), len(times))
    if order is None or len(places) < _LARGE:
        return np.searchsorted(times, places, side)
    from host.arrival_ranks import arrival_ranks  # compiled, so only where it is worth it

    ranks: np.ndarray = arrival_ranks(times, places, order, side == "right")
    return ranks


def sight_of(first: np.ndarray, end: np.ndarray) -> Sight:
    """What probes see that each see the rids [first, end); `first` is not negative."""
    rows = np.minimum(np.maximum(end - first, 0), _RIDS - 1).astype(np.uint32)
    some = int(first.min(initial=_RIDS)), int(end.max(initial=0))
    every = int(first.max(initial=0)), int(end.min(initial=_RIDS))
    return Sight(np.minimum(first, _RIDS - 1).astype(np.uint32), rows, 0, some, every)
