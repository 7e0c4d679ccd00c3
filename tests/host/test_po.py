"""SPO-Join's structure: every way to find the tuples of a rectangle gives the same ones."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.indexes.po import PoIndex, part_of
from host.indexes.po.bitset import added_counts, added_sums, listings
from host.indexes.po.candidates import PoCandidates
from host.indexes.po.index import MERGE_INTERVAL
from host.indexes.po.listing import PairColumn, pairs_of
from host.indexes.po.offsets import offsets
from host.indexes.po.part import Part
from host.indexes.po.per_tuple import per_tuple_counts
from host.indexes.po.strips import Strips
from host.indexes.po.table import CornerTable
from host.rowstore import Words
from host.two_keys import Rectangles, ascending, keyed_twice
from hw.spec.tuples import interval_dtype, key_limits
from tests.helpers import same_pairs, share


def tuples_of(pairs, first_rid=0, bits=(32, 32)):
    """Tuples with two keys, as a batch gives them."""
    keys, seconds = (
        np.array([pair[n] for pair in pairs], f"i{bits[n] // 8}") for n in range(2)
    )
    order = np.argsort(keys, kind="stable")
    rids, seconds = order + first_rid, seconds[order]
    return keyed_twice(keys[order], rids, seconds, ascending(seconds))


def intervals_of(rows, bits=32):
    """Closed intervals of shape (probes, bands) out of lists of (lo, hi)."""
    return np.array([[tuple(band) for band in row] for row in rows], interval_dtype(bits))


def rectangles_of(firsts, seconds, bits=(32, 32)):
    first, second = intervals_of(firsts, bits[0]), intervals_of(seconds, bits[1])
    return Rectangles.of(first, second)


def matches(stored, first, second):
    """(probe, rid) of the pairs, by the definition."""
    return [
        (probe, rid)
        for probe, (wanted, beside) in enumerate(zip(first, second, strict=True))
        for rid, (a, b) in enumerate(stored)
        if any(lo <= a <= hi for lo, hi in wanted) and any(lo <= b <= hi for lo, hi in beside)
    ]


def pairs_in(candidates, most=7, only=None):
    found = list(candidates.pairs(most, only))
    assert all(len(probe) == len(rid) <= most for probe, rid in found)
    return [pair for part in found for pair in zip(*map(np.ndarray.tolist, part), strict=True)]


SMALL = st.integers(-6, 6)
ENDS = st.sampled_from([*key_limits(32), key_limits(32)[0] + 1, key_limits(32)[1] - 1])
KEY = st.one_of(SMALL, SMALL, ENDS)


@st.composite
def disjoint(draw, bands):
    """Bounds in order, so that intervals do not overlap; some are single keys, some are empty."""
    edges = sorted(draw(st.lists(KEY, min_size=2 * bands, max_size=2 * bands, unique=True)))
    shapes = st.sampled_from([lambda lo, hi: (lo, hi), lambda lo, hi: (lo, lo),
                              lambda lo, hi: (hi, lo)])  # fmt: skip
    return [draw(shapes)(edges[2 * n], edges[2 * n + 1]) for n in range(bands)]


@st.composite
def questions(draw):
    probes = draw(st.integers(1, 6))
    shapes = draw(st.integers(1, 2)), draw(st.integers(1, 2))
    return [draw(st.lists(disjoint(bands), min_size=probes, max_size=probes)) for bands in shapes]


@share(15)
@given(
    st.lists(st.lists(st.tuples(KEY, KEY), max_size=12), max_size=6),
    questions(),
    st.integers(1, 9),
    st.integers(0, 9),
)
def test_an_index_finds_what_the_definition_says(batches, asked, interval, room):
    total = sum(map(len, batches))
    index, stored = PoIndex(total + room, interval), []
    for batch in batches:
        index.insert(tuples_of(batch, len(stored)))
        stored += batch
        index._check()
    wanted, expected = rectangles_of(*asked), matches(stored, *asked)
    candidates = index.find(wanted)
    same_pairs(pairs_in(candidates), expected)
    ids = Words("id", 3 * np.arange(total + 1, dtype=np.uint32), pa.uint32(), 0)
    columns = PairColumn(ids, 0, np.arange(len(asked[0])) + 100), PairColumn(ids, 0)
    found = [zip(*map(np.ndarray.tolist, some), strict=True)
             for some in candidates.columns(64, columns)]  # fmt: skip
    same_pairs([pair for part in found for pair in part],
               [(probe + 100, 3 * rid) for probe, rid in expected])
    counts = np.bincount([probe for probe, _ in expected], minlength=len(asked[0]))
    assert candidates.sizes().tolist() == counts.tolist()
    keys, rids = index.ascending()
    assert list(zip(keys.tolist(), rids.tolist(), strict=True)) == sorted(
        (key, rid) for rid, (key, _) in enumerate(stored)
    )


@share(10)
@given(
    st.lists(st.tuples(SMALL, SMALL), min_size=1, max_size=40),
    questions(),
    st.data(),
)
def test_sums_are_those_of_the_rids_that_a_probe_sees(stored, asked, data):
    probes = len(asked[0])
    edges = st.lists(st.integers(0, len(stored)), min_size=probes, max_size=probes)
    first, end = np.array(data.draw(edges)), np.array(data.draw(edges))
    only = np.array(data.draw(st.lists(st.booleans(), min_size=probes, max_size=probes)))
    values = np.array(data.draw(st.lists(st.integers(-99, 99), min_size=len(stored),
                                         max_size=len(stored))))  # fmt: skip
    index = PoIndex(len(stored) + 1, 8)
    for begin in range(0, len(stored), 6):
        index.insert(tuples_of(stored[begin : begin + 6], begin))
    candidates = index.find(rectangles_of(*asked))
    seen = [(probe, rid) for probe, rid in matches(stored, *asked)
            if only[probe] and first[probe] <= rid < end[probe]]  # fmt: skip
    for by_rid in (None, values):
        wanted = np.zeros(probes, np.int64)
        for probe, rid in seen:
            wanted[probe] += 1 if by_rid is None else by_rid[rid]
        assert candidates.sums(first, end, by_rid, only).tolist() == wanted.tolist()
    whole = np.zeros(probes, np.int64)
    for probe, rid in matches(stored, *asked):
        whole[probe] += values[rid]
    assert candidates.total(values).tolist() == whole.tolist()
    assert not set(pairs_in(candidates, 5, only)) ^ {
        pair for pair in matches(stored, *asked) if only[pair[0]]
    }


def test_windows_with_many_edges_are_cut_and_summed():
    """So many rids that pieces are cut in two several times before they are looked at."""
    random = np.random.default_rng(1)
    stored = random.integers(0, 50, (3_000, 2))
    asked = random.integers(0, 50, (400, 2))
    first = random.integers(0, 3_000, 400)
    end = first + random.integers(0, 3_000, 400)
    wide = rectangles_of([[(a, 60)] for a, _ in asked], [[(-1, b)] for _, b in asked])
    candidates = PoCandidates(wide, (part_of(tuples_of(stored)),))
    assert candidates.has_many()
    rids = np.arange(3_000)
    values = random.integers(-9, 9, 3_000)
    for by_rid in (None, values):
        expected = [
            ((stored[:, 0] >= a) & (stored[:, 1] <= b) & (rids >= lo) & (rids < hi))
            @ (np.ones(3_000, int) if by_rid is None else by_rid)
            for (a, b), lo, hi in zip(asked, first, end, strict=True)
        ]
        assert candidates.sums(first, end, by_rid).tolist() == expected


@st.composite
def permuted(draw):
    """A permutation, and 20 rectangles: runs of its first and of its second positions."""
    size = draw(st.sampled_from([0, 1, 2, 63, 64, 65, 200, 700, 40_000]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bounds = []
    for begin in (0, 3):
        ends = np.sort(random.integers(0, size + 1, (2, 20)), axis=0)
        # Runs that begin or end with the array, or are all of it.
        ends[0, begin : begin + 4], ends[1, begin + 2 : begin + 6] = 0, size
        bounds += list(ends.astype(np.uint32))
    return random.permutation(size).astype(np.uint32), tuple(bounds), random


def inside(permutation, first, end, low, high):
    """First positions in each rectangle, by the definition."""
    return [
        sorted(one for one in permutation[b:c].tolist() if a <= one < d)
        for a, d, b, c in zip(first, end, low, high, strict=True)
    ]


def gathered(chunks, rectangles=20):
    found = [[] for _ in range(rectangles)]
    for which, position in chunks:
        for n, place in zip(which.tolist(), position.tolist(), strict=True):
            found[n].append(place)
    return [sorted(places) for places in found]


@share(6)
@given(permuted(), st.sampled_from([1, 10, 64, 1_000]), st.integers(0, 11))
def test_strips_table_bits_and_the_paper_agree(made, most, shift):
    permutation, bounds, random = made
    first, end, low, high = bounds
    expected = inside(permutation, *bounds)
    sizes = [len(places) for places in expected]
    # Rectangles as probes, positions as rids.
    themselves = np.arange(20), np.arange(len(permutation), dtype=np.uint32)
    weights = random.integers(-99, 99, len(permutation))
    sums = [int(weights[places].sum()) for places in expected]

    # Second keys spread unevenly, and bounds between them.
    gaps = np.where(random.random(len(permutation) + 1) < 0.02, 1 << 20, 2)
    keys = np.cumsum(gaps)
    firsts = np.cumsum(gaps[::-1])
    bands = (firsts[first] - 1, firsts[end] - 1), (keys[low] - 1, keys[high] - 1)
    keys, firsts = keys[:-1], firsts[:-1]
    wanted = Rectangles(np.arange(20), *bands, 20)
    strips, found = Strips.of(permutation, shift, firsts, keys), np.zeros(20, np.int64)
    strips._check(permutation, firsts, keys)
    strips.counts(wanted, found)
    assert found.tolist() == sizes
    strips.sums(wanted, found := np.zeros(20, np.int64), weights)
    assert found.tolist() == sums
    assert gathered(pairs_of(strips.listings(wanted, most), most, *themselves)) == expected
    met, seen = strips.cost(wanted)
    assert seen >= sum(sizes) and met >= sum(size > 0 for size in sizes)

    inverse = np.argsort(permutation).astype(np.uint32)
    CornerTable.of(permutation).counts(
        permutation, inverse, bounds, found := np.zeros(20, np.int64)
    )
    assert found.tolist() == sizes
    assert per_tuple_counts(permutation, bounds).tolist() == sizes

    order = np.argsort(high, kind="stable")
    prefix = high[order], first[order], end[order]
    below = inside(permutation, first[order], end[order], np.zeros(20, int), high[order])
    added_counts(permutation, *prefix, -1, found := np.zeros(20, np.int64))
    assert found.tolist() == [-len(places) for places in below]
    added_sums(permutation, *prefix, 1, found := np.zeros(20, np.int64), weights)
    assert found.tolist() == [int(weights[places].sum()) for places in below]
    assert gathered(pairs_of(listings(permutation, *prefix, most), most, *themselves)) == below


@share(10)
@given(st.lists(KEY, max_size=60), st.lists(st.tuples(KEY, KEY), max_size=12), st.booleans())
def test_offsets_are_those_of_a_search(keys, bounds, ordered):
    """Erratum 12: lower and upper offsets differ with duplicates, in any order of the bounds."""
    keys = np.sort(np.array(keys, np.int32))
    bounds = sorted(bounds) if ordered else bounds
    lo, hi = (np.array([bound[n] for bound in bounds], np.int32) for n in range(2))
    first, end = offsets(keys, lo, hi)
    begin = np.searchsorted(keys, lo, "left")
    assert first.tolist() == begin.tolist()
    assert end.tolist() == np.maximum(begin, np.searchsorted(keys, hi, "right")).tolist()


@pytest.mark.parametrize("bits", [(32, 64), (64, 32), (64, 64)])
@pytest.mark.parametrize("probes", [1, 40, 3_000])
@pytest.mark.parametrize("shape", ["inequalities", "bands", "suffix and exclusion"])
def test_every_way_to_answer_is_right(bits, probes, shape):
    """Few probes and many, narrow and wide: what is taken may differ, what is found may not."""
    random = np.random.default_rng(5)
    stored = random.integers(0, 1_000, (5_000, 2))
    asked = random.integers(0, 1_000, (probes, 2))
    if shape == "bands":
        first = [[(a - 10, a + 10)] for a, _ in asked]
        second = [[(b - 25, b + 25)] for _, b in asked]
    elif shape == "inequalities":
        first = [[(a, 2_000)] for a, _ in asked]
        second = [[(-1, b // 20)] for _, b in asked]
    else:
        first = [[(-5, a - 1), (a + 1, 2_000)] for a, _ in asked]
        second = [[(990 + b % 10, 2_000)] for _, b in asked]
    index = PoIndex(6_000, 64)
    for begin in range(0, 5_000, 1_250):
        index.insert(tuples_of(stored[begin : begin + 1_250], begin, bits))
    index._check()
    candidates = index.find(rectangles_of(first, second, bits))
    a, b = stored.T

    def hit(wanted, values):
        return sum(((lo <= values) & (values <= hi)).astype(int) for lo, hi in wanted)

    expected = [
        int((hit(wanted, a) & hit(beside, b)).sum())
        for wanted, beside in zip(first, second, strict=True)
    ]
    assert candidates.sizes().tolist() == expected
    found = pairs_in(candidates, 500)
    assert np.bincount([p for p, _ in found], minlength=probes).tolist() == expected
    assert len(set(found)) == len(found)
    assert candidates.total(a).tolist() == [
        int((hit(wanted, a) & hit(beside, b)) @ a)
        for wanted, beside in zip(first, second, strict=True)
    ]


def test_the_mutable_part_is_merged_at_its_interval_and_before_many_probes():
    index = PoIndex(10_000)
    index.insert(tuples_of([(n, n) for n in range(MERGE_INTERVAL - 1)]))
    assert index._parts == []
    one = rectangles_of([[(0, 9)]], [[(5, 20)]])
    assert pairs_in(index.find(one)) == [(0, n) for n in range(5, 10)]
    assert index._parts == []
    index.insert(tuples_of([(0, 0)], MERGE_INTERVAL - 1))
    assert [len(part) for part in index._parts] == [MERGE_INTERVAL]
    index.insert(tuples_of([(1, 1)] * 100, MERGE_INTERVAL))
    index.find(rectangles_of([[(0, 9)]] * 200, [[(5, 20)]] * 200))
    assert [len(part) for part in index._parts] == [MERGE_INTERVAL, 100]
    index._check()


def test_a_full_index_is_one_part():
    index = PoIndex(3_000, 16)
    random = np.random.default_rng(2)
    for begin, end in ((0, 2_000), (2_000, 2_500), (2_500, 2_510), (2_510, 3_000)):
        index.insert(tuples_of(random.integers(0, 9, (end - begin, 2)), begin))
        index._check()
    assert [len(part) for part in index._parts] == [3_000]


def test_nothing_is_found_in_an_empty_index():
    candidates = PoIndex(10).find(rectangles_of([[(0, 9)]], [[(0, 9)]]))
    assert candidates.sizes().tolist() == [0]
    assert pairs_in(candidates) == []
    assert candidates.total(np.empty(0, np.int64)).tolist() == [0]


def test_bits_list_prefixes_and_suffixes_of_every_length(monkeypatch):
    """Without strips, as where many probes want wide runs of both."""
    monkeypatch.setattr(Part, "_strips_for", lambda *_: None)
    random = np.random.default_rng(8)
    stored = np.stack([random.permutation(70), random.permutation(70)], axis=1)
    part = part_of(tuples_of(stored))
    bounds = [(-9, end) for end in range(-1, 71)] + [(begin, 99) for begin in range(71)]
    first = [[(a, a + 40)] for a in random.integers(-5, 70, len(bounds))]
    second = [[bound] for bound in bounds]
    candidates = PoCandidates(rectangles_of(first, second), (part,))
    same_pairs(pairs_in(candidates, 30), matches(stored.tolist(), first, second))
    counts = np.bincount([p for p, _ in matches(stored.tolist(), first, second)],
                         minlength=len(bounds))  # fmt: skip
    assert candidates.sizes().tolist() == counts.tolist()
