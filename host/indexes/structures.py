"""The structures by name, and how one of them is made for a subwindow."""

from collections.abc import Callable

from host.indexes.bisort import BISortIndex
from host.indexes.index import Index
from host.indexes.loop import LoopIndex

__all__ = ["STRUCTURES", "make_index"]

#: Makes an empty structure: capacity, bits of a key, and the stream's structure before it.
Maker = Callable[[int, int, Index | None], Index]

STRUCTURES: dict[str, Maker] = {
    "bisort": lambda capacity, key_bits, before: BISortIndex(capacity),
    "loop": lambda capacity, key_bits, before: LoopIndex(capacity),
}


def make_index(name: str, capacity: int, key_bits: int, before: Index | None = None) -> Index:
    """An empty structure of that name; `before` is what the stream's last subwindow was."""
    return STRUCTURES[name](capacity, key_bits, before)
