"""PanJoin step 1, collecting: tuples of both streams in one order of arrival."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from hw.spec.tuples import Side

__all__ = ["Arrivals", "interleave", "merge_by_value"]


@dataclass(frozen=True)
class Arrivals:
    """A stretch of the one order of arrival.

    rows[side]       the tuples of that stream, in order of arrival
    numbers[side]    the number of each in its input (not its arrival, where these differ)
    positions[side]  ascending place of each in this stretch, 0 to len - 1 over both streams
    """

    rows: tuple[pa.RecordBatch, pa.RecordBatch]
    numbers: tuple[np.ndarray, np.ndarray]
    positions: tuple[np.ndarray, np.ndarray]

    def __len__(self) -> int:
        return self.rows[0].num_rows + self.rows[1].num_rows

    @cached_property
    def alternates(self) -> bool:
        """Whether tuple i of a stream is at 2 * i, or 2 * i + 1 for right; False may not say no."""
        left, right = self.positions
        # Told by whose arrays these are, which costs nothing.
        known = _alternating(len(left), len(right))
        return len(left) == len(right) and left is known[0] and right is known[1]

    def __add__(self, later: "Arrivals") -> "Arrivals":
        moved = [positions + len(self) for positions in later.positions]
        return Arrivals(
            _pairwise(lambda side: _concat(self.rows[side], later.rows[side])),
            _pairwise(lambda side: np.concatenate([self.numbers[side], later.numbers[side]])),
            _pairwise(lambda side: np.concatenate([self.positions[side], moved[side]])),
        )

    def cut(self, most_rows: int) -> Iterator["Arrivals"]:
        """Pieces in order with at most `most_rows` tuples of each stream."""
        if 0 < max(batch.num_rows for batch in self.rows) <= most_rows:
            yield self
            return
        begin = [0, 0]
        while begin[0] < len(self.positions[0]) or begin[1] < len(self.positions[1]):
            # The piece ends before the first tuple that would be one too many.
            limits = [
                int(self.positions[side][begin[side] + most_rows])
                if begin[side] + most_rows < len(self.positions[side])
                else len(self)
                for side in Side
            ]
            end = [int(np.searchsorted(self.positions[side], min(limits))) for side in Side]
            yield self._slice(begin, end)
            begin = end

    def _slice(self, begin: list[int], end: list[int]) -> "Arrivals":
        before = begin[0] + begin[1]
        return Arrivals(
            _pairwise(lambda side: self.rows[side].slice(begin[side], end[side] - begin[side])),
            _pairwise(lambda side: self.numbers[side][begin[side] : end[side]]),
            _pairwise(lambda side: self.positions[side][begin[side] : end[side]] - before),
        )


def _pairwise(make):  # type: ignore[no-untyped-def]
    return make(Side.LEFT), make(Side.RIGHT)


def _concat(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    if not first.num_rows or not second.num_rows:
        return first if first.num_rows else second
    return pa.concat_batches([first, second])


def interleave(
    rows: tuple[pa.RecordBatch, pa.RecordBatch], numbers: tuple[np.ndarray, np.ndarray]
) -> Arrivals:
    """Left row i arrives just before right row i; the longer stream's rest comes after."""
    return Arrivals(rows, numbers, _alternating(rows[0].num_rows, rows[1].num_rows))


@lru_cache(maxsize=4)
def _alternating(left: int, right: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of so many rows; pushes tend to be of one size."""
    both = min(left, right)
    positions = [
        np.concatenate([2 * np.arange(both) + side, np.arange(2 * both, both + count)])
        for side, count in zip(Side, (left, right), strict=True)
    ]
    for array in positions:
        array.flags.writeable = False
    return positions[0], positions[1]


def merge_by_value(
    rows: tuple[pa.RecordBatch, pa.RecordBatch],
    numbers: tuple[np.ndarray, np.ndarray],
    values: tuple[np.ndarray, np.ndarray],
) -> Arrivals:
    """In order of ascending `values`; of equal ones, left comes before right."""
    left, right = values
    positions = (
        np.arange(len(left)) + np.searchsorted(right, left, "left"),
        np.arange(len(right)) + np.searchsorted(left, right, "right"),
    )
    return Arrivals(rows, numbers, positions)
