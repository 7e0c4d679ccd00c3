"""Listed pairs straight into columns, compiled: for candidates that are no runs of positions."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from host.hits import Hits
from host.indexes.po.candidates import PoCandidates
from host.indexes.po.listing import PairColumn, taken
from host.rowstore import Words
from hw.spec.tuples import Side

__all__ = ["gathered"]

#: Bytes of a chunk's columns and of what lists its pairs: each chunk costs some Python, and large
#: ones leave the caches.
_CHUNK_BYTES = 1 << 23


def gathered(
    found: Sequence[Hits], columns: Sequence[tuple[Side, Words]]
) -> Iterator[list[pa.Array]]:
    """The columns of all pairs, in chunks of bounded size."""
    most = _CHUNK_BYTES // (12 + sum(words.ring.itemsize for _, words in columns))
    for hits in found:
        for arrays in _values(hits, _columns(hits, columns), most):
            if len(arrays[0]):
                yield [
                    pa.Array.from_buffers(words.type, len(values), [None, pa.py_buffer(values)])
                    for (_, words), values in zip(columns, arrays, strict=True)
                ]


def _columns(hits: Hits, columns: Sequence[tuple[Side, Words]]) -> list[PairColumn]:
    rows = hits.probe.order + hits.probe.first
    return [
        PairColumn(words, hits.base, words.at(rows) if side is hits.probe.side else None)
        for side, words in columns
    ]


def _values(hits: Hits, columns: list[PairColumn], most: int) -> Iterator[list[np.ndarray]]:
    if isinstance(hits.candidates, PoCandidates) and not hits.partly:
        yield from hits.candidates.columns(most, columns, hits.seeing)
        return
    for probe, rid in hits.matches(most):
        yield [
            taken(column.words, column.base, rid) if column.own is None else column.own[probe]
            for column in columns
        ]
