"""Boundary generator, partitioners and probers, by the records that they give."""

import numpy as np
import pytest

from host.backend import Probes
from hw.spec import reference
from hw.spec.predicates import ALL, OPERATORS, Band, Predicate, compare, empty_intervals, registers
from hw.spec.tuples import NOT, RECORD, Side, interval_dtype, key_dtype, key_limits
from tests.helpers import make_tuples
from tests.opencl.fpga.model import assert_finds, insert_all, keys_by_rid, runs_of

PREDICATES = {
    **{f"{operator} {offset}": compare(operator, offset)
       for operator in OPERATORS for offset in (0, -3, 2)},
    "band": Predicate((Band(-2, 3),)),
    "outside": Predicate((Band(-2, 3),), negated=True),
    "two bands": Predicate((Band(-5, 5), Band(20, 35))),
    "four bands": Predicate((Band(None, -9), Band(-4, -3), Band(0, 1), Band(6, None))),
    "nothing": Predicate(()),
    "everything": ALL,
    "all but everything": Predicate((Band(None, None),), negated=True),
}
RANDOM = np.random.default_rng(6)
CHAIN = {
    0: [RANDOM.integers(-20, 20, size).tolist() for size in (90, 1, 40)],
    3: [],
    4: [[7]],
    9: [[2] * 50, [2] * 30],
}


def holds(predicate, side, probe, stored):
    """Whether a probe key of that side and a stored key match, by definition."""
    left, right = (probe, stored) if side is Side.LEFT else (stored, probe)
    return predicate.holds(left, right)


def fill(backend, side, chain):
    for number, batches in chain.items():
        backend.create(side, number, sum(map(len, batches)) + 3)
        insert_all(backend, side, number, batches, backend.params.key_bits)


@pytest.mark.parametrize("side", Side)
def test_every_operator_and_band_finds_what_the_reference_finds(backend, side):
    fill(backend, side.other, CHAIN)
    keys = np.sort(RANDOM.integers(-25, 25, 31)).astype(key_dtype(backend.params.key_bits))
    for predicate in PREDICATES.values():
        records = backend.probe(side.other, list(CHAIN), Probes(side, keys, predicate=predicate))
        assert records.dtype == RECORD
        assert records.shape[:2] == (len(CHAIN), len(keys))
        for found, (number, batches) in zip(records, CHAIN.items(), strict=True):
            stored = keys_by_rid(batches)
            assert_finds(backend, side.other, number, stored, predicate, keys, found)
        stored = [key for batches in CHAIN.values() for key in keys_by_rid(batches)]
        counts = backend.counts(side.other, list(CHAIN), Probes(side, keys, predicate=predicate))
        assert counts.tolist() == [
            sum(holds(predicate, side, int(key), other) for other in stored) for key in keys
        ]


@pytest.mark.parametrize("side", Side)
def test_a_batch_is_matched_with_itself_in_its_own_order(backend, side):
    bits = backend.params.key_bits
    keys = np.sort(RANDOM.integers(-25, 25, 31)).astype(key_dtype(bits))
    for rows in (0, 1, 37):
        tuples = make_tuples(RANDOM.integers(-20, 20, rows), bits, 5)
        for predicate in PREDICATES.values():
            records = backend.match(tuples, Probes(side, keys, predicate=predicate))
            assert len(records) == len(keys)
            for key, found in zip(keys.tolist(), records, strict=True):
                inside = np.zeros(rows, bool)
                for start, end in runs_of(found):
                    inside[start:end] = True
                inside ^= bool(found[0]["end"] & NOT)
                stored = tuples["key"].tolist()
                assert inside.tolist() == [holds(predicate, side, key, one) for one in stored]


def test_the_order_of_bands_and_bounds_is_the_references(backend):
    if backend.params.cores > 1:
        return  # positions then count by core
    fill(backend, Side.LEFT, CHAIN)
    predicate = PREDICATES["four bands"]
    keys = np.arange(-25, 25, dtype=key_dtype(backend.params.key_bits))
    records = backend.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, predicate=predicate))
    stored = sorted(keys_by_rid(CHAIN[0]))
    for key, found in zip(keys.tolist(), records[0], strict=True):
        wanted = reference.probe_records(stored, key, Side.RIGHT, predicate)
        assert runs_of(found) == [run for run in wanted if run[0] != run[1]]


