"""The parallel index-based window join in compiled code (PIM-Tree, section 4): what threads run.

Everything that threads share is in int64 arrays; words that they wait for are read and written by
host.indexes.atomics. host.indexes.window_join is what others call.
"""

from typing import NamedTuple

import numpy as np

from host.indexes.atomics import fetch_add, load, lock, store, try_lock, unlock, wait
from host.indexes.compiling import compiled
from host.indexes.forest import LEAF, first_leaf, plant, remove
from host.indexes.search import lower_bound
from host.indexes.two_part import TwoPart, both_bounds, install, merge, next_tree, tree_of

__all__ = ["Stream", "Work", "join_alone", "join_beside", "propagate"]

#: Words that threads write often lie on cache lines of their own.
_APART = 8
#: Words of a stream.
_EDGE, _PLANTED, _BUILDING, _EDGE_LOCK = (place * _APART for place in range(4))
#: Words of the work queue.
_HEAD, _ACTIVE, _BLOCKED, _OUT, _QUEUE_LOCK, _OUT_LOCK, _MERGE_LOCK, _PENDING = (
    place * _APART for place in range(8)
)


class Stream(NamedTuple):
    """One stream's window and its index; tuples are named by their number in the stream.

    tree      the index; its rids are numbers of 32 bits, which go round
    capacity  of its T_S (one number)
    keys      the window: key of each number, modulo its length
    stamps    the number whose tuple is indexed at that place, modulo the same
    locks     one for each tree of T_I
    words     edge tuple, tuples in T_I, whether T_S is being built, lock of the edge
    """

    tree: TwoPart
    keys: np.ndarray
    stamps: np.ndarray
    locks: np.ndarray
    words: np.ndarray


class Work(NamedTuple):
    """The work queue: arrivals of both streams in their one order.

    side        of each
    lo, hi      the keys of the other stream that it wants
    number      its number in its stream
    latest      tuples of the other stream before it: the window's end, t_l
    done        1 when its results are there (completed)
    counts      its matches
    owner, at   the thread that has them, and where
    offsets     where they go in the output; n + 1
    rows        of the two windows
    words       see above
    """

    side: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    number: np.ndarray
    latest: np.ndarray
    done: np.ndarray
    counts: np.ndarray
    owner: np.ndarray
    at: np.ndarray
    offsets: np.ndarray
    rows: np.ndarray
    words: np.ndarray


@compiled
def _add(found, held, number):  # type: ignore[no-untyped-def]
    """Put a match behind the `held` ones, if there is room; how many there are then."""
    if held < len(found):
        found[held] = number
    return held + 1


@compiled
def _lookup(stream, low, high, first, span, shared, found, held):  # type: ignore[no-untyped-def]
    """Numbers in [first, first + span) whose keys are in [low, high], as the index has them.

    Expired tuples, and those from the edge tuple on, are in the index and not in that range.
    """
    tree = stream.tree
    capacity, start = tree.shape[4], np.uint32(first)
    end = tree.shape[1]
    part, slot = both_bounds(tree, low)
    while slot < end and tree.keys[slot] <= high:
        offset = np.uint32(tree.rids[slot] - start)
        if offset < span:
            held = _add(found, held, first + np.int64(offset))
        slot += 1
    while part >= 0:
        if shared:
            lock(stream.locks, part * _APART)
        leaf = first_leaf(tree.trees, part, low)
        while leaf >= 0:
            begin, size = 2 * capacity + leaf * LEAF, tree.trees.size[leaf]
            slot = lower_bound(tree.keys, begin, begin + size, low)
            while slot < begin + size and tree.keys[slot] <= high:
                offset = np.uint32(tree.rids[slot] - start)
                if offset < span:
                    held = _add(found, held, first + np.int64(offset))
                slot += 1
            if slot < begin + size:
                break
            leaf = tree.trees.right[leaf]
        if shared:
            unlock(stream.locks, part * _APART)
        part = next_tree(tree, part, high)
    return held


@compiled
def _plant(stream, number, key, shared):  # type: ignore[no-untyped-def]
    """Insert a tuple into T_I."""
    tree = stream.tree
    part = tree_of(tree, key)
    if shared:
        lock(stream.locks, part * _APART)
    plant(
        tree.trees, part, 2 * tree.shape[4], tree.keys, tree.rids, key, np.uint32(number)
    )
    if shared:
        unlock(stream.locks, part * _APART)


