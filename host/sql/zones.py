"""Time zones: instants <-> what the clock on the wall shows, as Java has it."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from host.sql import exact

__all__ = ["instants", "is_fixed", "later_days", "local_times", "unit_name"]

_NAMES = {1_000_000_000: "s", 1_000_000: "ms", 1_000: "us", 1: "ns"}


def unit_name(unit_ns: int) -> str:
    """Arrow's name for a timestamp's unit."""
    return _NAMES[unit_ns]


def is_fixed(zone: str) -> bool:
    """Whether the zone's clock never jumps."""
    return re.fullmatch(r"(Etc/)?(UTC|GMT)|Z|[+-]\d\d:\d\d", zone) is not None


def local_times(data: np.ndarray, unit_ns: int, zone: str) -> np.ndarray:
    """Instants, counted from 1970 in UTC, as the clock of `zone` shows them."""
    if zone == "UTC":
        return data
    array = pa.array(data, pa.timestamp(unit_name(unit_ns), zone))
    return np.asarray(pc.local_timestamp(array).view(pa.int64()).to_numpy())


def instants(data: np.ndarray, unit_ns: int, zone: str) -> np.ndarray:
    """The way back; of an hour that comes twice the first, one that is skipped comes later."""
    if zone == "UTC":
        return data
    array = pa.array(data, pa.timestamp(unit_name(unit_ns)))
    array = pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="latest")
    found = np.asarray(array.view(pa.int64()).to_numpy())
    # A skipped time is so far behind the jump as it is on the clock from before it.
    skipped = local_times(found, unit_ns, zone) != data
    if skipped.any():
        before = found[skipped] - 1
        offset = local_times(before, unit_ns, zone) - before
        found = found.copy()
        found[skipped] = data[skipped] - offset
    return found


def later_days(data: np.ndarray, days: np.ndarray, unit_ns: int, zone: str) -> np.ndarray:
    """Instants moved by whole days on the clock of `zone`, whatever its hours.

    Of an hour that comes twice, that with the offset from before; int64, or Python integers
    beyond.
    """
    day = 86_400_000_000_000 // unit_ns
    local = local_times(data, unit_ns, zone)
    straight = exact.added(data, exact.multiplied(days, day))
    moved = exact.added(local, exact.multiplied(days, day))
    if straight.dtype == object or moved.dtype == object:
        return straight
    same_clock = local_times(straight, unit_ns, zone) == moved
    return np.where(same_clock, straight, instants(moved, unit_ns, zone))