@pytest.mark.parametrize("stored", Side)
def test_bounds_saturate_at_the_ends_of_the_type(backend, stored):
    smallest, largest = key_limits(backend.params.key_bits)
    ends = [smallest, smallest + 1, -1, 0, 1, largest - 1, largest, smallest, largest]
    fill(backend, stored, {0: [ends]})
    keys = np.array(sorted(ends), key_dtype(backend.params.key_bits))
    span = largest - smallest
    bands = [
        Band(-1, 1), Band(0, span), Band(-span, -1), Band(span, span), Band(-span, -span),
        Band(2, 1 << 70), Band(-(1 << 70), -2), Band(span + 1, None), Band(None, -span - 1),
        Band(None, 0), Band(1 << 70, None),
    ]
    for predicate in [
        *(Predicate((band,)) for band in bands),
        *(Predicate((band,), negated=True) for band in bands),
        Predicate((Band(None, -span), Band(-1, 0), Band(3, 5), Band(span, None))),
    ]:
        probes = Probes(stored.other, keys, predicate=predicate)
        records = backend.probe(stored, [0], probes)[0]
        assert_finds(backend, stored, 0, ends, predicate, keys, records)


def test_explicit_intervals_of_any_kind(backend):
    bits, (smallest, largest) = backend.params.key_bits, key_limits(backend.params.key_bits)
    stored = [smallest, 1, 2, 2, 5, 9, 9, largest]
    fill(backend, Side.LEFT, {0: [stored]})
    wanted = empty_intervals(bits, (7, 2))
    wanted[1, 0] = (2, 2)
    wanted[2, 0], wanted[2, 1] = (0, 1), (5, 100)
    wanted[3, 1] = (smallest, largest)
    wanted[4, 0], wanted[4, 1] = (9, 3), (smallest, smallest)   # not ascending, and one empty
    wanted[5, 0], wanted[5, 1] = (3, 4), (largest, largest)
    keys = np.arange(7, dtype=key_dtype(bits))
    records = backend.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, wanted=wanted))[0]
    rids = backend.rids(Side.LEFT, 0)
    for row, found in zip(wanted.tolist(), records, strict=True):
        matched = [int(rid) for start, end in runs_of(found) for rid in rids[start:end]]
        assert sorted(matched) == [
            rid for rid, key in enumerate(stored) if any(lo <= key <= hi for lo, hi in row)
        ]
    assert (records["start"] <= records["end"]).all()


def test_explicit_intervals_need_not_ascend(backend):
    # Many in one partition, whose keys the prober has passed when a smaller bound comes.
    bits = backend.params.key_bits
    fill(backend, Side.LEFT, {0: [range(2_000)]})
    wanted = np.empty((150, 1), interval_dtype(bits))
    wanted["lo"][:, 0] = np.arange(150, 0, -1)
    wanted["hi"] = wanted["lo"] + 1
    keys = np.arange(150, dtype=key_dtype(bits))
    records = backend.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, wanted=wanted))[0]
    rids = backend.rids(Side.LEFT, 0)
    for (lo, hi), found in zip(wanted[:, 0].tolist(), records, strict=True):
        matched = [int(rid) for start, end in runs_of(found) for rid in rids[start:end]]
        assert sorted(matched) == [lo, hi]


def test_more_intervals_than_the_engine_has_bands(backend):
    bits = backend.params.key_bits
    fill(backend, Side.LEFT, {0: [range(40)]})
    keys = np.arange(3, dtype=key_dtype(bits))
    wanted = np.empty((3, 6), interval_dtype(bits))
    wanted["lo"] = np.arange(6) * 6 + keys[:, None]
    wanted["hi"] = wanted["lo"] + 2
    records = backend.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, wanted=wanted))[0]
    rids = backend.rids(Side.LEFT, 0)
    for row, found in zip(wanted.tolist(), records, strict=True):
        matched = [int(rid) for start, end in runs_of(found) for rid in rids[start:end]]
        assert sorted(matched) == [key for lo, hi in row for key in range(lo, hi + 1)]