@compiled
def join_alone(work, left, right, removes, threshold, begin, held, found):  # type: ignore[no-untyped-def]
    """One thread without locks: the matches of all arrivals from `begin` on, in order.

    With `removes`, an expired tuple is deleted from its tree (IBWJ using a B+-tree); without, T_I
    is merged at `threshold` tuples, and what has expired goes then. Where it stopped, and the
    matches up to there: before the end if the next arrival's need more room.
    """
    for place in range(begin, len(work.side)):
        before = held
        if work.side[place] == 0:
            held = _join_one(work, left, right, place, removes, threshold, found, held)
        else:
            held = _join_one(work, right, left, place, removes, threshold, found, held)
        if held > len(found):
            return place, before
        work.counts[place] = held - before
    return len(work.side), held


@compiled
def _join_one(work, own, other, place, removes, threshold, found, held):  # type: ignore[no-untyped-def]
    """PIM-Tree 2.1: look up the other window, delete what expired, insert."""
    side, number, latest = work.side[place], work.number[place], work.latest[place]
    first = max(0, latest - work.rows[1 - side])
    held = _lookup(
        other, work.lo[place], work.hi[place], first, latest - first, False, found, held
    )
    if held > len(found):
        return held
    mask = len(own.keys) - 1
    expired = number - work.rows[side]
    if removes and expired >= 0:
        tree = own.tree
        remove(
            tree.trees, 0, 2 * tree.shape[4], tree.keys, tree.rids, own.keys[expired & mask],
            np.uint32(expired),
        )
    _plant(own, number, own.keys[number & mask], False)
    own.words[_PLANTED] += 1
    own.words[_EDGE] = number + 1
    if not removes and own.words[_PLANTED] >= threshold:
        oldest = max(0, number + 1 - work.rows[side])
        end = merge(own.tree, own.tree.shape[4], oldest, work.rows[side])
        install(own.tree, own.tree.shape[4], end)
        own.words[_PLANTED] = 0
    return held


@compiled
def join_beside(  # type: ignore[no-untyped-def]
    work, left, right, thread, task, threshold, slack, mine, found
):
    """What each of several threads runs until the queue is empty.

    `mine` is how many matches it has found, the end of its task, the arrival it is at, and the
    tuples of each stream that its task has planted. False if it needs more room for matches: it
    is in the middle of its task then, and must be called again.
    """
    while True:
        if mine[2] == mine[1]:
            mine[2] = _acquire(work, task, slack)
            mine[1] = min(mine[2] + task, len(work.side))
            if mine[2] >= len(work.side):
                return True
        while mine[2] < mine[1]:
            place, held = mine[2], mine[0]
            side = work.side[place]
            if side == 0:
                held = _generate(work, right, place, found, held)
            else:
                held = _generate(work, left, place, found, held)
            if held > len(found):
                return False
            mine[3 + side] += _update(left if side == 0 else right, work.number[place])
            work.at[place], work.counts[place] = mine[0], held - mine[0]
            work.owner[place] = thread
            store(work.done, place, 1)
            mine[0], mine[2] = held, place + 1
        # Once a task and not once a tuple: threads would wait for each other's cache lines.
        _publish(left, mine, 3)
        _publish(right, mine, 4)
        fetch_add(work.words, _ACTIVE, -1)
        propagate(work)
        _merge_if_due(work, left, 0, threshold)
        _merge_if_due(work, right, 1, threshold)


@compiled
def _acquire(work, task, slack):  # type: ignore[no-untyped-def]
    """Task acquisition: the first of the next `task` arrivals.

    While a T_S is built nothing is indexed, and no more than `slack` arrivals may go unindexed.
    """
    while True:
        lock(work.words, _QUEUE_LOCK)
        begin = work.words[_HEAD]
        far = work.words[_PENDING] >= 0 and begin - work.words[_PENDING] >= slack
        ended = begin >= len(work.side)
        if not ended and (work.words[_BLOCKED] or far):
            unlock(work.words, _QUEUE_LOCK)
            wait()
            continue
        if not ended:
            work.words[_HEAD] = min(begin + task, len(work.side))
            fetch_add(work.words, _ACTIVE, 1)
        unlock(work.words, _QUEUE_LOCK)
        return begin


