"""Memory of results that is lent again."""

import numpy as np
import pyarrow as pa

from host.pages import Arena


def test_memory_is_lent_again_only_when_nobody_looks_at_it():
    arena = Arena()
    first = arena.lend(4_000)
    place = first.ctypes.data
    held = pa.Array.from_buffers(pa.int32(), 1_000, [None, pa.py_buffer(first)])
    first.view(np.int32)[:] = 7
    del first
    other = arena.lend(4_000)
    assert other.ctypes.data != place
    other[:] = 0
    values = held.slice(10).to_numpy()
    del held
    assert values.tolist() == [7] * 990
    del values
    assert arena.lend(3_000).ctypes.data == place
    assert len(arena.lend(5_000)) == 5_000


def test_a_block_that_is_far_too_large_is_not_kept_for_small_results():
    arena = Arena()
    arena.lend(1_000_000)
    assert arena.lend(10).base.nbytes == 10
