"""PanJoin step 5, collecting: counts and pairs out of a batch's hits, in the asked order.

`outer` and `strict` are SplitJoin's orders (section 5.1): outer, all results of a tuple come
before those of the tuples that arrive after it; strict adds inner order, the results of one
tuple ascend from the oldest to the newest partner.
"""

from collections.abc import Callable, Iterable, Iterator

import numpy as np

from host.aggregates import Measure
from host.hits import Found, Hits
from host.preprocess import Prepared
from host.totals import Totals
from hw.spec.tuples import Side

__all__ = ["CHUNK_PAIRS", "Collector", "RowPairs"]

#: Pairs that are in memory at once, however many a batch has.
CHUNK_PAIRS = 1 << 18

#: Row numbers (left, right), pair by pair.
RowPairs = tuple[np.ndarray, np.ndarray]
Check = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Collector:
    """Turns hits into matches; `check` is the residual: row pairs -> which of them hold."""

    def __init__(self, order: str = "none", check: Check | None = None) -> None:
        self.order = order
        self.check = check

    @property
    def is_plain(self) -> bool:
        """Whether pairs come as they are found: in no order, and every one of them."""
        return self.order == "none" and self.check is None

    def counts(self, prepared: Prepared, found: Found) -> np.ndarray:
        """Pairs that each tuple completed, by its place in the batch's order of arrival."""
        for hits in found.hits:
            found.count(
                hits.probe.side,
                hits.counts(CHUNK_PAIRS) if self.check is None else self._checked_counts(hits),
            )
        written = sum(
            len(batch.order)
            for batch, counted in zip(prepared.sides, found.counted, strict=True)
            if counted is not None
        )
        # What is written whole need not be cleared.
        room = np.empty if written == len(prepared) else np.zeros
        counts: np.ndarray = room(len(prepared), np.int64)
        for batch, counted in zip(prepared.sides, found.counted, strict=True):
            if counted is not None:
                batch.spread_sorted(counted, counts)
        return counts

    def totals(self, found: Found) -> None:
        """Add to `found.totals` what the engines left: pairs that had to be looked at."""
        for hits in found.hits:
            totals = found.totals[hits.probe.side]
            if not totals.measures:
                continue
            measures = [one for one in totals.measures if not self._summed(hits, one, totals)]
            for probe, row in hits.pairs(CHUNK_PAIRS) if measures else ():
                keep: np.ndarray | slice = slice(None)
                if self.check is not None:
                    keep = self.check(*_row_pairs(hits, probe, row))
                for measure in measures:
                    values = hits.carried[measure.name][row[keep] - hits.base]
                    totals.add_pairs(measure, probe[keep], values)

    def _summed(self, hits: Hits, measure: Measure, totals: Totals) -> bool:
        """Whether a measure could be added up without a look at single pairs."""
        values = hits.carried[measure.name]
        if self.check is not None or values.dtype.kind != "i" or not measure.part.is_sum:
            return False
        sums = hits.sums(values)
        if sums is not None:
            totals.add(measure, sums)
        return sums is not None

    def _checked_counts(self, hits: Hits) -> np.ndarray:
        assert self.check is not None
        counts = np.zeros(len(hits.probe.order), np.int64)
        for probe, row in hits.pairs(CHUNK_PAIRS):
            kept = probe[self.check(*_row_pairs(hits, probe, row))]
            counts += np.bincount(kept, minlength=len(counts))
        return counts

    def pairs(self, prepared: Prepared, found: list[Hits]) -> Iterator[RowPairs]:
        """All pairs that the batch completed, in chunks of at most CHUNK_PAIRS."""
        if self.order == "none":
            unordered = (
                _row_pairs(hits, *chunk)
                for hits in found
                for chunk in hits.pairs(CHUNK_PAIRS)
            )
            return _gathered(self._checked(pairs) for pairs in unordered)
        return self._ordered(prepared, found)

    def _checked(self, pairs: RowPairs) -> RowPairs:
        if self.check is None or not len(pairs[0]):
            return pairs
        keep = self.check(*pairs)
        return pairs[0][keep], pairs[1][keep]

    def _ordered(self, prepared: Prepared, found: list[Hits]) -> Iterator[RowPairs]:
        """Walk over the order of arrival in stretches that have a chunk of pairs at most."""
        weights = np.zeros(len(prepared), np.int64)
        for hits in found:
            weights[hits.probe.positions[hits.probe.order]] += hits.sizes()
        ends = np.cumsum(weights)
        begin = 0
        while begin < len(ends):
            before = int(ends[begin - 1]) if begin else 0
            end = int(np.searchsorted(ends, before + CHUNK_PAIRS, "right"))
            if end > begin:
                yield from self._stretch(found, begin, end)
            else:
                end = begin + 1
                yield from self._one_tuple(found, begin)
            begin = end

    def _stretch(self, found: list[Hits], begin: int, end: int) -> Iterator[RowPairs]:
        """Pairs that the tuples in places [begin, end) completed: few enough to be sorted."""
        lefts, rights, places, partners = [], [], [], []
        for hits in found:
            positions = hits.probe.positions[hits.probe.order]
            wanted = (positions >= begin) & (positions < end)
            for probe, row in hits.pairs(CHUNK_PAIRS, wanted):
                left, right = _row_pairs(hits, probe, row)
                lefts.append(left)
                rights.append(right)
                places.append(positions[probe])
                partners.append(row)
        if not lefts:
            return
        place = np.concatenate(places)
        if self.order == "strict":
            order = np.lexsort((np.concatenate(partners), place))
        else:
            order = np.argsort(place, kind="stable")
        pairs = self._checked((np.concatenate(lefts)[order], np.concatenate(rights)[order]))
        if len(pairs[0]):
            yield pairs

    def _one_tuple(self, found: list[Hits], position: int) -> Iterator[RowPairs]:
        """One tuple with more than a chunk of pairs; hits come oldest subwindow first."""
        for hits in found:
            wanted = hits.probe.positions[hits.probe.order] == position
            chunks: Iterable[tuple[np.ndarray, np.ndarray]] = hits.pairs(CHUNK_PAIRS, wanted)
            if self.order == "strict":
                chunks = _sorted_by_row(list(chunks))
            for probe, row in chunks:
                pairs = self._checked(_row_pairs(hits, probe, row))
                if len(pairs[0]):
                    yield pairs


