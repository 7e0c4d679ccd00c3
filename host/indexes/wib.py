"""WiB+-Tree (PanJoin III-C): a B+-tree whose leaves are wide, unsorted, and kept in an LLAT."""

from typing import ClassVar, NamedTuple

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.index import Intervals
from host.indexes.llat import SIGMA, Llat, count_in, list_in, list_whole, llat, longer, put
from host.indexes.memory import move
from host.indexes.over_llat import OverLlat
from host.indexes.runs import list_runs
from host.indexes.wib_path import Inner, add_separator, find_leaf, inner_nodes, new_path
from host.records import Runs

__all__ = ["WibTree"]

#: Tuples of a leaf before it is split; half of them is what leaves have at least, mostly.
_LEAF = 192
_LEAST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class _Wib(NamedTuple):
    """A leaf is named by its first entry in the LLAT.

    held, least, largest  of each leaf
    right                  the leaf with the next greater keys, -1 behind the last
    """

    inner: Inner
    held: np.ndarray
    least: np.ndarray
    largest: np.ndarray
    right: np.ndarray
    table: Llat


class WibTree(OverLlat):
    """Equal keys share a leaf, so that no separator comes twice; only such a leaf outgrows an
    entry of the LLAT. See host.indexes.index.Index.
    """

    name: ClassVar[str] = "wib"

    def __init__(self, capacity: int, leaf: int = _LEAF) -> None:
        self.capacity = capacity
        self._held = 0
        width = max(2, min(leaf, capacity))
        # PtrG points to the first partition: the empty tree has one leaf, and it is that.
        entries = 2 + 2 * int(np.ceil(capacity / width * SIGMA))
        self._state = _state(llat(entries, width, used=1), inner_nodes(entries))

    def __len__(self) -> int:
        return self._held

    @property
    def _table(self) -> Llat:
        return self._state.table

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        done = _insert(self._state, new_path(), keys, rids, 0)
        while done < len(keys):
            # Lopsided splits around keys that come often may need more entries than the paper's 2P.
            self._grow()
            done = _insert(self._state, new_path(), keys, rids, done)
        self._held += len(keys)

    def _grow(self) -> None:
        state = self._state
        held = len(state.held)
        grown = _state(longer(state.table, 2 * held), inner_nodes(2 * held, state.inner))
        for old, new in zip(state[1:5], grown[1:5], strict=True):
            new[:held] = old
        self._state = grown

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.empty(len(wanted[0]), np.int64)
        before = np.empty(len(self._state.held), np.int64)
        _count(self._state, *wanted, new_path(), new_path(), before, found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return list_runs(_find, (self._state, new_path()), wanted, most)

    def _check(self) -> None:
        state, table = self._state, self._state.table
        width = len(table.keys) // len(table.head)
        leaves = state.inner.leaves()
        total = 0
        for place, (leaf, low, high) in enumerate(leaves):
            assert state.right[leaf] == (leaves[place + 1][0] if place + 1 < len(leaves) else -1)
            keys, entry, entries = [], leaf, 0
            while entry >= 0:
                begin = entry * width
                keys += table.keys[begin : begin + table.head[entry]].tolist()
                entry, entries = table.next[entry], entries + 1
            assert len(keys) == state.held[leaf]
            assert all(low <= key <= high for key in keys)
            assert entries == 1 or len(set(keys)) == 1, "only equal keys outgrow a leaf"
            if keys:
                assert (state.least[leaf], state.largest[leaf]) == (min(keys), max(keys))
            total += len(keys)
        assert total == self._held


def _state(table: Llat, inner: Inner) -> _Wib:
    entries = len(table.head)
    return _Wib(
        inner, np.zeros(entries, np.int64), np.full(entries, _LARGEST), np.full(entries, _LEAST),
        np.full(entries, -1), table,
    )  # fmt: skip


@compiled
def _insert(state, path, keys, rids, done):  # type: ignore[no-untyped-def]
    """Insert from place `done` on; where it stopped, which is before the end if room is short."""
    table = state.table
    width = len(table.keys) // len(table.head)
    for new in range(done, len(keys)):
        # What one tuple may need: an entry for a split, one for a chain, and inner nodes.
        if table.used[0] + 2 > len(table.head):
            return new
        key = keys[new]
        leaf = find_leaf(state.inner, path, key)
        if state.held[leaf] >= width - 1:
            pure = state.least[leaf] == state.largest[leaf]
            if not pure or key != state.least[leaf]:
                leaf = _split(state, path, leaf, key, pure)
        put(table, leaf, key, rids[new])
        state.held[leaf] += 1
        state.least[leaf] = min(state.least[leaf], key)
        state.largest[leaf] = max(state.largest[leaf], key)
    return len(keys)


@compiled
def _split(state, path, leaf, key, pure):  # type: ignore[no-untyped-def]
    """Make two leaves of a full one; that which takes `key`."""
    new = state.table.used[0]
    state.table.used[0] += 1
    state.right[new] = state.right[leaf]
    state.right[leaf] = new
    if not pure:
        separator = _halve(state, leaf, new)
    elif key > state.largest[leaf]:
        separator = state.largest[leaf]
    else:
        # The smaller key gets the old place in the tree, and the equal ones move behind it.
        separator = key
        _exchange(state, leaf, new)
    add_separator(state.inner, path, separator, new)
    return leaf if key <= separator else new


@compiled
def _exchange(state, leaf, new):  # type: ignore[no-untyped-def]
    """Move the tuples of a leaf that is one key to an empty leaf, entry by entry."""
    table = state.table
    width = len(table.keys) // len(table.head)
    begin, into, held = leaf * width, new * width, table.head[leaf]
    move(table.keys, into, begin, held)
    move(table.rids, into, begin, held)
    table.head[new], table.head[leaf] = held, 0
    table.next[new], table.next[leaf] = table.next[leaf], -1
    table.last[new] = new if table.last[leaf] == leaf else table.last[leaf]
    table.last[leaf] = leaf
    state.held[new], state.held[leaf] = state.held[leaf], 0
    state.least[new], state.least[leaf] = state.least[leaf], _LARGEST
    state.largest[new], state.largest[leaf] = state.largest[leaf], _LEAST


@compiled
def _halve(state, leaf, new):  # type: ignore[no-untyped-def]
    """Move the greater half of a leaf to an empty one; the largest key that stays."""
    table = state.table
    width = len(table.keys) // len(table.head)
    begin, into, held = leaf * width, new * width, table.head[leaf]
    keys, rids = table.keys[begin : begin + held], table.rids[begin : begin + held]
    middle = held // 2
    low, high = _part_around(keys, rids, middle)
    # As near to the middle as two keys differ.
    cut = low if low > 0 and (middle - low <= high - middle or high == held) else high
    moved = held - cut
    move(table.keys, into, begin + cut, moved)
    move(table.rids, into, begin + cut, moved)
    table.head[leaf], table.head[new] = cut, moved
    state.held[leaf], state.held[new] = cut, moved
    least, largest = _LARGEST, _LEAST
    for place in range(cut):
        largest = max(largest, keys[place])
    for place in range(cut, held):
        least = min(least, keys[place])
    state.least[new], state.largest[new] = least, state.largest[leaf]
    state.largest[leaf] = largest
    return largest


@compiled
def _part_around(keys, rids, middle):  # type: ignore[no-untyped-def]
    """Sort a leaf as far as a split needs it: the run of keys equal to the one in the middle.

    What is less lies before that run, what is greater behind it. PanJoin sorts all of the leaf,
    which takes several times as long; the next insert would end that order.
    """
    first, stop = 0, len(keys)
    while True:
        one, two, three = keys[first], keys[(first + stop) >> 1], keys[stop - 1]
        pivot = max(min(one, two), min(max(one, two), three))
        low = first
        for place in range(first, stop):
            # Which keys are less cannot be foreseen: all are exchanged, and there is no branch.
            less = keys[place] < pivot
            _swap(keys, rids, place, low)
            low += less
        if low > middle:
            stop = low
            continue
        high = low
        for place in range(low, stop):
            equal = keys[place] == pivot
            _swap(keys, rids, place, high)
            high += equal
        if high > middle:
            return low, high
        first = high


@compiled
def _swap(keys, rids, place, into):  # type: ignore[no-untyped-def]
    keys[place], keys[into] = keys[into], keys[place]
    rids[place], rids[into] = rids[into], rids[place]


@compiled
def _in_leaf(state, leaf, low, high):  # type: ignore[no-untyped-def]
    """Tuples of one leaf in [low, high]; its extremes may tell without a scan."""
    if state.held[leaf] == 0 or state.largest[leaf] < low or state.least[leaf] > high:
        return 0
    if state.least[leaf] >= low and state.largest[leaf] <= high:
        return state.held[leaf]
    return count_in(state.table, leaf, low, high)


@compiled
def _sum_up(state, path, before):  # type: ignore[no-untyped-def]
    """Tuples in the leaves up to and with each."""
    leaf, total = find_leaf(state.inner, path, _LEAST), 0
    while leaf >= 0:
        total += state.held[leaf]
        before[leaf] = total
        leaf = state.right[leaf]


@compiled
def _count(state, lo, hi, low_path, high_path, before, found):  # type: ignore[no-untyped-def]
    """`before` has room for the tuples before each leaf; it is filled when it is needed."""
    summed, walked = False, 0
    for probe in range(len(lo)):
        low, high = lo[probe], hi[probe]
        if low > high:
            found[probe] = 0
            continue
        first = find_leaf(state.inner, low_path, low)
        last = find_leaf(state.inner, high_path, high)
        inside = _in_leaf(state, first, low, high)
        if last != first:
            inside += _in_leaf(state, last, low, high)
            if summed:
                inside += before[last] - state.held[last] - before[first]
            else:
                leaf = state.right[first]
                while leaf != last:
                    inside += state.held[leaf]
                    leaf = state.right[leaf]
                    walked += 1
        found[probe] = inside
        # Leaves in between were walked along more often than once each: sum them up once.
        if not summed and walked > state.table.used[0]:
            _sum_up(state, low_path, before)
            summed = True


@compiled
def _find(state, path, lo, hi, done, held, ends, runs):  # type: ignore[no-untyped-def]
    for probe in range(done, len(lo)):
        low, high, before = lo[probe], hi[probe], held
        leaf = -1
        if low <= high:
            leaf = find_leaf(state.inner, path, low)
        while leaf >= 0:
            if state.held[leaf] > 0:
                if state.least[leaf] > high:
                    break
                if state.least[leaf] >= low and state.largest[leaf] <= high:
                    held = list_whole(state.table, leaf, runs, held)
                elif state.largest[leaf] >= low:
                    held = list_in(state.table, leaf, low, high, runs, held)
            leaf = state.right[leaf]
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
