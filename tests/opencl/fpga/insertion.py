"""Distribution, storage, mergers and indexer, by what the main arrays hold afterwards."""

import numpy as np
import pytest

from host.errors import WindowFull
from hw.spec.tuples import Side, key_limits
from tests.helpers import exactly, make_tuples
from tests.opencl.fpga.model import dealt, insert_all

SMALLEST, LARGEST = key_limits(32)
RANDOM = np.random.default_rng(5)
BATCHES = {
    "one tuple": [[7]],
    "one by one": [[3], [1], [2], [1]],
    "all equal": [[4] * 33, [4] * 70, [4]],
    "extremes": [[LARGEST, SMALLEST, 0], [SMALLEST, LARGEST, -1, LARGEST]],
    "ascending": [range(100), range(100, 230)],
    "descending": [range(230, 100, -1), range(100, 0, -1)],
    "an empty batch": [[5, 6], [], [1]],
    "random": [RANDOM.integers(-50, 50, size).tolist() for size in (200, 1, 64, 333, 17)],
    "sparse": [RANDOM.integers(SMALLEST, LARGEST, size).tolist() for size in (500, 9)],
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches_become_sorted_main_arrays(backend, name):
    batches, params = BATCHES[name], backend.params
    rows = sum(map(len, batches))
    backend.create(Side.LEFT, 0, rows)
    insert_all(backend, Side.LEFT, 0, batches, params.key_bits)
    # Equal keys in order of arrival: `dealt` sorts by key, then by rid.
    wanted = dealt(batches, params.cores, params.key_bits)
    assert backend.tuples(Side.LEFT, 0).tolist() == wanted
    assert backend.rids(Side.LEFT, 0).tolist() == [rid for _, rid in wanted]


def test_a_core_knows_its_turn_across_batches_and_subwindows(engine):
    # Were there a turn that stores nowhere, shares would differ by more and tuples be lost.
    bits, cores = engine.params.key_bits, engine.params.cores
    seen = 0
    for number, rows in enumerate((1, 2, 3, 5, 1, 9)):
        engine.create(Side.RIGHT, number, 9)
        engine.insert(Side.RIGHT, number, make_tuples(range(rows), bits))
        wanted = dealt([range(rows)], cores, bits, turn=seen)
        assert engine.tuples(Side.RIGHT, number).tolist() == wanted
        seen += rows
    engine.create(Side.LEFT, 0, 1)
    engine.insert(Side.LEFT, 0, make_tuples([5], bits))
    assert engine.tuples(Side.LEFT, 0).tolist() == dealt([[5]], cores, bits)


def test_what_does_not_fit_is_refused_and_changes_nothing(backend):
    bits = backend.params.key_bits
    backend.create(Side.LEFT, 0, 5)
    backend.insert(Side.LEFT, 0, make_tuples([3, 1, 2], bits))
    before = backend.tuples(Side.LEFT, 0).tolist()
    message = "3 tuples do not fit in a subwindow of 5 that holds 3"
    with pytest.raises(WindowFull, match=exactly(message)):
        backend.insert(Side.LEFT, 0, make_tuples([7, 8, 9], bits, 3))
    assert backend.tuples(Side.LEFT, 0).tolist() == before


def test_memory_grows_and_what_is_there_stays(backend):
    bits = backend.params.key_bits
    wanted = {}
    for number, rows in enumerate((3_000, 10, 9_000, 1, 20_000)):
        keys = RANDOM.integers(0, rows, rows)
        backend.create(Side.LEFT, number, rows + 5)
        backend.insert(Side.LEFT, number, make_tuples(keys, bits))
        wanted[number] = backend.tuples(Side.LEFT, number)
        assert sorted(wanted[number]["rid"].tolist()) == list(range(rows))
    backend.expire(Side.LEFT, 2)
    backend.create(Side.LEFT, 9, 4_000)
    backend.insert(Side.LEFT, 9, make_tuples(range(4_000), bits))
    for number in (0, 1, 3, 4):
        assert backend.tuples(Side.LEFT, number).tobytes() == wanted[number].tobytes()


def test_a_merge_may_need_many_launches_or_kernels_that_wait(shallow):
    batches = [RANDOM.integers(0, 99, size).tolist() for size in (150, 90, 3)]
    shallow.create(Side.LEFT, 0, 243)
    insert_all(shallow, Side.LEFT, 0, batches, 32)
    assert shallow.tuples(Side.LEFT, 0).tolist() == dealt(batches, 1, 32)
