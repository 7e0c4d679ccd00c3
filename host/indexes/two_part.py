"""Trees of two parts (PIM-Tree 3.2): T_S, which never changes, and T_I, which takes the new tuples.

T_S is an immutable B+-tree: an ascending array, and above it levels of samples without pointers.
T_I is a forest of B+-trees. host.indexes.merge_tree makes the papers' structures of the two.
"""

from typing import NamedTuple

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.forest import LEAF, Forest, clear, first_leaf, forest, leaves_for, plant
from host.indexes.runs import add_run
from host.indexes.search import lower_bound
from host.pages import empty_pages

__all__ = [
    "NODE", "TwoPart", "both_bounds", "count", "find", "insert", "install", "merge", "next_tree",
    "tree_of", "two_part",
]

#: Children of a node of T_S: two cache lines of keys.
NODE = 16
_FIRST_KEY, _LAST_KEY = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_BEGIN, _END, _LEVELS, _DEPTH = range(4)


class TwoPart(NamedTuple):
    """Slots [0, capacity) and [capacity, 2 * capacity) are T_S and where the next one is built.

    keys, rids  of the slots; those of T_I come behind T_S
    samples     the levels of T_S, lowest first: the largest key of each node below
    level       where each level begins, and how many nodes it has
    shape       of T_S: first slot, slot behind the last, levels, the level at which T_I is
                partitioned (the insertion depth D_I, counted from below), and the capacity
    trees       T_I
    """

    keys: np.ndarray
    rids: np.ndarray
    samples: np.ndarray
    level: np.ndarray
    shape: np.ndarray
    trees: Forest


