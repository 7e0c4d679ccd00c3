"""Records expanded straight into columns of pairs, compiled, by two threads.

Matches of a probe lie side by side in the sorted array: the stored side's column is a gather
along runs of rids, the probe's own column repeats its value. No pair of row numbers ever exists.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from host.arrangement import Arrangement
from host.candidates import RunCandidates
from host.hits import Hits
from host.listed_pairs import FEW, ListedPairs
from host.pages import Arena
from host.records import plain
from host.rowstore import Words
from host.run_columns import (
    SLACK,
    count_candidates,
    count_offsets,
    write_copy,
    write_copy_seen,
    write_gather,
    write_gather_seen,
    write_repeat,
    write_taken,
)
from hw.spec.tuples import Side
from hw.spec.windows import Sight

__all__ = ["Expansion", "expand", "expansions_of"]

#: Bytes of the columns of a chunk, and of what is written behind them.
_CHUNK_BYTES = 1 << 23
#: Below this many pairs a second thread costs more than it saves.
_TOGETHER = 1 << 17


@dataclass(frozen=True)
class Expansion:
    """The pairs of some hits in one sequence; `offsets` counts those before each record.

    records   uint32 (start, end), those of a probe side by side, `runs` of them
    sight     uint32 (first, rows) of each probe; it is asked only where `partly`
    main      positions of the first sorted array, see RunCandidates
    arranged  columns of the stored side by position, where there are any
    """

    hits: Hits
    records: np.ndarray
    runs: int
    rids: np.ndarray
    sight: tuple[np.ndarray, np.ndarray]
    partly: bool
    offsets: np.ndarray
    main: int
    arranged: dict[str, np.ndarray] = field(default_factory=dict)

    @staticmethod
    def of(hits: Hits) -> "Expansion | ListedPairs | None":
        """Lists where there is little to expand; None where the candidates are no runs, or places
        do not follow arrivals.
        """
        if not isinstance(hits.candidates, RunCandidates):
            return None
        partly, sight = hits.partly, _NOTHING
        if partly:
            if hits.sight is None:
                return None
            sight = _of_each(hits.sight)
        rids = np.ascontiguousarray(hits.candidates.rids)
        records = plain(hits.candidates.records, len(rids))
        words = _words_of(records)
        runs = records.shape[1]
        candidates = count_candidates(words)
        if candidates <= FEW * len(words):
            return ListedPairs.of(hits, words, runs, rids, sight, partly, candidates)
        offsets = count_offsets(words, runs, rids, sight[0], sight[1], partly)
        main = len(rids) if hits.candidates.main is None else hits.candidates.main
        return Expansion(hits, words, runs, rids, sight, partly, offsets, main)

    @cached_property
    def pairs(self) -> int:
        """How many there are."""
        return int(self.offsets[-1])

    def write(
        self, side: Side, words: Words, own: np.ndarray, begin: int, size: int, out: np.ndarray
    ) -> None:
        """The column `words` of `side` for `size` pairs from `begin` on, and up to SLACK more.

        `own` is that column of the probes, where `side` is theirs.
        """
        arranged = self.arranged.get(words.name)
        seen = (self.offsets, self.records, self.runs, self.rids, *self.sight)
        if side is self.hits.probe.side:
            write_repeat(self.offsets, self.runs, own, begin, size, out)
        elif arranged is not None and self.partly:
            write_copy_seen(*seen, arranged, begin, size, out)
        elif arranged is not None:
            write_copy(self.offsets, self.records, arranged, begin, size, out)
        elif self.partly:
            write_gather_seen(*seen, words.ring, words.place(self.hits.base), begin, size, out)
        else:
            shift = words.place(self.hits.base)
            write_gather(
                self.offsets, self.records, self.rids, words.ring, shift, begin, size, out
            )

    def arrange(self, columns: Sequence[tuple[Side, Words]]) -> None:
        """Have columns of the stored side in the order of positions, where it pays at once.

        Runs are then copied as they are. It pays from as many pairs on as there are tuples.
        """
        pays = not self.partly and self.pairs >= len(self.rids)
        for side, words in columns:
            if side is self.hits.probe.side:
                continue
            kept: dict[str, Arrangement] = self.hits.kept
            if words.name not in kept and pays:
                kept[words.name] = Arrangement(words.ring.dtype)
            if words.name in kept:
                values = (
                    kept[words.name].follow(self.rids, self.main, words, self.hits.base)
                    if pays
                    else kept[words.name].values(self.rids, self.main)
                )
                if values is not None:
                    self.arranged[words.name] = values


#: The pairs of some hits, either way.
Expanded = Expansion | ListedPairs

_NOTHING = (np.zeros(1, np.uint32), np.zeros(1, np.uint32))


def _words_of(records: np.ndarray) -> np.ndarray:
    """uint32 (start, end) of every record, one after the other."""
    starts = records["start"]
    if not records.size or starts.strides[0] != records.shape[1] * starts.strides[1]:
        return np.ascontiguousarray(records).view(np.uint32).reshape(-1, 2)
    # Evenly spaced, as where runs of empty tiers were left out: as they lie.
    shape, strides = (records.size, 2), (starts.strides[1], starts.itemsize)
    return np.lib.stride_tricks.as_strided(starts, shape, strides, writeable=False)


def _of_each(sight: Sight) -> tuple[np.ndarray, np.ndarray]:
    """First rid and rows, modulo 2**32, of every probe."""
    first = sight.first - np.uint32(sight.base % (1 << 32))
    rows = sight.rows
    return first, np.full(len(first), rows, np.uint32) if isinstance(rows, int) else rows


def expansions_of(
    found: Sequence[Hits], columns: Sequence[tuple[Side, Words]], threads: ThreadPoolExecutor
) -> list[Expanded] | None:
    """The pairs of all hits; None where Expansion has none for one of them.

    Columns of the stored side are arranged where that pays.
    """
    made: list[Expanded | None] = [None] * len(found)
    numbers = iter(range(len(found)))

    def make() -> None:
        for number in numbers:  # what the other thread has not taken
            expansion = Expansion.of(found[number])
            if expansion is not None:
                expansion.arrange(columns)
            made[number] = expansion

    if sum(len(hits.probe) for hits in found) < _TOGETHER:
        make()
    else:
        other = threads.submit(make)
        make()
        other.result()
    expansions = [expansion for expansion in made if expansion is not None]
    return expansions if len(expansions) == len(found) else None


class _Stretch(NamedTuple):
    """Pairs of one expansion from `begin` on, and where they go in a chunk."""

    expansion: Expanded
    begin: int
    size: int
    place: int


def expand(
    expansions: Sequence[Expanded],
    columns: Sequence[tuple[Side, Words]],
    threads: ThreadPoolExecutor,
    arena: Arena,
) -> Iterator[list[pa.Array]]:
    """The columns of all pairs, in chunks of bounded size that lie in the arena."""
    own: dict[tuple[int, Side], np.ndarray] = {}
    for number, (side, words) in enumerate(columns):
        for expansion in expansions:
            probe = expansion.hits.probe
            if probe.side is side and (number, side) not in own:
                own[number, side] = values = np.empty(len(probe.order), words.ring.dtype)
                write_taken(words.ring, words.place(probe.first), probe.order, values)

    def written(chunk: list[_Stretch]) -> list[pa.Array]:
        pairs = chunk[-1].place + chunk[-1].size
        arrays = []
        for number, (side, words) in enumerate(columns):
            width = words.ring.itemsize
            memory = arena.lend((pairs + SLACK) * width)
            whole = memory.view(words.ring.dtype)
            for one in chunk:  # each writes over what the one before wrote too much
                mine = own.get((number, side), whole)
                one.expansion.write(side, words, mine, one.begin, one.size, whole[one.place :])
            buffers = [None, pa.py_buffer(memory).slice(0, pairs * width)]
            arrays.append(pa.Array.from_buffers(words.type, pairs, buffers))
        return arrays

    # Every second chunk is written by the other thread.
    chunks = _chunks(expansions, _chunk_pairs(expansions, columns))
    for chunk in chunks:
        beside = next(chunks, None)
        other = None if beside is None else threads.submit(written, beside)
        yield written(chunk)
        if other is not None:
            yield other.result()
            del other  # which would hold the chunk while the next is written


def _chunk_pairs(
    expansions: Sequence[Expanded], columns: Sequence[tuple[Side, Words]]
) -> int:
    """Pairs of a chunk: as many chunks as two threads can share, none of them too large."""
    pairs = sum(expansion.pairs for expansion in expansions)
    most = max(1, _CHUNK_BYTES // sum(words.ring.itemsize for _, words in columns) - SLACK)
    if pairs < _TOGETHER:
        return max(1, min(most, pairs))
    chunks = 2 * -(-pairs // (2 * most))
    return -(-pairs // chunks)


def _chunks(expansions: Sequence[Expanded], most_pairs: int) -> Iterator[list[_Stretch]]:
    chunk: list[_Stretch] = []
    used = 0
    for expansion in expansions:
        begin, pairs = 0, expansion.pairs
        while begin < pairs:
            size = min(pairs - begin, most_pairs - used)
            chunk.append(_Stretch(expansion, begin, size, used))
            begin += size
            used += size
            if used == most_pairs:
                yield chunk
                chunk, used = [], 0
    if chunk:
        yield chunk
