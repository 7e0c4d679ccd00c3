"""Listed pairs straight into columns, compiled: for candidates that are no runs of positions."""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numba import njit

from host.hits import Hits
from host.rowstore import Words
from hw.spec.tuples import Side

__all__ = ["gathered"]

#: Bytes of a chunk's columns and of what lists its pairs: they should stay in a near cache.
_CHUNK_BYTES = 1 << 21


def gathered(
    found: Sequence[Hits], columns: Sequence[tuple[Side, Words]]
) -> Iterator[list[pa.Array]]:
    """The columns of all pairs, in chunks of bounded size."""
    width = 12 + sum(words.ring.itemsize for _, words in columns)
    for hits in found:
        rows = hits.probe.order + hits.probe.first
        own = [words.at(rows) if side is hits.probe.side else None for side, words in columns]
        for probe, rid in hits.seen(_CHUNK_BYTES // width):
            if len(probe):
                yield [
                    _column(words, _repeated(values, probe))
                    if values is not None
                    else _column(words, _taken(words, hits.base, rid))
                    for (_, words), values in zip(columns, own, strict=True)
                ]


def _column(words: Words, values: np.ndarray) -> pa.Array:
    return pa.Array.from_buffers(words.type, len(values), [None, pa.py_buffer(values)])


def _repeated(values: np.ndarray, probe: np.ndarray) -> np.ndarray:
    out = np.empty(len(probe), values.dtype)
    _repeat(values, probe, out)
    return out


def _taken(words: Words, base: int, rid: np.ndarray) -> np.ndarray:
    out = np.empty(len(rid), words.ring.dtype)
    _take(words.ring, words.place(base), rid, out)
    return out


@njit(cache=True, nogil=True)
def _repeat(values, probe, out):  # type: ignore[no-untyped-def]
    for n in range(len(probe)):
        out[n] = values[np.uint64(probe[n])]


@njit(cache=True, nogil=True)
def _take(ring, shift, rid, out):  # type: ignore[no-untyped-def]
    """Rid r is at shift + r in the ring, or one turn further back."""
    size = len(ring)
    for n in range(len(rid)):
        row = np.int64(rid[n]) + shift
        out[n] = ring[np.uint64(row - size if row >= size else row)]