def two_part(capacity: int, mutable: int, trees: int) -> TwoPart:
    """Empty, with room for `capacity` tuples in all and for `mutable` of them in T_I."""
    leaves = leaves_for(mutable, trees)
    slots = 2 * capacity + leaves * LEAF
    rids = empty_pages(slots, np.uint32)
    rids[:] = 0
    levels, size, total = 0, capacity, 0
    while size > 1 or levels == 0:
        size = -(-size // NODE)
        levels, total = levels + 1, total + size
    return TwoPart(
        empty_pages(slots, np.int64), rids, np.empty(total, np.int64),
        np.zeros((levels, 2), np.int64), np.array([0, 0, 0, 0, capacity]), forest(leaves, trees),
    )  # fmt: skip


@compiled
def _node_bound(keys, first, stop, key):  # type: ignore[no-untyped-def]
    """Keys of one node below `key`, all compared at once."""
    below = 0
    for place in range(first, stop):
        below += keys[place] < key
    return below


@compiled
def _walk_down(state, key, lowest):  # type: ignore[no-untyped-def]
    """The node of T_S on level `lowest` that a key leads to, counted on that level."""
    node = 0
    for level in range(state.shape[_LEVELS] - 1, lowest - 1, -1):
        begin, size = state.level[level, 0], state.level[level, 1]
        first = node * NODE
        stop = min(first + NODE, size)
        node = first + _node_bound(state.samples, begin + first, begin + stop, key)
        if node >= size:  # behind all keys
            return state.level[lowest, 1]
    return node


@compiled
def static_bound(state, key):  # type: ignore[no-untyped-def]
    """First slot of T_S whose key is at least `key`."""
    begin, end = state.shape[_BEGIN], state.shape[_END]
    first = begin + _walk_down(state, key, 0) * NODE
    if first >= end:
        return end
    return first + _node_bound(state.keys, first, min(first + NODE, end), key)


@compiled
def tree_of(state, key):  # type: ignore[no-untyped-def]
    """The tree of T_I that takes a key: that of the node of T_S at the insertion depth."""
    if len(state.trees.root) == 1 or state.shape[_LEVELS] == 0:
        return 0
    depth = state.shape[_DEPTH]
    return min(_walk_down(state, key, depth), state.level[depth, 1] - 1)


@compiled
def both_bounds(state, key):  # type: ignore[no-untyped-def]
    """tree_of and static_bound of a key, in one walk."""
    begin, end, levels = state.shape[_BEGIN], state.shape[_END], state.shape[_LEVELS]
    depth = state.shape[_DEPTH] if len(state.trees.root) > 1 else -1
    if levels == 0:
        return 0, end
    tree, node = 0, 0
    for level in range(levels - 1, -1, -1):
        at, size = state.level[level, 0], state.level[level, 1]
        first = node * NODE
        node = first + _node_bound(state.samples, at + first, at + min(first + NODE, size), key)
        if node >= size:  # behind all keys
            return max(tree, state.level[depth, 1] - 1 if depth >= 0 else 0), end
        if level == depth:
            tree = node
    first = begin + node * NODE
    return tree, first + _node_bound(state.keys, first, min(first + NODE, end), key)


@compiled
def next_tree(state, tree, key):  # type: ignore[no-untyped-def]
    """The tree of T_I behind one, if keys up to `key` may be there; else -1."""
    if len(state.trees.root) == 1 or state.shape[_LEVELS] == 0:
        return -1
    depth = state.shape[_DEPTH]
    at, size = state.level[depth, 0], state.level[depth, 1]
    return tree + 1 if tree + 1 < size and state.samples[at + tree] < key else -1


@compiled
def insert(state, capacity, keys, rids):  # type: ignore[no-untyped-def]
    for new in range(len(keys)):
        tree = tree_of(state, keys[new])
        plant(state.trees, tree, 2 * capacity, state.keys, state.rids, keys[new], rids[new])


@compiled
def merge(state, capacity, first_rid, window):  # type: ignore[no-untyped-def]
    """Write T_S without expired tuples and T_I, merged, into the other half; its end.

    A tuple is expired unless its rid is one of the `window` from `first_rid` on, as numbers of 32
    bits go round. T_I and T_S stay as they are; `install` makes the merged one T_S.
    """
    begin, end = state.shape[_BEGIN], state.shape[_END]
    into = capacity - begin
    out, base, slot, first = into, 2 * capacity, begin, np.uint32(first_rid)
    for tree in range(len(state.trees.root)):
        leaf = first_leaf(state.trees, tree, _FIRST_KEY)
        while leaf >= 0:
            for new in range(base + leaf * LEAF, base + leaf * LEAF + state.trees.size[leaf]):
                key = state.keys[new]
                while slot < end and state.keys[slot] <= key:
                    out += _keep(state, slot, out, first, window)
                    slot += 1
                out += _keep(state, new, out, first, window)
            leaf = state.trees.right[leaf]
    for rest in range(slot, end):
        out += _keep(state, rest, out, first, window)
    return out


@compiled
def _keep(state, slot, out, first, window):  # type: ignore[no-untyped-def]
    """Copy a tuple to slot `out`, which is taken only if the tuple is not expired: 1 or 0.

    Which ones are cannot be foreseen, so all are copied, and there is no branch.
    """
    state.keys[out] = state.keys[slot]
    state.rids[out] = state.rids[slot]
    return np.int64(np.uint32(state.rids[slot] - first) < window)


@compiled
def install(state, capacity, end):  # type: ignore[no-untyped-def]
    """Make the other half T_S, from the bottom up (PIM-Tree 3.3.1), and every tree empty."""
    begin = capacity - state.shape[_BEGIN]
    state.shape[_BEGIN], state.shape[_END] = begin, end
    size, at, levels, depth = end - begin, 0, 0, 0
    while size > 1 or levels == 0:
        nodes = -(-size // NODE)
        for node in range(nodes):
            last = min((node + 1) * NODE, size) - 1
            if levels == 0:
                state.samples[at + node] = state.keys[begin + last]
            else:
                state.samples[at + node] = state.samples[state.level[levels - 1, 0] + last]
        state.level[levels, 0], state.level[levels, 1] = at, nodes
        if nodes > len(state.trees.root):
            depth = levels + 1
        at, size, levels = at + nodes, nodes, levels + 1
    state.shape[_LEVELS] = levels if end > begin else 0
    state.shape[_DEPTH] = min(depth, levels - 1)
    clear(state.trees)


@compiled
def count(state, capacity, lo, hi, found):  # type: ignore[no-untyped-def]
    for probe in range(len(lo)):
        low, high, inside = lo[probe], hi[probe], 0
        if low > high:
            found[probe] = 0
            continue
        end = state.shape[_END]
        if high < _LAST_KEY:
            end = static_bound(state, high + 1)
        inside = end - static_bound(state, low)
        # Trees follow each other as their leaves do: the tail of one leads to the head of the next.
        for tree in range(tree_of(state, low), tree_of(state, high) + 1):
            leaf = first_leaf(state.trees, tree, low)
            while leaf >= 0:
                start, stop, beyond = _in_leaf(state, capacity, leaf, low, high)
                inside += stop - start
                if beyond:
                    break
                leaf = state.trees.right[leaf]
        found[probe] = inside


@compiled
def _in_leaf(state, capacity, leaf, low, high):  # type: ignore[no-untyped-def]
    """The slots of a leaf in [low, high], and whether greater keys follow."""
    first, held = 2 * capacity + leaf * LEAF, state.trees.size[leaf]
    start = lower_bound(state.keys, first, first + held, low)
    stop = first + held
    beyond = held > 0 and state.keys[stop - 1] > high
    if beyond:
        stop = lower_bound(state.keys, start, stop, high + 1)
    return start, stop, beyond


@compiled
def find(state, capacity, lo, hi, done, held, ends, runs):  # type: ignore[no-untyped-def]
    for probe in range(done, len(lo)):
        low, high, before = lo[probe], hi[probe], held
        if low <= high:
            end = state.shape[_END]
            if high < _LAST_KEY:
                end = static_bound(state, high + 1)
            begin = static_bound(state, low)
            if end > begin:
                held = add_run(runs, held, begin, end - begin)
            for tree in range(tree_of(state, low), tree_of(state, high) + 1):
                leaf = first_leaf(state.trees, tree, low)
                while leaf >= 0:
                    start, stop, beyond = _in_leaf(state, capacity, leaf, low, high)
                    if stop > start:
                        held = add_run(runs, held, start, stop - start)
                    if beyond:
                        break
                    leaf = state.trees.right[leaf]
        if held > runs.shape[1]:
            return probe, before
        ends[probe] = held
    return len(lo), held