@compiled
def _generate(work, other, place, found, held):  # type: ignore[no-untyped-def]
    """Result generation of one tuple."""
    latest, low, high = work.latest[place], work.lo[place], work.hi[place]
    first = max(0, latest - work.rows[1 - work.side[place]])
    # An edge that moves on meanwhile does no harm: what it passes is scanned as well.
    edge = min(max(first, load(other.words, _EDGE)), latest)
    # The print says "after the edge tuple or before t_l": it is t_e that the index is cut at, and
    # the scan goes from the edge to t_l.
    held = _lookup(other, low, high, first, edge - first, True, found, held)
    mask = len(other.keys) - 1
    for one in range(edge, latest):
        key = other.keys[one & mask]
        if key >= low and key <= high:
            held = _add(found, held, one)
    return held


@compiled
def _update(own, number):  # type: ignore[no-untyped-def]
    """Index update of one tuple, unless T_S is being built; how many were planted."""
    if own.words[_BUILDING]:
        return 0
    place = number & (len(own.keys) - 1)
    _plant(own, number, own.keys[place], True)
    store(own.stamps, place, number)
    return 1


@compiled
def _publish(stream, mine, planted):  # type: ignore[no-untyped-def]
    """Tell the others what a task has planted."""
    if mine[planted]:
        fetch_add(stream.words, _PLANTED, mine[planted])
        mine[planted] = 0
        _move_edge(stream)


@compiled
def _move_edge(stream):  # type: ignore[no-untyped-def]
    """Move the edge tuple to the next that is not indexed; another thread may be at it."""
    if try_lock(stream.words, _EDGE_LOCK):
        edge, mask = stream.words[_EDGE], len(stream.stamps) - 1
        while load(stream.stamps, edge & mask) == edge:
            edge += 1
        store(stream.words, _EDGE, edge)
        unlock(stream.words, _EDGE_LOCK)


@compiled
def propagate(work):  # type: ignore[no-untyped-def]
    """Result propagation: give the next completed tuples their place in the output, in order."""
    if try_lock(work.words, _OUT_LOCK):
        place = work.words[_OUT]
        while place < len(work.side) and load(work.done, place) == 1:
            work.offsets[place + 1] = work.offsets[place] + work.counts[place]
            place += 1
        work.words[_OUT] = place
        unlock(work.words, _OUT_LOCK)


@compiled
def _block(work):  # type: ignore[no-untyped-def]
    """Assign no more tasks, and wait until those that are assigned have finished."""
    lock(work.words, _QUEUE_LOCK)
    work.words[_BLOCKED] = 1
    unlock(work.words, _QUEUE_LOCK)
    while load(work.words, _ACTIVE) > 0:
        wait()


@compiled
def _seen(work, side):  # type: ignore[no-untyped-def]
    """Tuples of a stream that are assigned."""
    head = work.words[_HEAD]
    if head == 0:
        place = 0
        return work.number[place] if work.side[place] == side else work.latest[place]
    place = head - 1
    return work.number[place] + 1 if work.side[place] == side else work.latest[place]


@compiled
def _merge_if_due(work, stream, side, threshold):  # type: ignore[no-untyped-def]
    """The nonblocking merge (PIM-Tree 4.2), by the thread that finds it due."""
    if load(stream.words, _PLANTED) < threshold or not try_lock(work.words, _MERGE_LOCK):
        return
    tree, capacity, rows = stream.tree, stream.tree.shape[4], work.rows[side]
    if load(stream.words, _PLANTED) >= threshold:
        # Phase 1: others go on without index updates while the new T_S is made.
        _block(work)
        stream.words[_BUILDING], work.words[_PENDING] = 1, work.words[_HEAD]
        oldest = max(0, _seen(work, side) - rows)
        store(work.words, _BLOCKED, 0)
        end = merge(tree, capacity, oldest, rows)
        # Phase 2: the new index is there, and what was left out meanwhile is inserted.
        _block(work)
        install(tree, capacity, end)
        stream.words[_BUILDING], stream.words[_PLANTED] = 0, 0
        pending, edge = _seen(work, side), stream.words[_EDGE]
        work.words[_PENDING] = -1
        store(work.words, _BLOCKED, 0)
        mask = len(stream.keys) - 1
        for number in range(edge, pending):
            if load(stream.stamps, number & mask) != number:
                _plant(stream, number, stream.keys[number & mask], True)
                store(stream.stamps, number & mask, number)
                fetch_add(stream.words, _PLANTED, 1)
        _move_edge(stream)
    unlock(work.words, _MERGE_LOCK)
