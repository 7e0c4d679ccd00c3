"""Columns of pairs out of runs of positions or out of lists, compiled.

`offsets` counts the pairs before each record (start, end) of `records`, `runs` of them to a probe.
Each writer of runs fills `out` with `size` pairs from `begin` on. Places are unsigned: a signed one
is first looked at whether it counts from the end.

Runs are short and of any length, and a loop over each would be guessed wrong at its end. So LANES
values are written at a time, as often for every run as is enough for most of them, and what is too
much is written over by the next run: `out` and a column by position need room for SLACK more values
than they have.
"""

import numpy as np
from numba import njit

from host.indexes.lanes import LANES, copied, filled, ones, packed, seen

__all__ = [
    "SLACK", "count_candidates", "count_offsets", "list_pairs", "write_copy", "write_copy_seen",
    "write_gather", "write_gather_seen", "write_picked", "write_repeat", "write_taken",
]

#: Times that LANES values are written of every run, however long it is.
_MOST_STEPS = 4
#: Values behind the last that are written or read as well.
SLACK = _MOST_STEPS * LANES

_STEP = np.uint64(LANES)
_ONE = np.uint64(1)


@njit(cache=True, nogil=True)
def count_candidates(records):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    for record in range(len(records)):
        total += np.int64(records[record, 1]) - np.int64(records[record, 0])
    return total


