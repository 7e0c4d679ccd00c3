"""Keys sorted by their digits."""

import numpy as np
import pytest

from host.radix import radix_sorted
from hw.spec.tuples import tuple_dtype

LEAST, MOST = np.iinfo(np.int32).min, np.iinfo(np.int32).max


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5_000])
@pytest.mark.parametrize("low, high", [(LEAST, MOST), (-3, 3), (0, 0), (MOST - 5, MOST)])
def test_keys_ascend_and_equal_ones_keep_their_order(count, low, high):
    random = np.random.default_rng(count)
    keys = random.integers(low, high, count, endpoint=True).astype(np.int32)
    keys[: count // 50] = LEAST
    offsets = np.cumsum(random.integers(1, 9, count)) + (1 << 30)
    order, ascending, both = radix_sorted(keys, offsets)
    expected = np.argsort(keys, kind="stable")
    assert order.tolist() == offsets[expected].tolist()
    assert ascending.tolist() == keys[expected].tolist()
    assert (order.dtype, ascending.dtype) == (np.int64, np.int32)
    tuples = both.view(tuple_dtype(32))
    assert tuples["key"].tolist() == ascending.tolist()
    assert tuples["rid"].tolist() == order.tolist()


def test_without_offsets_they_are_the_places():
    keys = np.random.default_rng(3).integers(-9, 9, 4_000).astype(np.int32)
    for found, expected in zip(
        radix_sorted(keys), radix_sorted(keys, np.arange(len(keys))), strict=True
    ):
        assert found.tolist() == expected.tolist()
    assert [len(found) for found in radix_sorted(keys[:0])] == [0, 0, 0]
