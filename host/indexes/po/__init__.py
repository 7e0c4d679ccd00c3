"""SPO-Join: two predicates at once."""

from host.indexes.po.index import PoIndex, part_of

__all__ = ["PoIndex", "part_of"]
