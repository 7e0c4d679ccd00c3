"""Columns by position beside what the ring of a row store has."""

import numpy as np
import pyarrow as pa
import pytest

from host import arrangement
from host.arrangement import Arrangement
from host.rowstore import Words
from host.run_columns import SLACK

_BASE = 40
_RING = 2_000
WIDTHS = ["u1", "u2", "u4", "u8"]


class Subwindow:
    """Two sorted arrays as an engine with an insertion tier keeps them."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.main, self.tier = np.empty((2, 0), int), np.empty((2, 0), int)
        self.rows = 0

    def insert(self, count, flush):
        """Into the tier, after it was merged into the main array with `flush`."""
        rids = np.arange(self.rows, self.rows + count)
        rids = rids[self.random.random(count) < 0.9]  # some can match nothing and are not stored
        self.rows += count
        if flush:
            self.main, self.tier = _sorted(self.main, self.tier), self.tier[:, :0]
        self.tier = _sorted(self.tier, np.stack([self.random.integers(0, 30, len(rids)), rids]))

    @property
    def rids(self):
        return np.concatenate([self.main[1], self.tier[1]]).astype(np.uint32)


def _sorted(one, other):
    both = np.concatenate([one, other], axis=1)
    return both[:, np.lexsort((both[1], both[0]))]


@pytest.mark.parametrize("kind", WIDTHS)
@pytest.mark.parametrize("flushed", [0, 2, 3])
def test_a_column_follows_its_subwindow(monkeypatch, kind, flushed):
    """Flushed before every so many-th insertion; the last one completes the subwindow."""
    ring = np.random.default_rng(1).integers(0, np.iinfo(kind).max, _RING, kind)
    words = Words("x", ring, pa.int32(), 1_990)  # the ring turns over within the subwindow
    window, kept, taken = Subwindow(flushed), Arrangement(ring.dtype), []
    write = arrangement.write_taken
    monkeypatch.setattr(
        arrangement, "write_taken",
        lambda ring, shift, rids, out: taken.append(len(rids)) or write(ring, shift, rids, out),
    )  # fmt: skip
    base = 1_990 + _BASE
    for step in range(1, 13):
        last = step == 12
        window.insert(97, flush=bool(flushed) and step % flushed == 0)
        if last:
            window.main, window.tier = _sorted(window.main, window.tier), window.tier[:, :0]
        rids, main = window.rids, window.main.shape[1]
        assert kept.values(rids, main) is None
        values = kept.follow(rids, main, words, base)
        assert values[: len(rids)].tolist() == ring[(base + rids) % _RING].tolist()
        assert len(values) >= len(rids) + SLACK
        assert kept.values(rids, main) is values
        assert kept.follow(rids, main, words, base) is values
        # Values are taken of what is in the tier, and all only when the tier went a way unseen.
        assert taken[-1] == (len(rids) if last else len(rids) - main)
    assert len(taken) == 12
    assert len(values) == len(rids) + SLACK


def test_what_was_not_followed_is_taken_anew():
    ring = np.arange(_RING, dtype=np.uint32)
    words, window, kept = Words("x", ring, pa.int32(), 0), Subwindow(5), Arrangement(ring.dtype)
    for step in range(9):
        window.insert(60, flush=step % 2 == 1)
        rids, main = window.rids, window.main.shape[1]
        if step in (0, 3, 4, 8):
            values = kept.follow(rids, main, words, 3)
            assert values[: len(rids)].tolist() == (rids + 3).tolist()
