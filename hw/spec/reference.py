"""The join as a double loop over all pairs: slow, obvious, the judge of all engines.

Used by tests and scoreboards, never by product code.
"""

from collections.abc import Callable, Sequence
from typing import Any

from hw.spec.predicates import Predicate
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow, TimeWindow, Window

__all__ = ["Arrival", "interleaved", "late", "match_counts", "pairs", "probe_records"]

Arrival = Sequence[tuple[Side, int]]


def interleaved(left_rows: int, right_rows: int) -> list[tuple[Side, int]]:
    """The order of arrival without arrival columns: left row i just before right row i."""
    order = []
    for row in range(max(left_rows, right_rows)):
        if row < left_rows:
            order.append((Side.LEFT, row))
        if row < right_rows:
            order.append((Side.RIGHT, row))
    return order


def late(
    arrival: Arrival, times: tuple[Sequence[int | None], Sequence[int | None]], lateness_us: int
) -> set[tuple[Side, int]]:
    """Tuples older than their stream's largest time before them, minus the lateness."""
    newest: dict[Side, int] = {}
    found = set()
    for side, row in arrival:
        time = times[side][row]
        if time is None:
            continue
        if side in newest and time < newest[side] - lateness_us:
            found.add((side, row))
        newest[side] = max(time, newest.get(side, time))
    return found


def pairs(
    arrival: Arrival,
    holds: Callable[[int, int], Any],
    window: Window,
    times: tuple[Sequence[int | None], Sequence[int | None]] | None = None,
    lateness_us: int | None = None,
) -> list[tuple[int, int]]:
    """All (left row, right row) of the result, ordered by the later tuple, then by the earlier.

    `arrival` lists every tuple in its order; rows of a stream arrive in that order and are
    numbered by it here (a row window counts arrivals). `holds(left row, right row)` is the
    condition; anything but True (None is SQL's NULL) is no pair.
    """
    too_late = (
        late(arrival, times, lateness_us)
        if times is not None and lateness_us is not None
        else set()
    )
    number: dict[tuple[Side, int], int] = {}
    count = {Side.LEFT: 0, Side.RIGHT: 0}
    result = []
    for position, (side, row) in enumerate(arrival):
        for earlier_side, earlier_row in arrival[:position]:
            if earlier_side is side:
                continue
            left, right = (row, earlier_row) if side is Side.LEFT else (earlier_row, row)
            if (side, row) in too_late or (earlier_side, earlier_row) in too_late:
                continue
            if isinstance(window, RowWindow):
                # Among the last N or M tuples of its own stream that arrived before this one.
                age = count[earlier_side] - number[earlier_side, earlier_row]
                if age > window.rows(earlier_side):
                    continue
            if isinstance(window, TimeWindow):
                assert times is not None
                left_time, right_time = times[Side.LEFT][left], times[Side.RIGHT][right]
                if left_time is None or right_time is None:
                    continue
                if not window.lo_us <= right_time - left_time <= window.hi_us:
                    continue
            if holds(left, right) is True:
                result.append((left, right))
        number[side, row] = count[side]
        count[side] += 1
    return result


def match_counts(
    arrival: Arrival, found: Sequence[tuple[int, int]]
) -> list[tuple[str, int, int]]:
    """`--emit counts` of those pairs: (side, row, pairs that it completed) in order of arrival."""
    position = {who: place for place, who in enumerate(arrival)}
    counts = [0] * len(arrival)
    for left, right in found:
        counts[max(position[Side.LEFT, left], position[Side.RIGHT, right])] += 1
    return [
        (side.letter, row, count) for (side, row), count in zip(arrival, counts, strict=True)
    ]


def probe_records(
    stored: Sequence[int], probe: int, side: Side, predicate: Predicate
) -> list[tuple[int, int]]:
    """What a prober answers: a half-open run of positions in the ascending `stored` for each band
    of the predicate as seen from `side`; an empty run where a band matches nothing.
    """
    runs = []
    for band in predicate.seen_from(side):
        matching = [place for place, key in enumerate(stored) if band.holds(key - probe)]
        start = matching[0] if matching else sum(
            1 for key in stored if band.lo is not None and key - probe < band.lo
        )
        runs.append((start, start + len(matching)))
    return runs
