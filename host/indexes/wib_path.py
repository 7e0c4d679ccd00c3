"""The inner nodes of a WiB+-Tree: small, sorted, without equal keys; and the path through them."""

from typing import NamedTuple

import numpy as np

from host.indexes.compiling import compiled
from host.indexes.inner_node import add_child, join_under, split_node

__all__ = ["FANOUT", "Inner", "add_separator", "find_leaf", "inner_nodes", "new_path"]

#: Children of a node; its keys fill eight cache lines.
FANOUT = 64
_DEEPEST = 12
_LEAST, _LARGEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Inner(NamedTuple):
    """Child c of a node has the keys above separator c - 1 up to separator c.

    separators  by node and place
    children    by node and place: nodes, or leaves on the lowest level
    size        children of each node
    shape       used nodes, root, and the number of levels
    """

    separators: np.ndarray
    children: np.ndarray
    size: np.ndarray
    shape: np.ndarray

    def leaves(self) -> list[tuple[int, int, int]]:
        """Each leaf with the least and the largest key that belongs there, in order; checks."""
        found = self._under(int(self.shape[1]), int(self.shape[2]), _LEAST, _LARGEST)
        assert len({leaf for leaf, _, _ in found}) == len(found)
        return found

    def _under(self, node: int, level: int, low: int, high: int) -> list[tuple[int, int, int]]:
        if level == 0:
            return [(node, low, high)]
        size = int(self.size[node])
        keys = self.separators[node, : size - 1].tolist()
        assert keys == sorted(set(keys)) and 1 <= size <= FANOUT
        assert all(low <= key < high for key in keys)
        bounds = [low - 1, *keys, high]
        return [
            leaf
            for place, child in enumerate(self.children[node, :size].tolist())
            for leaf in self._under(child, level - 1, bounds[place] + 1, bounds[place + 1])
        ]


def inner_nodes(leaves: int, copied: Inner | None = None) -> Inner:
    """Room for the nodes above that many leaves; an empty tree of leaf 0, or a copy."""
    nodes = leaves // (FANOUT // 4) + _DEEPEST
    made = Inner(
        np.empty((nodes, FANOUT - 1), np.int64), np.zeros((nodes, FANOUT), np.int64),
        np.ones(nodes, np.int64), np.array([1, 0, 1]),
    )  # fmt: skip
    if copied is not None:
        for old, new in zip(copied, made, strict=True):
            new[: len(old)] = old
    return made


def new_path() -> np.ndarray:
    """For each level from the root: node, place in it, and the keys that belong below it.

    The last row is the leaf. Row 0 is marked as not yet walked by a node of -1.
    """
    path = np.empty((_DEEPEST + 1, 4), np.int64)
    path[0, 0] = -1
    return path


@compiled
def find_leaf(inner, path, key):  # type: ignore[no-untyped-def]
    """The leaf of a key; PanJoin III-E: from the path of the key before, up as far as needed."""
    levels = inner.shape[2]
    level = levels
    if path[0, 0] < 0:
        path[0, 0], path[0, 2], path[0, 3] = inner.shape[1], _LEAST, _LARGEST
        level = 0
    while key < path[level, 2] or key > path[level, 3]:
        level -= 1
    while level < levels:
        node = path[level, 0]
        first, stop = 0, inner.size[node] - 1
        while first < stop:
            middle = (first + stop) >> 1
            if inner.separators[node, middle] < key:
                first = middle + 1
            else:
                stop = middle
        path[level, 1] = first
        path[level + 1, 0] = inner.children[node, first]
        path[level + 1, 2] = path[level, 2]
        if first > 0:
            path[level + 1, 2] = inner.separators[node, first - 1] + 1
        path[level + 1, 3] = path[level, 3]
        if first < inner.size[node] - 1:
            path[level + 1, 3] = inner.separators[node, first]
        level += 1
    return path[levels, 0]


@compiled
def add_separator(inner, path, key, child):  # type: ignore[no-untyped-def]
    """Put `child` behind the leaf at the end of `path`, with `key` between them."""
    level = inner.shape[2] - 1
    while True:
        node = path[level, 0]
        if inner.size[node] < FANOUT:
            add_child(*_nodes(inner), node, path[level, 1], key, child)
            break
        new = _new_node(inner)
        key = split_node(*_nodes(inner), node, new, path[level, 1], key, child)
        child = new
        level -= 1
        if level < 0:
            root = _new_node(inner)
            join_under(*_nodes(inner), root, node, key, child)
            inner.shape[1] = root
            inner.shape[2] += 1
            break
    # The nodes have moved under the path.
    path[0, 0] = -1


@compiled
def _nodes(inner):  # type: ignore[no-untyped-def]
    """The inner nodes, as host.indexes.inner_node has them."""
    return inner.separators, inner.children, inner.size


@compiled
def _new_node(inner):  # type: ignore[no-untyped-def]
    inner.shape[0] += 1
    return inner.shape[0] - 1
