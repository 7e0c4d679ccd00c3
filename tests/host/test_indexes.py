"""The structures of host.indexes: all hold the same, and joins on them are the law's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from host.chooser import Chooser
from host.errors import OptionError
from host.indexes.bisort import BISortIndex
from host.indexes.hash_table import HashTable
from host.indexes.lanes import LANES, below, copied, filled, inside, merged, ones, packed, seen
from host.indexes.llat import count_in, expire, llat, put
from host.indexes.loop import LoopIndex
from host.indexes.merge_tree import BTree, ChainLink, ImTree, PimTree
from host.indexes.rap import RapTable
from host.indexes.splitters import adjusted, even_splitters, imbalance
from host.indexes.wib import WibTree
from tests.helpers import (
    arrival_of,
    exactly,
    expected_pairs,
    in_splits,
    join_of,
    pairs_of,
    push_all,
    run_join,
    same_pairs,
    share,
    stream,
)

STRUCTURES = ["loop", "bisort", "rap", "wib", "btree", "chain", "im", "pim"]
#: The same with parts so small that a few tuples fill many of them.
SMALL = {
    "loop": LoopIndex,
    "bisort": lambda capacity: BISortIndex(capacity, buffer=9),
    "rap": lambda capacity: RapTable(capacity, partition=3),
    "rap after another": lambda capacity: RapTable(capacity, before=some_rap(), partition=3),
    "wib": lambda capacity: WibTree(capacity, leaf=4),
    "btree": BTree,
    "chain": ChainLink,
    "im": lambda capacity: ImTree(capacity, merge_ratio=0.3),
    "pim": lambda capacity: PimTree(capacity, merge_ratio=0.3, trees=4),
}


def some_rap():
    """A RaP-Table that has seen some keys."""
    table = RapTable(90, partition=10)
    table.insert(np.arange(-300, 300, 7), np.arange(86, dtype=np.uint32))
    return table

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


@pytest.mark.parametrize("name", SMALL)
@share(4)
@given(asked=operations())
def test_a_structure_holds_what_a_list_would_hold(name, asked):
    batches, intervals = asked
    wanted = tuple(np.array(bounds, np.int64) for bounds in zip(*intervals, strict=True))
    capacity = max(1, sum(map(len, batches)))
    index, held = SMALL[name](capacity), []
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


def test_a_hash_table_finds_single_keys():
    random = np.random.default_rng(6)
    keys = random.integers(-20, 20, 300)
    keys[:3] = [-(1 << 63), (1 << 63) - 1, 0]
    table = HashTable(300)
    for part in np.array_split(np.arange(300), 7):
        order = np.argsort(keys[part], kind="stable")
        table.insert(keys[part][order], part[order].astype(np.uint32))
    table._check()
    lo = np.array([-(1 << 63), (1 << 63) - 1, 0, 7, 99, 5])
    hi = np.array([-(1 << 63), (1 << 63) - 1, 0, 7, 99, 4])
    asked = zip(lo, hi, strict=True)
    inside = [np.flatnonzero((keys >= a) & (keys <= b)).tolist() for a, b in asked]
    assert found_by(table, (lo, hi)) == inside
    assert table.count((lo, hi)).tolist() == [len(one) for one in inside]
    found, rids = table.ascending()
    assert rids.tolist() == np.argsort(keys, kind="stable").tolist()
    assert found.tolist() == sorted(keys.tolist())


# LLAT and the splitters, by the paper's examples.


def test_a_partition_goes_on_in_reserved_entries_and_expires_oldest_first():
    table = llat(4, 2, used=2)  # P = 2, each entry for two tuples
    for rid in range(3):
        put(table, 0, 10 + rid, rid)
    put(table, 1, 50, 3)
    assert table.head.tolist() == [2, 1, 1, 0]
    assert table.next.tolist() == [2, -1, -1, -1] and table.used.tolist() == [3]
    assert [count_in(table, part, 11, 50) for part in (0, 1)] == [2, 1]
    slots = [expire(table, 0) for _ in range(4)]
    assert table.rids[slots[:3]].tolist() == [0, 1, 2] and slots[3] == -1
    assert count_in(table, 0, 0, 99) == 0 and count_in(table, 1, 0, 99) == 1


def test_new_splitters_are_keys_and_not_distances():
    # Figure 3: N = 16, P = 4, and bal_2 = 8 lies in the third partition, (5, 10].
    count, least = np.array([2, 3, 5, 6]), np.array([100, 200, 300, 400])
    found = adjusted(count, least, least + 50, 4)
    # Algorithm 1 as printed leaves out min_i: its second splitter would be 30.
    assert found.tolist() == [200 + 50 * 2 // 3, 300 + 50 * 3 // 5, 400 + 50 * 2 // 6]


def test_splitters_follow_the_keys_in_three_subwindows():
    random = np.random.default_rng(7)
    keys = (random.pareto(1.1, (4, 40_000)) * 1000).astype(np.int64)
    table, errors = None, []
    for batch in keys:
        table = RapTable(40_000, 32, table)
        table.insert(np.sort(batch), np.arange(40_000, dtype=np.uint32))
        errors.append(imbalance(table.counts))
    assert errors[0] > 1.5 and errors[3] < 0.3
    assert errors[3] < errors[2] + 0.1


def test_splitters_reach_over_the_whole_of_64_bits():
    ends = np.iinfo(np.int64)
    found = adjusted(np.array([0, 4, 0]), np.array([0, ends.min, 0]), np.array([0, ends.max, 0]), 4)
    assert found.tolist() == [-(1 << 62), 0, 1 << 62]
    assert even_splitters(4, 64).tolist() == [-(1 << 62) - 1, -1, (1 << 62) - 1]


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
        counts = pairs_of(push_all(join, left, right, splits))
    assert sum(row[2] for row in counts) == len(wanted)


@pytest.mark.parametrize("backend", ["opencl", "rtl", "board"])
def test_an_engine_refuses_a_structure_of_the_host(backend):
    left, right = two_streams(2, 5)
    message = (
        f"index 'loop' runs on the host, and the backend '{backend}' has only 'bisort': use "
        "backend 'numpy' or leave it out"
    )
    with pytest.raises(OptionError, match=exactly(message)):
        join_of("l.x = r.x", "none", left, right, backend=backend, index="loop")


@pytest.mark.parametrize("on", ["l.x = r.x", "l.x <> r.x", "l.x = r.x + 2 OR l.x = r.x - 1"])
def test_a_join_on_a_hash_table_is_the_references(on):
    left, right = two_streams(90, 12)
    wanted = run_join(on, "rows 40", left, right, backend="numpy", index="bisort", subwindow=9)
    found = run_join(on, "rows 40", left, right, backend="numpy", index="hash", subwindow=9)
    assert len(wanted) > 50
    same_pairs(found, wanted)


@pytest.mark.parametrize("on", ["l.x < r.x", "ABS(l.x - r.x) <= 1"])
def test_a_hash_table_refuses_what_is_not_equality(on):
    left, right = two_streams(2, 5)
    message = "index 'hash' finds equal keys alone, and the condition searches more: use 'auto'"
    with pytest.raises(OptionError, match=exactly(message)):
        join_of(on, "none", left, right, index="hash")


# The chooser.


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("backend", "engine"), [("numpy", "numpy"), ("auto", "opencl")])
def test_subwindows_of_one_join_may_be_of_several_structures(backend, engine, window, monkeypatch):
    monkeypatch.setattr("host.chooser._LOOP_ROWS", 8)
    monkeypatch.setattr("host.chooser._LARGE_BATCH", 6)
    monkeypatch.setattr("host.chooser._HOST", None)
    monkeypatch.setattr("host.chooser._WEIGHT", 0.9)
    left, right = two_streams(150, 60)
    splits = in_splits(150, 150, [(30, 21), (1, 0), (1, 3), (2, 2), (1, 1), (2, 2), (40, 40)])
    options, on = WINDOWS[window], "l.x BETWEEN r.x - 4 AND r.x + 9"
    wanted = expected_pairs(CONDITIONS[on], window, left, right, arrival_of(splits), **options)
    common = {"backend": backend, "subwindow": 9, **options}
    with join_of(on, window, left, right, **common) as join:
        same_pairs(pairs_of(push_all(join, left, right, splits)), wanted)
        assert {"bisort", f"bisort on {engine}"} <= join.metrics.structures.keys()
        assert sum(join.metrics.structures.values()) > 10
    total = {"n": "count(*)", "most": "max(r.x)"}
    with join_of(on, window, left, right, emit="aggregate", aggregates=total, select=None,
                 **common) as join:
        rows = pairs_of(push_all(join, left, right, splits))
    assert sum(row[2] for row in rows) == len(wanted)


def test_the_chooser_goes_by_rows_and_batches():
    chooser = Chooser(1 << 15, "opencl")
    assert chooser.decide(0, 100).structure == "loop"
    first = chooser.decide(0, 1 << 20)
    assert (first.structure, first.hosted) == ("bisort", False)
    assert first.why == (
        "1,048,576 rows, batches of about 32,768, 0 matches a tuple: opencl merges large batches"
    )
    for number in range(40):
        chooser.see_batch(0, np.array([number]))
        chooser.see_matches(1, 3)
    small = chooser.decide(0, 1 << 20)
    assert (small.structure, small.hosted, small.buffer) == ("bisort", True, 1 << 10)
    assert small.why == (
        "1,048,576 rows, batches of about 1, 2.96 matches a tuple, keys that move: a sorted buffer "
        "of 1,024 before the main array"
    )
    assert chooser.decided == {"loop": 1, "bisort on opencl": 1, "bisort": 1}
    on_host = Chooser(1 << 15, "numpy").decide(0, 1 << 20)
    assert (on_host.structure, on_host.hosted, on_host.buffer) == ("bisort", True, 1 << 18)


def test_keys_that_stay_are_told_from_keys_that_move():
    random = np.random.default_rng(8)
    chooser = Chooser(1, "numpy")
    for step in range(20):
        chooser.see_batch(0, np.sort(random.integers(0, 1000, 500)))
        chooser.see_batch(1, np.sort(random.integers(0, 1000, 500) + 900 * step))
    assert chooser.drift(0) < 0.3 and chooser.drift(1) > 1.5


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32"])
def test_lanes_compare_as_single_elements_do(kind):
    limits, random = np.iinfo(kind), np.random.default_rng(3)
    values = random.integers(limits.min, limits.max, 3 * LANES, kind, endpoint=True)
    values[::5] = limits.max
    values[::7] = limits.min
    low, high = np.sort(values[[3, 11]])

    @njit
    def bits(array, place, low, high):
        return inside(array, place, low, high), below(array, place, high)

    for place in range(2 * LANES + 1):
        some = values[place : place + LANES]
        among, less = bits(values, place, low, high)
        assert among == sum(int(low <= one <= high) << n for n, one in enumerate(some))
        assert less == sum(int(one < high) << n for n, one in enumerate(some))


@pytest.mark.parametrize("kind", ["uint8", "uint16", "uint32", "uint64"])
def test_lanes_are_written_as_single_elements_are(kind):
    most, random = np.iinfo(kind).max, np.random.default_rng(4)
    values, others = (random.integers(0, most, 3 * LANES, kind) for _ in range(2))
    bits = [0, (1 << LANES) - 1, 1, 1 << (LANES - 1), *random.integers(0, 1 << LANES, 20).tolist()]

    @njit
    def write(out, values, others, place, bits):
        filled(out[0], place, values[place])
        copied(out[1], place, values, np.uint64(3))
        packed(out[2], place, values, np.uint64(5), bits)
        merged(out[3], place, values, np.uint64(7), others, np.uint64(2), bits)
        return ones(bits), seen(values, place, values[1], others[1])

    for place, chosen in zip(np.arange(len(bits), dtype=np.uint64), bits, strict=True):
        out = np.full((4, 4 * LANES), 9, kind)
        expected, some = out.copy(), slice(int(place), int(place) + LANES)
        set_, lanes = [chosen >> n & 1 == 1 for n in range(LANES)], values[some]
        count, sight = write(out, values, others, place, np.uint64(chosen))
        assert count == sum(set_)
        apart = (lanes - values[1]).astype(kind)
        assert sight == sum(int(one < others[1]) << n for n, one in enumerate(apart))
        one, other = iter(values[7:]), iter(others[2:])
        expected[0, some] = values[int(place)]
        expected[1, some] = values[3 : 3 + LANES]
        expected[2, place : place + count] = values[5 : 5 + LANES][set_]
        expected[3, some] = [next(one if bit else other) for bit in set_]
        out[2, place + count : some.stop] = 9  # is anything
        assert out.tolist() == expected.tolist()
