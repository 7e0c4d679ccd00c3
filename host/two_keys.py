"""Tuples with a second key, for conditions whose two predicates are searched at once."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from host.sorting import sorted_by_key
from hw.spec.tuples import key_dtype

__all__ = ["Rectangles", "ascending", "keyed_twice", "two_key_dtype"]


def two_key_dtype(key_bits: int, second_bits: int) -> np.dtype:
    """A tuple as tuple_dtype has it, its second key, and in row n, which row is n-th by that."""
    return np.dtype([
        ("key", key_dtype(key_bits)), ("rid", "<u4"),
        ("second", key_dtype(second_bits)), ("nth", "<u4"),
    ])


def keyed_twice(
    keys: np.ndarray, rids: np.ndarray, seconds: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """Tuples of those keys, which ascend; `order` is ascending(seconds)."""
    bits = (8 * keys.dtype.itemsize, 8 * seconds.dtype.itemsize)
    result = np.empty(len(keys), two_key_dtype(*bits))
    result["key"], result["rid"], result["second"], result["nth"] = keys, rids, seconds, order
    return result


def ascending(keys: np.ndarray) -> np.ndarray:
    """The places of the keys, smallest first."""
    return sorted_by_key(keys).order


@dataclass(frozen=True)
class Rectangles:
    """Pairs of closed intervals, none of them empty; those of one probe do not overlap.

    probe   which probe wants it
    first   bounds lo and hi of first keys, in about ascending order
    second  bounds lo and hi of second keys
    probes  how many probes there are
    single  whether each probe has one at most, in the order of the probes
    """

    probe: np.ndarray
    first: tuple[np.ndarray, np.ndarray]
    second: tuple[np.ndarray, np.ndarray]
    probes: int
    single: bool = False

    @staticmethod
    def of(first: np.ndarray, second: np.ndarray) -> "Rectangles":
        """Of intervals of shape (probes, bands) each."""
        probes, pieces = len(first), []
        for a in first.T:
            for b in second.T:
                pieces.append((a["lo"], a["hi"], b["lo"], b["hi"]))
        alo, ahi, blo, bhi = (np.concatenate(column) for column in zip(*pieces, strict=True))
        places = np.arange(probes)
        probe = places if len(pieces) == 1 else np.tile(places, len(pieces))
        every = Rectangles(probe, (alo, ahi), (blo, bhi), probes, len(pieces) == 1)
        filled = (alo <= ahi) & (blo <= bhi)
        return every if filled.all() else every._chosen(filled)

    def __len__(self) -> int:
        return len(self.probe)

    @cached_property
    def order(self) -> np.ndarray:
        """The rectangles in about ascending order of second bounds."""
        lo, hi = self.second
        if not len(lo) or (hi == hi[0]).all():
            return ascending(lo)
        if (lo == lo[0]).all():
            return ascending(hi)
        # Between the two: prefixes, suffixes and bands of one key come to lie together.
        return ascending((lo >> 1) + (hi >> 1))

    def only(self, wanted: np.ndarray | None) -> "Rectangles":
        """Those of the probes in that mask; None is all."""
        return self if wanted is None else self._chosen(wanted[self.probe])

    def split(self, pieces: int) -> list["Rectangles"]:
        """The same in so many pieces of about one size."""
        edges = [len(self) * n // pieces for n in range(pieces + 1)]
        return [self._chosen(slice(begin, end)) for begin, end in pairwise(edges)]

    def every(self, step: int) -> "Rectangles":
        """The first, the one `step` further on, and so on."""
        return self._chosen(np.arange(0, len(self), step))

    def _chosen(self, keep: np.ndarray | slice) -> "Rectangles":
        (alo, ahi), (blo, bhi) = self.first, self.second
        return Rectangles(
            self.probe[keep], (alo[keep], ahi[keep]), (blo[keep], bhi[keep]),
            self.probes, self.single,
        )

    def by_probe(self, values: np.ndarray) -> np.ndarray:
        """Sums of int64 `values`, one a rectangle, for each probe."""
        if self.single and len(self) == self.probes:
            return values
        totals = np.zeros(self.probes, np.int64)
        np.add.at(totals, self.probe, values)
        return totals
