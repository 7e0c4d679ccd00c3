"""np.searchsorted for probes whose places rise, more or less, as they arrive, compiled."""

import numpy as np
from numba import njit

__all__ = ["arrival_ranks"]


@njit(cache=True, nogil=True)
def arrival_ranks(times, places, order, right):  # type: ignore[no-untyped-def]
    """How many `times`, which ascend, are below each place; with `right`, or equal to it.

    `order` has the arrival of each probe. One after the other they are searched for from where
    the one before was found, in steps that double (PanJoin's rebounding search).
    """
    arrived = np.full(order.max() + 1, times[0])
    for probe in range(len(order)):
        arrived[np.uint64(order[probe])] = places[probe]
    found = 0
    for arrival in range(len(arrived)):
        found = _rank(times, arrived[arrival], right, found)
        arrived[arrival] = found
    ranks = np.empty(len(order), np.int64)
    for probe in range(len(order)):
        ranks[probe] = arrived[np.uint64(order[probe])]
    return ranks


@njit(cache=True, nogil=True)
def _rank(times, place, right, near):  # type: ignore[no-untyped-def]
    """The rank is in [low, high] all the time."""
    step = 1
    if near > 0 and not _is_before(times[near - 1], place, right):
        high = near - 1
        low = max(0, high - step)
        while low > 0 and not _is_before(times[low - 1], place, right):
            high, step = low - 1, 2 * step
            low = max(0, high - step)
    else:
        low = near
        high = min(len(times), low + step)
        while high < len(times) and _is_before(times[high], place, right):
            low, step = high + 1, 2 * step
            high = min(len(times), low + step)
    while low < high:
        middle = (low + high) >> 1
        if _is_before(times[middle], place, right):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _is_before(time, place, right):  # type: ignore[no-untyped-def]
    return time < place or (right and time == place)
