"""Positions that rectangles want, as kernels list them, and what is made of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from host.rowstore import Words
from host.run_columns import write_picked, write_taken

__all__ = ["Listing", "PairColumn", "pairs_of", "picked", "repeated", "taken"]


class Listing(NamedTuple):
    """Some rectangles' positions, one rectangle after the other.

    first      place of the first rectangle among those that were asked for
    ends       where the positions end of that one, of the next, and so on
    positions  uint32, in the first order
    """

    first: int
    ends: np.ndarray
    positions: np.ndarray


@dataclass(frozen=True)
class PairColumn:
    """A column of pairs: the probes' own, with its value for each probe, or one of stored rows.

    base  number in the stream of the stored row with rid 0
    """

    words: Words
    base: int
    own: np.ndarray | None = None


def repeated(values: np.ndarray, listing: Listing) -> np.ndarray:
    """The value of its rectangle (`values` has one for each) beside every position."""
    out = _column(len(listing.positions), values.dtype)
    _repeat(values, listing.first, listing.ends, out)
    return out


def picked(values: np.ndarray, listing: Listing) -> np.ndarray:
    """The value of every position."""
    out = _column(len(listing.positions), values.dtype)
    write_picked(values, listing.positions, out)
    return out


def _column(size: int, dtype: np.dtype) -> np.ndarray:
    """Room for values, of Arrow's memory: it is kept for the next, and has its pages already."""
    return np.frombuffer(pa.allocate_buffer(size * dtype.itemsize), dtype)


def taken(words: Words, base: int, rids: np.ndarray) -> np.ndarray:
    """A column's values by rid."""
    out = np.empty(len(rids), words.ring.dtype)
    write_taken(words.ring, words.place(base), rids, out)
    return out


def pairs_of(
    listings: Iterable[Listing], most: int, probe: np.ndarray, rids: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(probe, rid) of every position, in arrays of at most `most`; `probe` of each rectangle."""
    for listing in listings:
        which, found = repeated(probe, listing), picked(rids, listing)
        for begin in range(0, len(which), most):
            yield which[begin : begin + most], found[begin : begin + most]


@njit(cache=True, nogil=True)
def _repeat(values, first, ends, out):  # type: ignore[no-untyped-def]
    begin = np.uint64(0)
    for place in range(len(ends)):
        value, end = values[first + place], np.uint64(ends[place])
        for n in range(begin, end):
            out[n] = value
        begin = end
