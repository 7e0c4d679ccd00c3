"""The papers' structures of a subwindow, one to a file, all behind host.indexes.index.Index."""

from host.indexes.index import Index, Intervals
from host.indexes.structures import STRUCTURES, make_index

__all__ = ["STRUCTURES", "Index", "Intervals", "make_index"]
