"""Time zones: instants <-> what the clock on the wall shows."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["instants", "local_times", "unit_name"]

_NAMES = {1_000_000_000: "s", 1_000_000: "ms", 1_000: "us", 1: "ns"}


def unit_name(unit_ns: int) -> str:
    """Arrow's name for a timestamp's unit."""
    return _NAMES[unit_ns]


def local_times(data: np.ndarray, unit_ns: int, zone: str) -> np.ndarray:
    """Instants, counted from 1970 in UTC, as the clock of `zone` shows them."""
    if zone == "UTC":
        return data
    array = pa.array(data, pa.timestamp(unit_name(unit_ns), zone))
    return np.asarray(pc.local_timestamp(array).view(pa.int64()).to_numpy())


def instants(data: np.ndarray, unit_ns: int, zone: str) -> np.ndarray:
    """The way back: of an hour that comes twice the first, one that is skipped moves forward."""
    if zone == "UTC":
        return data
    array = pa.array(data, pa.timestamp(unit_name(unit_ns)))
    array = pc.assume_timezone(array, zone, ambiguous="earliest", nonexistent="latest")
    return np.asarray(array.view(pa.int64()).to_numpy())