@njit(cache=True, nogil=True)
def _steps(values, runs):  # type: ignore[no-untyped-def]
    """How often LANES values are enough for nearly all runs: two deviations above their mean."""
    mean = values / max(runs, 1)
    return min(_MOST_STEPS, 1 + int(mean + 2.0 * np.sqrt(mean)) // LANES)


@njit(cache=True, nogil=True)
def count_offsets(records, runs, rids, first, rows, partly):  # type: ignore[no-untyped-def]
    offsets = np.empty(len(records) + 1, np.int64)
    total, probe, run = np.int64(0), 0, 0
    for record in range(len(records)):
        offsets[record] = total
        start, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        if not partly:
            total += np.int64(end - start)
            continue
        total += np.int64(_count_seen(rids, start, end, first[probe], rows[probe]))
        run += 1
        if run == runs:
            probe, run = probe + 1, 0
    offsets[len(records)] = total
    return offsets


@njit(cache=True, nogil=True)
def _count_seen(rids, start, end, low, most):  # type: ignore[no-untyped-def]
    found = np.uint64(0)
    if end + _STEP > np.uint64(len(rids)):
        for position in range(start, end):
            found += np.uint64(np.uint32(rids[position] - low) < most)
        return found
    while start < end:
        found += ones(seen(rids, start, low, most) & _first_lanes(end - start))
        start += _STEP
    return found


@njit(cache=True, nogil=True)
def _first_lanes(count):  # type: ignore[no-untyped-def]
    """The bits of so many lanes, or of all."""
    return (_ONE << min(count, _STEP)) - _ONE


@njit(cache=True, nogil=True)
def write_repeat(offsets, runs, own, begin, size, out):  # type: ignore[no-untyped-def]
    probe = (np.searchsorted(offsets, begin, "right") - 1) // runs
    written, stop = np.uint64(0), np.uint64(0)
    steps = _steps(offsets[-1], len(own))
    while written < np.uint64(size):
        stop = np.uint64(min(size, offsets[(probe + 1) * runs] - begin))
        value, place = own[probe], written
        for _ in range(steps):
            filled(out, place, value)
            place += _STEP
        while place < stop:
            filled(out, place, value)
            place += _STEP
        written = stop
        probe += 1


@njit(cache=True, nogil=True)
def write_copy(offsets, records, arranged, begin, size, out):  # type: ignore[no-untyped-def]
    """Whole runs of `arranged`, which is by position."""
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = np.uint64(begin - offsets[record])
    written = np.uint64(0)
    steps = _steps(offsets[-1], len(records))
    while written < np.uint64(size):
        first = np.uint64(records[record, 0]) + skipped - written
        stop = np.uint64(min(size, offsets[record + 1] - begin))
        place = written
        for _ in range(steps):
            copied(out, place, arranged, first + place)
            place += _STEP
        while place < stop:
            copied(out, place, arranged, first + place)
            place += _STEP
        written, skipped = stop, np.uint64(0)
        record += 1


@njit(cache=True, nogil=True)
def write_gather(  # type: ignore[no-untyped-def]
    offsets, records, rids, ring, shift, begin, size, out
):
    """Whole runs. Rid r is at shift + r in the ring, or one turn further back."""
    turn = len(ring)
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = np.uint64(begin - offsets[record])
    written = np.uint64(0)
    while written < np.uint64(size):
        first = np.uint64(records[record, 0]) + skipped - written
        stop = np.uint64(min(size, offsets[record + 1] - begin))
        for place in range(written, stop):
            row = np.int64(rids[first + place]) + shift
            out[place] = ring[np.uint64(row - turn if row >= turn else row)]
        written, skipped = stop, np.uint64(0)
        record += 1


@njit(cache=True, nogil=True)
def write_gather_seen(  # type: ignore[no-untyped-def]
    offsets, records, runs, rids, first, rows, ring, shift, begin, size, out
):
    """What each probe sees of its runs. Written first and counted then: no branch to guess."""
    turn = len(ring)
    record = np.searchsorted(offsets, begin, "right") - 1
    skipped = begin - offsets[record]
    written = np.uint64(0)
    while written < np.uint64(size):
        low, most = first[record // runs], rows[record // runs]
        position, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        while skipped > 0:
            skipped -= np.uint32(rids[position] - low) < most
            position += _ONE
        while position < end and written < np.uint64(size):
            rid = rids[position]
            row = np.int64(rid) + shift
            row = row - turn if row >= turn else row
            # What is not seen may have left the ring.
            out[written] = ring[np.uint64(row if row >= 0 else 0)]
            written += np.uint64(np.uint32(rid - low) < most)
            position += _ONE
        record += 1


@njit(cache=True, nogil=True)
def write_copy_seen(  # type: ignore[no-untyped-def]
    offsets, records, runs, rids, first, rows, arranged, begin, size, out
):
    """The same of `arranged`, which is by position."""
    record = np.searchsorted(offsets, begin, "right") - 1
    probe, run = divmod(record, runs)
    skipped = begin - offsets[record]
    written = np.uint64(0)
    while written < np.uint64(size):
        low, most = first[probe], rows[probe]
        position, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        while skipped > 0:
            skipped -= np.uint32(rids[position] - low) < most
            position += _ONE
        if end + _STEP <= np.uint64(len(rids)):
            while position < end and written < np.uint64(size):
                bits = seen(rids, position, low, most) & _first_lanes(end - position)
                packed(out, written, arranged, position, bits)
                written += ones(bits)
                position += _STEP
        while position < end and written < np.uint64(size):
            out[written] = arranged[position]
            written += np.uint64(np.uint32(rids[position] - low) < most)
            position += _ONE
        record += 1
        run += 1
        if run == runs:
            probe, run = probe + 1, 0


@njit(cache=True, nogil=True)
def list_pairs(records, runs, rids, first, rows, partly, most):  # type: ignore[no-untyped-def]
    """(probe, rid) of all pairs, which are at most `most`."""
    probes, found = np.empty(most + LANES, np.uint32), np.empty(most + LANES, np.uint32)
    written, probe, run = np.uint64(0), np.uint32(0), 0
    low, size = np.uint32(0), np.uint32(0xFFFF_FFFF)
    for record in range(len(records)):
        position, end = np.uint64(records[record, 0]), np.uint64(records[record, 1])
        if partly:
            low, size = first[probe], rows[probe]
        # Whether a run has none, one or a few cannot be guessed: all are taken the same way.
        if end + _STEP <= np.uint64(len(rids)):
            bits = seen(rids, position, low, size) & _first_lanes(end - position)
            filled(probes, written, probe)
            packed(found, written, rids, position, bits)
            written += ones(bits)
            position += _STEP
        while position < end:
            rid = rids[position]
            probes[written], found[written] = probe, rid
            written += np.uint64(not partly or np.uint32(rid - low) < size)
            position += _ONE
        run += 1
        if run == runs:
            probe, run = np.uint32(probe + 1), 0
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
