"""The structures of host.indexes: all hold the same, and joins on them are the law's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.errors import OptionError
from host.indexes import make_index
from tests.helpers import (
    arrival_of,
    exactly,
    expected_pairs,
    in_splits,
    join_of,
    run_join,
    same_pairs,
    share,
    stream,
)

STRUCTURES = ["loop", "bisort"]
#: Distributions that make leaves split, chains grow and partitions fill.
KEYS = {
    "few": st.integers(-3, 3),
    "some": st.integers(-200, 200),
    "wide": st.integers(-(1 << 31), (1 << 31) - 1),
    "ends": st.sampled_from([-(1 << 63), -(1 << 63) + 1, -1, 0, 1, (1 << 63) - 2, (1 << 63) - 1]),
}


@st.composite
def operations(draw):
    """Batches of keys for a subwindow, and intervals to ask for after each."""
    keys = draw(st.sampled_from([*KEYS.values()]))
    batches = draw(st.lists(st.lists(keys, max_size=60), max_size=8))
    wanted = draw(st.lists(st.tuples(keys, keys), min_size=1, max_size=8))
    return batches, sorted(wanted) if draw(st.booleans()) else wanted


def found_by(index, wanted):
    """The rids that `find` names for each interval, sorted."""
    runs = index.find(wanted, 1 << 40)
    found = [[] for _ in wanted[0]]
    for probe, start, size in zip(runs.probe, runs.start, runs.size, strict=True):
        assert size > 0
        found[probe] += index.rids[start : start + size].tolist()
    return [sorted(one) for one in found]


@pytest.mark.parametrize("name", STRUCTURES)
@share(10)
@given(asked=operations())
def test_a_structure_holds_what_a_list_would_hold(name, asked):
    batches, intervals = asked
    wanted = tuple(np.array(bounds, np.int64) for bounds in zip(*intervals, strict=True))
    capacity = max(1, sum(map(len, batches)))
    index, held = make_index(name, capacity, 64), []
    for batch in batches:
        order = np.argsort(batch, kind="stable")
        index.insert(np.array(batch, np.int64)[order], (order + len(held)).astype(np.uint32))
        held += batch
        assert len(index) == len(held)
        index._check()
        inside = [[r for r, key in enumerate(held) if lo <= key <= hi] for lo, hi in intervals]
        assert index.count(wanted).tolist() == [len(one) for one in inside]
        assert found_by(index, wanted) == inside
        runs = index.find(wanted, 0)
        assert runs is None or len(runs.probe) == 0
    index.archive()
    index._check()
    keys, rids = index.ascending()
    order = sorted(range(len(held)), key=lambda rid: (held[rid], rid))
    assert rids.tolist() == order and keys.tolist() == [held[rid] for rid in order]
    assert found_by(index, wanted) == [
        [rid for rid, key in enumerate(held) if lo <= key <= hi] for lo, hi in intervals
    ]


WINDOWS = {"rows 40,90": {}, "30 s": {"time": "t", "lateness": "10 s"}, "none": {}}
CONDITIONS = {
    "l.x BETWEEN r.x - 4 AND r.x + 9": lambda a, b: b["x"] - 4 <= a["x"] <= b["x"] + 9,
    "l.x = r.x": lambda a, b: a["x"] == b["x"],
    "l.x <> r.x": lambda a, b: a["x"] != b["x"],
    "l.x < r.x OR l.x = r.x + 2": lambda a, b: a["x"] < b["x"] or a["x"] == b["x"] + 2,
}


def two_streams(rows, span):
    random = np.random.default_rng(rows)
    seconds = np.arange(rows) // 2 + random.integers(-4, 1, rows)
    return [
        stream(x=random.integers(0, span, rows), t=(seconds * 10**6).astype("datetime64[us]"))
        for _ in range(2)
    ]


@pytest.mark.parametrize("on", CONDITIONS)
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", STRUCTURES)
def test_a_join_on_a_structure_is_the_references(name, window, on):
    left, right = two_streams(150, 60)
    splits = in_splits(150, 150, [(30, 11), (1, 0), (7, 25)])
    arrival, options = arrival_of(splits), WINDOWS[window]
    wanted = expected_pairs(CONDITIONS[on], window, left, right, arrival, **options)
    common = {"backend": "numpy", "index": name, "subwindow": 32, "batch": 20, **options}
    same_pairs(run_join(on, window, left, right, splits, **common), wanted)
    with join_of(on, window, left, right, emit="counts", workers=2, **common) as join:
        counted = sum(
            batch.column("matches").to_numpy().sum()
            for part in splits_of(join, left, right, splits)
            for batch in part
        )
    assert counted == len(wanted)


def splits_of(join, left, right, splits):
    done = [0, 0]
    for size in splits:
        parts = [t.slice(done[s], size[s]) for s, t in enumerate((left, right))]
        done = [done[s] + size[s] for s in range(2)]
        yield join.push(*parts)
    yield join.finish()


@pytest.mark.parametrize("backend", ["opencl", "rtl", "board"])
def test_an_engine_refuses_a_structure_of_the_host(backend):
    left, right = two_streams(2, 5)
    message = (
        f"index 'loop' runs on the host, and the backend '{backend}' has only 'bisort': use "
        "backend 'numpy' or leave it out"
    )
    with pytest.raises(OptionError, match=exactly(message)):
        join_of("l.x = r.x", "none", left, right, backend=backend, index="loop")
