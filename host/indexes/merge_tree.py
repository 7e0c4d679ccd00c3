"""B+-tree, chained index, IM-Tree and PIM-Tree: what the papers make of T_S and T_I."""

from typing import ClassVar

import numpy as np

from host.indexes import two_part
from host.indexes.forest import LEAF
from host.indexes.index import Intervals
from host.indexes.runs import list_runs
from host.indexes.two_part import NODE
from host.records import Runs

__all__ = ["BTree", "ChainLink", "ImTree", "PimTree"]

_ALL_RIDS = 1 << 32


class _TwoPartIndex:
    """A T_S and a T_I that holds `mutable` tuples before they are merged into T_S.

    See host.indexes.index.Index. Tuples of a subwindow expire with it, so that a merge drops none.
    """

    name: ClassVar[str]

    def __init__(self, capacity: int, mutable: int, trees: int = 1) -> None:
        self.capacity = capacity
        self.mutable = max(1, min(mutable, capacity))
        self._state = two_part.two_part(capacity, self.mutable, trees)
        self._static = self._planted = 0

    def __len__(self) -> int:
        return self._static + self._planted

    @property
    def rids(self) -> np.ndarray:
        return self._state.rids

    def insert(self, keys: np.ndarray, rids: np.ndarray) -> None:
        done = 0
        while done < len(keys):
            taken = min(self.mutable - self._planted, len(keys) - done)
            part = slice(done, done + taken)
            two_part.insert(self._state, self.capacity, keys[part], rids[part])
            self._planted, done = self._planted + taken, done + taken
            if self._planted == self.mutable and self.mutable < self.capacity:
                self._merge()

    def _merge(self) -> None:
        end = two_part.merge(self._state, self.capacity, 0, _ALL_RIDS)
        two_part.install(self._state, self.capacity, end)
        self._static, self._planted = len(self), 0

    def count(self, wanted: Intervals) -> np.ndarray:
        found = np.empty(len(wanted[0]), np.int64)
        two_part.count(self._state, self.capacity, *wanted, found)
        return found

    def find(self, wanted: Intervals, most: int) -> Runs | None:
        return list_runs(two_part.find, (self._state, self.capacity), wanted, most)

    def ascending(self) -> tuple[np.ndarray, np.ndarray]:
        end = two_part.merge(self._state, self.capacity, 0, _ALL_RIDS)
        merged = slice(end - len(self), end)
        keys, rids = self._state.keys[merged].copy(), self._state.rids[merged].copy()
        return keys, rids

    def archive(self) -> None:
        """Nothing changes."""

    def _check(self) -> None:
        state = self._state
        begin, end, levels, depth = state.shape[:4].tolist()
        assert end - begin == self._static
        keys = state.keys[begin:end]
        assert (keys[1:] >= keys[:-1]).all()
        below = keys
        for at, nodes in state.level[:levels].tolist():
            ends = [*range(NODE, len(below), NODE), len(below)]
            assert nodes == len(ends) and len(below)
            assert state.samples[at : at + nodes].tolist() == [below[e - 1] for e in ends]
            below = state.samples[at : at + nodes]
        self._check_trees(levels, depth)

    def _check_trees(self, levels: int, depth: int) -> None:
        state, planted = self._state, 0
        parts = state.level[depth, 1] if levels else 1
        assert parts <= len(state.trees.root) or len(state.trees.root) == 1
        for tree in range(len(state.trees.root)):
            found = self._leaf_keys(tree)
            planted += len(found)
            assert (np.diff(found.astype(object)) >= 0).all()
            assert all(two_part.tree_of(state, key) == tree for key in found)
        assert planted == self._planted <= self.mutable

    def _leaf_keys(self, tree: int) -> np.ndarray:
        """Keys of a tree along its leaves, which its root leads to."""
        state, trees = self._state, self._state.trees
        node = int(trees.root[tree])
        for _ in range(int(trees.height[tree]) if node >= 0 else 0):
            separators = trees.separators[node, : trees.fill[node] - 1]
            assert (separators[1:] >= separators[:-1]).all() and trees.fill[node] >= 2
            node = int(trees.children[node, 0])
        parts = [np.empty(0, np.int64)]
        while node >= 0:
            first = 2 * self.capacity + node * LEAF
            parts.append(state.keys[first : first + int(trees.size[node])])
            node = int(trees.right[node])
        return np.concatenate(parts)


class BTree(_TwoPartIndex):
    """One B+-tree and nothing else: the papers' baseline, and a link of a B-chain."""

    name: ClassVar[str] = "btree"

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, capacity)


class ChainLink(_TwoPartIndex):
    """A subindex of BiStream's chained index, as the PIM-Tree paper's IB-chain has it.

    Active, it is a B+-tree; when it is archived it becomes an immutable one. The chain is that of
    the subwindows (host.chain): its archive period is a subwindow's length, the least and largest
    time of a subindex are the subwindow's, and subindexes are discarded whole.
    """

    name: ClassVar[str] = "chain"

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, capacity)

    def archive(self) -> None:
        if self._planted:
            self._merge()


class ImTree(_TwoPartIndex):
    """T_I is one B+-tree, merged into T_S at `merge_ratio` of the capacity (PIM-Tree 3.2)."""

    name: ClassVar[str] = "im"

    def __init__(self, capacity: int, merge_ratio: float = 1 / 8) -> None:
        super().__init__(capacity, int(capacity * merge_ratio))


class PimTree(_TwoPartIndex):
    """T_I is a B+-tree for each node of T_S at the insertion depth (PIM-Tree 3.3).

    That depth is the deepest whose nodes are no more than `trees`.
    """

    name: ClassVar[str] = "pim"

    def __init__(self, capacity: int, merge_ratio: float = 1 / 8, trees: int = 256) -> None:
        super().__init__(capacity, int(capacity * merge_ratio), trees)
