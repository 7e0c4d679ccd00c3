"""Records of a batch of probes in sorted arrays, by numpy's binary search."""

import numpy as np

from host.backend import Probes
from hw.spec.tuples import NOT, RECORD

__all__ = ["records_in"]

#: Steps that a search for a run's end walks before it searches.
_WALK = 3


def records_in(arrays: list[np.ndarray], probes: Probes) -> np.ndarray:
    """Records of the probes in each of several ascending arrays of keys."""
    wanted = probes.intervals
    # Strided fields would be copied by each search: take a band's bounds once.
    bounds = [
        (wanted["lo"][:, band].copy(), wanted["hi"][:, band].copy())
        for band in range(wanted.shape[1])
    ]
    records = np.empty((len(arrays), *wanted.shape), RECORD)
    for row, keys in zip(records, arrays, strict=True):
        for band, (lo, hi) in enumerate(bounds):
            start = np.searchsorted(keys, lo, "left")
            row["start"][:, band] = start
            row["end"][:, band] = _ends(keys, start, hi)
    if probes.negated:
        records["end"] |= NOT
    return records


def _ends(keys: np.ndarray, start: np.ndarray, hi: np.ndarray) -> np.ndarray:
    """First position from `start` on whose key is above `hi`.

    Most runs are short, so walk first, as PanJoin's rebounding search does, and search only for
    the runs that are still open. An empty interval has lo > hi, and its run ends at once.
    """
    end = start.copy()
    still = np.arange(len(start))
    for _ in range(_WALK):
        still = still[end[still] < len(keys)]
        still = still[keys[end[still]] <= hi[still]]
        if not len(still):
            return end
        end[still] += 1
    end[still] = np.maximum(np.searchsorted(keys, hi[still], "right"), end[still])
    return end
