"""B+-trees with sorted leaves: any number of them over one pool of nodes.

One of them is the B+-tree that the papers compare with, and the T_I of an IM-Tree; a PIM-Tree has
one for each part of the key's range. A tree may only be changed by one thread at a time, the pool
by many.
"""

from typing import NamedTuple

import numpy as np

from host.indexes.atomics import fetch_add
from host.indexes.compiling import compiled
from host.indexes.inner_node import add_child, join_under, split_node
from host.indexes.memory import move
from host.indexes.search import lower_bound, upper_bound

__all__ = ["LEAF", "Forest", "clear", "first_leaf", "forest", "leaves_for", "plant", "remove"]

#: Tuples of a leaf, children of a node.
LEAF = 64
FANOUT = 32
_NONE = -1
_DEEPEST = 16


class Forest(NamedTuple):
    """Leaf f has the slots from base + f * LEAF on; a tree is named by its number.

    size        tuples of each leaf
    right       the leaf behind each in its tree, -1 behind the last
    separators  of each inner node: child c has keys from separator c - 1 to separator c, both
                included, since equal keys may lie on both sides
    children    nodes, or leaves on the lowest level
    fill        children of each inner node
    root        of each tree, -1 while it is empty
    height      inner levels of each tree
    used        leaves and inner nodes that are taken
    """

    size: np.ndarray
    right: np.ndarray
    separators: np.ndarray
    children: np.ndarray
    fill: np.ndarray
    root: np.ndarray
    height: np.ndarray
    used: np.ndarray


def leaves_for(tuples: int, trees: int) -> int:
    """Leaves that may be needed: splits leave them half full, and a tree has one at least."""
    return 2 * -(-tuples // LEAF) + trees + 2


def forest(leaves: int, trees: int) -> Forest:
    """Empty trees, with room for that many leaves."""
    inner = 2 * -(-leaves // FANOUT) + leaves // FANOUT + trees + _DEEPEST
    return Forest(
        np.zeros(leaves, np.int64), np.full(leaves, _NONE), np.empty((inner, FANOUT - 1), np.int64),
        np.empty((inner, FANOUT), np.int64), np.zeros(inner, np.int64),
        np.full(trees, _NONE), np.zeros(trees, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip


@compiled
def clear(forest):  # type: ignore[no-untyped-def]
    """Make all trees empty."""
    forest.root[:] = _NONE
    forest.height[:] = 0
    forest.used[:] = 0


@compiled
def first_leaf(forest, tree, key):  # type: ignore[no-untyped-def]
    """The first leaf that may hold keys of at least `key`; -1 if the tree is empty."""
    node = forest.root[tree]
    for _ in range(forest.height[tree]):
        stop = forest.fill[node] - 1
        node = forest.children[node, lower_bound(forest.separators[node], 0, stop, key)]
    return node


@compiled
def plant(forest, tree, base, keys, rids, key, rid):  # type: ignore[no-untyped-def]
    """Insert a tuple into a tree, behind equal keys."""
    if forest.root[tree] < 0:
        leaf = fetch_add(forest.used, 0, 1)
        forest.root[tree], forest.size[leaf], forest.right[leaf] = leaf, 0, _NONE
    height = forest.height[tree]
    leaf = _descend(forest, tree, key, height)
    if forest.size[leaf] == LEAF:
        new = _split_leaf(forest, leaf, base, keys, rids)
        separator = keys[base + new * LEAF]
        _add(forest, tree, key, separator, new)
        if key >= separator:
            leaf = new
    first, held = base + leaf * LEAF, forest.size[leaf]
    place = upper_bound(keys, first, first + held, key)
    move(keys, place + 1, place, first + held - place)
    move(rids, place + 1, place, first + held - place)
    keys[place] = key
    rids[place] = rid
    forest.size[leaf] = held + 1


@compiled
def _descend(forest, tree, key, levels):  # type: ignore[no-untyped-def]
    """What lies `levels` below the root on the way to where a key is inserted."""
    node = forest.root[tree]
    for _ in range(levels):
        stop = forest.fill[node] - 1
        node = forest.children[node, upper_bound(forest.separators[node], 0, stop, key)]
    return node


@compiled
def _split_leaf(forest, leaf, base, keys, rids):  # type: ignore[no-untyped-def]
    """Move the upper half of a full leaf to a new one behind it."""
    new = fetch_add(forest.used, 0, 1)
    half = LEAF // 2
    begin, into = base + leaf * LEAF + half, base + new * LEAF
    move(keys, into, begin, half)
    move(rids, into, begin, half)
    forest.size[leaf] = forest.size[new] = half
    forest.right[new] = forest.right[leaf]
    forest.right[leaf] = new
    return new


@compiled
def _add(forest, tree, key, separator, child):  # type: ignore[no-untyped-def]
    """Put a child behind the one that `key` leads to, from the lowest inner level up."""
    level = forest.height[tree] - 1
    while level >= 0:
        node = _descend(forest, tree, key, level)
        place = upper_bound(forest.separators[node], 0, forest.fill[node] - 1, key)
        if forest.fill[node] < FANOUT:
            add_child(*_inner(forest), node, place, separator, child)
            return
        new = fetch_add(forest.used, 1, 1)
        between = split_node(*_inner(forest), node, new, place, separator, child)
        separator, child = between, new
        level -= 1
    root = fetch_add(forest.used, 1, 1)
    join_under(*_inner(forest), root, forest.root[tree], separator, child)
    forest.root[tree] = root
    forest.height[tree] += 1


@compiled
def _inner(forest):  # type: ignore[no-untyped-def]
    """The inner nodes, as host.indexes.inner_node has them."""
    return forest.separators, forest.children, forest.fill


@compiled
def remove(forest, tree, base, keys, rids, key, rid):  # type: ignore[no-untyped-def]
    """Delete the tuple with that key and rid; whether it was there.

    A leaf that becomes empty stays where it is and takes the next key of its range.
    """
    leaf = first_leaf(forest, tree, key)
    while leaf >= 0:
        first, held = base + leaf * LEAF, forest.size[leaf]
        slot = lower_bound(keys, first, first + held, key)
        while slot < first + held and keys[slot] == key:
            if rids[slot] == rid:
                move(keys, slot, slot + 1, first + held - slot - 1)
                move(rids, slot, slot + 1, first + held - slot - 1)
                forest.size[leaf] = held - 1
                return True
            slot += 1
        if slot < first + held:
            return False
        leaf = forest.right[leaf]
    return False