def _row_pairs(hits: Hits, probe: np.ndarray, row: np.ndarray) -> RowPairs:
    own = hits.probe.order[probe] + hits.probe.first
    return (own, row) if hits.probe.side is Side.LEFT else (row, own)


def _sorted_by_row(
    chunks: list[tuple[np.ndarray, np.ndarray]],
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """One probe's partners in one subwindow, from the oldest to the newest."""
    if not chunks:
        return
    probe = np.concatenate([chunk[0] for chunk in chunks])
    row = np.sort(np.concatenate([chunk[1] for chunk in chunks]))
    for begin in range(0, len(row), CHUNK_PAIRS):
        yield probe[begin : begin + CHUNK_PAIRS], row[begin : begin + CHUNK_PAIRS]


def _gathered(pieces: Iterable[RowPairs]) -> Iterator[RowPairs]:
    """The same pairs in fewer, larger chunks."""
    held: list[RowPairs] = []
    size = 0
    for piece in pieces:
        if size + len(piece[0]) > CHUNK_PAIRS:
            yield _joined(held)
            held, size = [], 0
        if len(piece[0]):
            held.append(piece)
            size += len(piece[0])
    if held:
        yield _joined(held)


def _joined(pieces: list[RowPairs]) -> RowPairs:
    if len(pieces) == 1:
        return pieces[0]
    return np.concatenate([left for left, _ in pieces]), np.concatenate([r for _, r in pieces])
