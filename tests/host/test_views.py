"""What probes see of a row window: by numbers modulo 2**32 and by places, the same rows."""

import numpy as np
import pyarrow as pa
import pytest

from host.chain import Subwindow
from host.preprocess import SideBatch
from host.views import _PlaceView, places_seen, view_of
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow

COUNT = 60
NO_ROWS = pa.record_batch([pa.array([], pa.int32())], ["x"])


def batch_of(side, first, before, random):
    positions = np.arange(len(before))
    return SideBatch(
        side, NO_ROWS, first, positions, positions, before, {}, None,
        random.permutation(len(before)), np.sort(random.integers(0, 9, len(before))),
    )


def seen(sight, rids):
    """A mask of shape (probes, rids)."""
    rows = np.asarray(sight.rows, np.int64).reshape(-1, 1)
    distance = rids[None, :] + sight.base - sight.first.astype(np.int64)[:, None]
    return distance % (1 << 32) < rows


@pytest.mark.parametrize("arrived", [0, 40, 5_000, (1 << 32) - 90, (1 << 40) + 7])
@pytest.mark.parametrize("rows", [1, 70, 1_000])
def test_row_numbers_modulo_a_word_and_places_agree(arrived, rows):
    random = np.random.default_rng(3)
    window = RowWindow(rows, rows)
    before = arrived + np.sort(random.integers(0, COUNT, COUNT))
    probe = batch_of(Side.LEFT, 0, before, random)
    stored = batch_of(Side.RIGHT, arrived, np.zeros(COUNT, np.int64), random)
    by_rows, by_places = view_of(window, probe), _PlaceView(probe, *places_seen(window, probe))
    assert type(by_rows).__name__ == "_RowView"
    assert by_rows.some == by_places.some and by_rows.all_see == by_places.all_see
    held = np.arange(min(arrived, 2 * rows))
    old = Subwindow(0, 0, arrived - len(held), len(held))
    assert (seen(by_rows.of(old), held) == seen(by_places.of(old), held)).all()
    own = np.arange(COUNT)
    expected = seen(by_places.of_batch(stored), own)
    assert (seen(by_rows.of_batch(stored), own) == expected).all() and expected.any()


def test_windows_beyond_a_word_are_seen_by_places():
    random = np.random.default_rng(4)
    window = RowWindow(1 << 31, 1 << 31)
    probe = batch_of(Side.LEFT, 0, np.arange(COUNT), random)
    assert isinstance(view_of(window, probe), _PlaceView)
