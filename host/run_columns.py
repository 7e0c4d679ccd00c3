"""Columns of pairs out of runs of positions or out of lists, compiled.

`offsets` counts the pairs before each record (start, end) of `records`, `runs` of them to a probe.
Each writer of runs fills `out` with the pairs from `begin` on. Places are unsigned: a signed one is
first looked at whether it counts from the end.
"""

import numpy as np
from numba import njit

__all__ = [
    "count_offsets", "list_pairs", "write_copy", "write_copy_seen", "write_gather",
    "write_gather_seen", "write_picked", "write_repeat", "write_taken",
]

#: Values that are written at a time. Runs are short and of any length, and a loop over each would
#: be guessed wrong at its end. What is written too much is written over by the next run.
_STEP = np.uint64(16)


@njit(cache=True, nogil=True)
def count_offsets(records, runs, rids, first, rows, partly):  # type: ignore[no-untyped-def]
    offsets = np.empty(len(records) + 1, np.int64)
    total = np.int64(0)
    for record in range(len(records)):
        offsets[record] = total
        start, end = np.int64(records[record, 0]), np.int64(records[record, 1])
        if not partly:
            total += end - start
            continue
        low, most = first[record // runs], rows[record // runs]
        seen = np.uint32(0)
        for position in range(np.uint64(start), np.uint64(end)):
            seen += np.uint32(np.uint32(rids[position] - low) < most)
        total += np.int64(seen)
    offsets[len(records)] = total
    return offsets


@njit(cache=True, nogil=True)
def write_repeat(offsets, runs, own, begin, out):  # type: ignore[no-untyped-def]
    record = np.searchsorted(offsets, begin, "right") - 1
    probe, run = divmod(record, runs)
    written, size = np.uint64(0), np.uint64(len(out))
    while written < size:
        stop = np.uint64(min(len(out), offsets[record + 1] - begin))
        value = own[probe]
        while written < stop and written + _STEP <= size:
            for step in range(_STEP):
                out[written + step] = value
            written += _STEP
        for place in range(written, stop):
            out[place] = value
        written = stop
        record += 1
        run += 1
        if run == runs:
            probe, run = probe + 1, 0


@njit(cache=True, nogil=True)
def write_copy(offsets, records, arranged, begin, out):  # type: ignore[no-untyped-def]
    """Whole runs of `arranged`, which is by position."""
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = np.uint64(begin - offsets[record])
    written, size, last = np.uint64(0), np.uint64(len(out)), np.uint64(len(arranged))
    while written < size:
        first = np.uint64(records[record, 0]) + skipped - written
        stop = np.uint64(min(len(out), offsets[record + 1] - begin))
        while written < stop and written + _STEP <= size and first + written + _STEP <= last:
            for step in range(_STEP):
                out[written + step] = arranged[first + written + step]
            written += _STEP
        for place in range(written, stop):
            out[place] = arranged[first + place]
        written, skipped = stop, np.uint64(0)
        record += 1


@njit(cache=True, nogil=True)
def write_gather(offsets, records, rids, ring, shift, begin, out):  # type: ignore[no-untyped-def]
    """Whole runs. Rid r is at shift + r in the ring, or one turn further back."""
    size = len(ring)
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = np.uint64(begin - offsets[record])
    written = np.uint64(0)
    while written < len(out):
        first = np.uint64(records[record, 0]) + skipped - written
        stop = np.uint64(min(len(out), offsets[record + 1] - begin))
        for place in range(written, stop):
            row = np.int64(rids[first + place]) + shift
            out[place] = ring[np.uint64(row - size if row >= size else row)]
        written, skipped = stop, np.uint64(0)
        record += 1


@njit(cache=True, nogil=True)
def write_gather_seen(  # type: ignore[no-untyped-def]
    offsets, records, runs, rids, first, rows, ring, shift, begin, out
):
    """What each probe sees of its runs. Written first and counted then: no branch to guess."""
    size = len(ring)
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = begin - offsets[record]
    written = np.uint64(0)
    while written < len(out):
        low, most = first[record // runs], rows[record // runs]
        position, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        while skipped > 0:
            skipped -= np.uint32(rids[position] - low) < most
            position += np.uint64(1)
        while position < end and written < len(out):
            rid = rids[position]
            row = np.int64(rid) + shift
            row = row - size if row >= size else row
            # What is not seen may have left the ring.
            out[written] = ring[np.uint64(row if row >= 0 else 0)]
            written += np.uint64(np.uint32(rid - low) < most)
            position += np.uint64(1)
        record += 1


@njit(cache=True, nogil=True)
def write_copy_seen(  # type: ignore[no-untyped-def]
    offsets, records, runs, rids, first, rows, arranged, begin, out
):
    """The same of `arranged`, which is by position."""
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = begin - offsets[record]
    written = np.uint64(0)
    while written < len(out):
        low, most = first[record // runs], rows[record // runs]
        position, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        while skipped > 0:
            skipped -= np.uint32(rids[position] - low) < most
            position += np.uint64(1)
        if written + (end - position) <= len(out):
            # All of them would fit: nothing has to be looked at but what is seen.
            for place in range(position, end):
                out[written] = arranged[place]
                written += np.uint64(np.uint32(rids[place] - low) < most)
            position = end
        while position < end and written < len(out):
            out[written] = arranged[position]
            written += np.uint64(np.uint32(rids[position] - low) < most)
            position += np.uint64(1)
        record += 1


@njit(cache=True, nogil=True)
def list_pairs(records, runs, rids, first, rows, partly, most):  # type: ignore[no-untyped-def]
    """(probe, rid) of all pairs, which are at most `most`.

    A run has none or one more often than not, and which of the two cannot be guessed: the first
    rid of a run is always written, and counted if there is one.
    """
    probes, found = np.empty(most + 1, np.uint32), np.empty(most + 1, np.uint32)
    written, probe, run, low, size = 0, 0, 0, np.uint32(0), np.uint32(0)
    for record in range(len(records) if len(rids) else 0):
        start, end = np.int64(records[record, 0]), np.int64(records[record, 1])
        if partly:
            low, size = first[probe], rows[probe]
        rid = rids[np.uint64(start if start < len(rids) else len(rids) - 1)]
        probes[written], found[written] = probe, rid
        seen = int(not partly or np.uint32(rid - low) < size)
        written += seen & int(start < end)
        for position in range(start + 1, end):
            rid = rids[np.uint64(position)]
            probes[written], found[written] = probe, rid
            written += int(not partly or np.uint32(rid - low) < size)
        run += 1
        if run == runs:
            probe, run = probe + 1, 0
    return probes[:written], found[:written]


@njit(cache=True, nogil=True)
def write_picked(values, places, out):  # type: ignore[no-untyped-def]
    for n in range(len(places)):
        out[n] = values[np.uint64(places[n])]


@njit(cache=True, nogil=True)
def write_taken(ring, shift, rids, out):  # type: ignore[no-untyped-def]
    """Rid r is at shift + r in the ring, or one turn further back."""
    size = len(ring)
    for n in range(len(rids)):
        row = np.int64(rids[n]) + shift
        out[n] = ring[np.uint64(row - size if row >= size else row)]
