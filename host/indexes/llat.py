"""LLAT, the Linked List Adaptive Table (PanJoin III-B2): unsorted tuples of partitions.

Every entry is an array for as many tuples as a partition has when the keys are spread evenly, and
a little more. A partition that is larger goes on in another entry: its Next.
"""

from typing import NamedTuple

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.runs import add_run
from host.pages import empty_pages

__all__ = [
    "SIGMA", "Llat", "count_in", "expire", "list_block", "list_in", "list_whole", "llat", "longer",
    "put",
]

#: How much more than its even share an entry holds; PanJoin suggests 1.10 to 1.25.
SIGMA = 1.25
_NONE = -1
#: Slots that are compared at once before single ones are looked at: most blocks have no match.
_BLOCK = 32


class Llat(NamedTuple):
    """Entry e has the slots from e * width on; a partition is named by its first entry.

    keys, rids  of the slots
    head        the place in an entry where its next tuple goes (Head)
    tail        the place of its oldest tuple (Tail)
    next        the entry in which a partition goes on (Next), -1 if there is none
    last        of a partition, by its first entry: the entry that takes its next tuple
    used        one number, PtrG: the first entry that no partition has
    """

    keys: np.ndarray
    rids: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    next: np.ndarray
    last: np.ndarray
    used: np.ndarray


def llat(entries: int, width: int, used: int) -> Llat:
    """An empty table; the first `used` entries are partitions already."""
    rids = empty_pages(entries * width, np.uint32)
    rids[:] = 0
    return Llat(
        empty_pages(entries * width, np.int64), rids,
        np.zeros(entries, np.int64), np.zeros(entries, np.int64),
        np.full(entries, _NONE), np.arange(entries), np.array([used]),
    )  # fmt: skip


def longer(table: Llat, entries: int) -> Llat:
    """The same table with more entries."""
    held = len(table.head)
    result = llat(entries, len(table.keys) // held, int(table.used[0]))
    result.keys[: len(table.keys)], result.rids[: len(table.rids)] = table.keys, table.rids
    for old, new in zip(table[2:6], result[2:6], strict=True):
        new[:held] = old
    return result


@compiled
def put(table, partition, key, rid):  # type: ignore[no-untyped-def]
    """Insert at the partition's Head."""
    width = len(table.keys) // len(table.head)
    # The paper walks along the list; its end is remembered here, so that a long one costs no more.
    entry = table.last[partition]
    slot = entry * width + table.head[entry]
    table.keys[slot] = key
    table.rids[slot] = rid
    table.head[entry] += 1
    if table.head[entry] == width:
        table.next[entry] = table.last[partition] = table.used[0]
        table.used[0] += 1


@compiled
def expire(table, partition):  # type: ignore[no-untyped-def]
    """Delete the partition's oldest tuple; its slot, -1 if there is none."""
    width = len(table.keys) // len(table.head)
    entry = partition
    while entry >= 0:
        if table.tail[entry] < table.head[entry]:
            table.tail[entry] += 1
            return entry * width + table.tail[entry] - 1
        entry = table.next[entry]
    return -1


@compiled
def count_in(table, partition, low, high):  # type: ignore[no-untyped-def]
    """Tuples of a partition in [low, high]."""
    width = len(table.keys) // len(table.head)
    inside, entry = 0, partition
    while entry >= 0:
        part = table.keys[entry * width + table.tail[entry] : entry * width + table.head[entry]]
        for slot in range(len(part)):
            inside += (part[slot] >= low) & (part[slot] <= high)
        entry = table.next[entry]
    return inside


@compiled
def list_in(table, partition, low, high, runs, held):  # type: ignore[no-untyped-def]
    """Put the runs of slots in [low, high] behind the `held` ones; their number then."""
    width = len(table.keys) // len(table.head)
    entry = partition
    while entry >= 0:
        stop = entry * width + table.head[entry]
        for first in range(entry * width + table.tail[entry], stop, _BLOCK):
            part = table.keys[first : min(first + _BLOCK, stop)]
            held = list_block(part, first, low, high, runs, held)
        entry = table.next[entry]
    return held


@compiled
def list_block(keys, first, low, high, runs, held):  # type: ignore[no-untyped-def]
    """The same of a few keys, whose slots begin at `first`."""
    inside = 0
    for slot in range(len(keys)):
        inside += (keys[slot] >= low) & (keys[slot] <= high)
    begin = -1
    for slot in range(len(keys) if inside else 0):
        if keys[slot] >= low and keys[slot] <= high:
            if begin < 0:
                begin = slot
        elif begin >= 0:
            held, begin = add_run(runs, held, first + begin, slot - begin), -1
    if begin >= 0:
        held = add_run(runs, held, first + begin, len(keys) - begin)
    return held


@compiled
def list_whole(table, partition, runs, held):  # type: ignore[no-untyped-def]
    """The same of all tuples of a partition: a run to an entry."""
    width = len(table.keys) // len(table.head)
    entry = partition
    while entry >= 0:
        size = table.head[entry] - table.tail[entry]
        if size > 0:
            held = add_run(runs, held, entry * width + table.tail[entry], size)
        entry = table.next[entry]
    return held
