"""The structures by name, and how one of them is made for a subwindow."""

from collections.abc import Callable

from host.indexes.bisort import BISortIndex
from host.indexes.hash_table import HashTable
from host.indexes.index import Index
from host.indexes.loop import LoopIndex
from host.indexes.merge_tree import BTree, ChainLink, ImTree, PimTree
from host.indexes.rap import RapTable
from host.indexes.wib import WibTree

__all__ = ["STRUCTURES", "make_index"]

#: Makes an empty structure: capacity, bits of a key, and the stream's structure before it.
Maker = Callable[[int, int, Index | None], Index]
#: BI-Sort's insertion buffer, where nobody chooses one.
_BUFFER = 1 << 16

STRUCTURES: dict[str, Maker] = {
    "bisort": lambda capacity, key_bits, before: BISortIndex(capacity, _BUFFER),
    "loop": lambda capacity, key_bits, before: LoopIndex(capacity),
    "rap": RapTable,
    "btree": lambda capacity, key_bits, before: BTree(capacity),
    "hash": lambda capacity, key_bits, before: HashTable(capacity),
    "chain": lambda capacity, key_bits, before: ChainLink(capacity),
    "im": lambda capacity, key_bits, before: ImTree(capacity),
    "pim": lambda capacity, key_bits, before: PimTree(capacity),
    "wib": lambda capacity, key_bits, before: WibTree(capacity),
}


def make_index(
    name: str, capacity: int, key_bits: int, before: Index | None = None, buffer: int | None = None
) -> Index:
    """An empty structure of that name; `before` is what the stream's last subwindow was.

    `buffer` is the length of BI-Sort's insertion buffer.
    """
    if name == "bisort" and buffer is not None:
        return BISortIndex(capacity, buffer)
    return STRUCTURES[name](capacity, key_bits, before)