@pytest.mark.parametrize("probes", [1, 63, 64, 65, 1_500])
def test_batches_of_any_size_share_scans_or_search(backend, probes):
    # Few probes against long partitions are searched, many scan partitions together.
    bits = backend.params.key_bits
    stored = RANDOM.integers(-3_000, 3_000, 6_000)
    backend.create(Side.LEFT, 0, 6_000)
    backend.insert(Side.LEFT, 0, make_tuples(stored, bits))
    keys = np.sort(RANDOM.integers(-3_200, 3_200, probes)).astype(key_dtype(bits))
    predicate = Predicate((Band(-4, 4), Band(100, 101)))
    records = backend.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, predicate=predicate))[0]
    rids = backend.rids(Side.LEFT, 0)
    inside = np.zeros((probes, len(rids) + 1), np.int32)
    for run in range(records.shape[1]):
        np.add.at(inside, (np.arange(probes), records["start"][:, run]), 1)
        np.add.at(inside, (np.arange(probes), records["end"][:, run]), -1)
    found = np.cumsum(inside, axis=1)[:, :-1]
    difference = keys.astype(np.int64)[:, None] - stored[rids][None, :]
    near = (abs(difference) <= 4) | ((difference >= 100) & (difference <= 101))
    assert (found == near).all()


def test_no_probes_and_no_subwindows_are_answers_too(backend):
    fill(backend, Side.LEFT, {0: [[1, 2]]})
    key = key_dtype(backend.params.key_bits)
    nothing = Probes(Side.RIGHT, np.empty(0, key), predicate=compare("="))
    assert backend.probe(Side.LEFT, [0], nothing).shape[:2] == (1, 0)
    one = Probes(Side.RIGHT, np.ones(1, key), predicate=compare("<>"))
    assert backend.probe(Side.LEFT, [], one).shape[:2] == (0, 1)


@pytest.mark.parametrize("seed", range(6))
def test_random_inserts_probes_and_expiries(backend, seed):
    random, bits = np.random.default_rng(seed), backend.params.key_bits
    chains = {side: {} for side in Side}
    made = 0
    for _ in range(40):
        side = Side(int(random.integers(2)))
        chain = chains[side]
        action = random.integers(5)
        if action == 0 or not chain:
            backend.create(side, made, 120)
            chain[made], made = [], made + 1
        elif action == 1 and len(chain) > 2:
            oldest = next(iter(chain))
            backend.expire(side, oldest)
            del chain[oldest]
        elif action <= 3:
            newest = next(reversed(chain))
            rows = min(int(random.integers(0, 90)), 120 - len(chain[newest]))
            keys = random.integers(-30, 30, rows).astype(key_dtype(bits))
            tuples = make_tuples(keys, bits, len(chain[newest]))
            # What only passes takes no one's turn to store.
            backend.match(tuples[:3], Probes(side.other, keys[:0], predicate=ALL))
            backend.insert(side, newest, tuples)
            chain[newest] += keys.tolist()
        else:
            keys = np.sort(random.integers(-40, 40, random.integers(1, 20)))
            keys = keys.astype(key_dtype(bits))
            predicate = list(PREDICATES.values())[random.integers(len(PREDICATES))]
            probes = Probes(side.other, keys, predicate=predicate)
            records = backend.probe(side, list(chain), probes)
            for found, (number, stored) in zip(records, chain.items(), strict=True):
                assert_finds(backend, side, number, stored, predicate, keys, found)


def test_a_probe_may_need_many_launches_or_kernels_that_wait(shallow):
    stored = RANDOM.integers(0, 99, 120)
    shallow.create(Side.LEFT, 0, 120)
    shallow.insert(Side.LEFT, 0, make_tuples(stored, 32))
    shallow.create(Side.LEFT, 1, 10)
    keys = np.sort(RANDOM.integers(0, 99, 75)).astype(np.int32)
    predicate = PREDICATES["four bands"]
    words = registers(predicate, Side.RIGHT, 32)
    records, _ = shallow.probe(Side.LEFT, [0, 1], keys, words)
    assert_finds(shallow, Side.LEFT, 0, stored.tolist(), predicate, keys, records[0])
    assert (records[1]["start"] == records[1]["end"]).all()
