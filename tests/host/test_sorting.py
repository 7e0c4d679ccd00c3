"""Batches by key: numpy's way and the compiled one are the same."""

import numpy as np
import pytest

from host.sorting import sorted_by_key
from hw.spec.tuples import tuple_dtype

LIMITS = {4: (-(1 << 31), 1 << 31), 8: (-(1 << 63), 1 << 62)}


def batches(random, size, dtype):
    """Uniform keys, few of them, all alike, and both ends of the type."""
    limits = LIMITS[np.dtype(dtype).itemsize]
    yield random.integers(*limits, size).astype(dtype)
    yield random.integers(-3, 4, size).astype(dtype)
    yield np.full(size, 7, dtype)
    yield random.choice(np.array([limits[0], -1, 0, limits[1] - 1], dtype), size)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("size", [0, 1, 700, 10_000])
def test_tuples_ascend_by_key_and_then_by_arrival(size, dtype):
    random, together = np.random.default_rng(5), 0
    for keys in batches(random, size, dtype):
        for matchable in (np.ones(size, bool), random.random(size) < 0.9):
            found = sorted_by_key(keys, matchable)
            offsets = np.flatnonzero(matchable)
            order = offsets[np.argsort(keys[offsets], kind="stable")]
            assert found.order.tolist() == order.tolist()
            assert found.keys.tolist() == keys[order].tolist()
            assert found.keys.dtype == keys.dtype
            if found.tuples is not None:
                together += 1
                tuples = found.tuples.view(tuple_dtype(32))
                assert tuples["key"].tolist() == found.keys.tolist()
                assert tuples["rid"].tolist() == order.tolist()
    # Narrow keys and offsets fit one word.
    assert together == (8 if dtype is np.int32 else 0)
