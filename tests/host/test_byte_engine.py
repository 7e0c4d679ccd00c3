"""host.backends.byte_engine on a simulated engine of two small cores, against numpy."""

import numpy as np
import pyarrow as pa
import pytest

import host
from host.backend import Probes
from host.backends.byte_engine import EngineBackend
from host.backends.numpy_backend import NumpyBackend
from host.backends.simulated_engine import SimulatedEngine
from host.errors import BackendUnavailable, WindowFull
from hw.rtl.digest import library_directory
from hw.spec import NOT, JoinParams, Side
from hw.spec.predicates import ALL, Band, Predicate, compare
from sim.build_engine import build_engine_library
from tests.helpers import make_tuples

pytestmark = pytest.mark.sim

PREDICATES = {
    **{operator: compare(operator, 1) for operator in ("=", "<>", "<", "<=", ">", ">=")},
    "bands": Predicate((Band(None, -9), Band(-5, -4), Band(0, 1), Band(7, None))),
    "outside": Predicate((Band(-2, 3),), negated=True),
    "nothing": Predicate(()),
    "everything": ALL,
}
SIZES = dict(subwindow=64, partitions=8, lanes=2, probers=2, mergers=2, insert_buffer=32, cores=2)
SCHEMA = pa.schema([("x", pa.int32()), ("t", pa.timestamp("us")), ("id", pa.int32())])


@pytest.fixture(scope="module")
def libraries():
    where = library_directory() / "small"
    build_engine_library(JoinParams(**SIZES), slots=7, where=where)
    return where


@pytest.fixture
def engine(libraries):
    opened = EngineBackend(SimulatedEngine(2, 32, libraries))
    yield opened
    opened.close()


@pytest.mark.parametrize("name", PREDICATES)
def test_it_finds_what_numpy_finds(engine, name):
    rng = np.random.default_rng(len(name))
    numpy = NumpyBackend(JoinParams())
    probes = Probes(Side.RIGHT, np.sort(rng.integers(-60, 60, 40)).astype(np.int32),
                    PREDICATES[name])
    for number, batches in ((1, (50, 31, 1, 100)), (2, (7,)), (3, ())):
        first = 0
        for backend in (engine, numpy):
            backend.create(Side.LEFT, number, 300)
        for count in batches:
            tuples = make_tuples(rng.integers(-50, 50, count), first_rid=first)
            first += count
            engine.insert(Side.LEFT, number, tuples)
            numpy.insert(Side.LEFT, number, tuples)
        mine, theirs = (b.tuples(Side.LEFT, number) for b in (engine, numpy))
        assert sorted(mine.tolist()) == sorted(theirs.tolist())
    found = [backend.counts(Side.LEFT, [1, 2, 3], probes) for backend in (engine, numpy)]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", PREDICATES)
def test_a_batch_meets_itself_in_order(engine, name):
    """Two cores hold every other tuple; what both found is one run of the sorted batch."""
    rng = np.random.default_rng(5)
    tuples = make_tuples(rng.integers(-9, 9, 90))
    probes = Probes(Side.LEFT, np.arange(-12, 13, dtype=np.int32), PREDICATES[name])
    mine, theirs = (b.match(tuples, probes) for b in (engine, NumpyBackend(JoinParams())))
    empty = sizes_of(mine) == 0
    np.testing.assert_array_equal(sizes_of(mine), sizes_of(theirs))
    np.testing.assert_array_equal(mine[~empty], theirs[~empty])


def sizes_of(records):
    return (records["end"] & ~NOT) - records["start"]


@pytest.mark.parametrize("window", ["rows 60", "rows 20,70", "50 seconds", "none"])
def test_joins_are_the_joins(libraries, monkeypatch, window):
    monkeypatch.setattr("host.backends.simulated_engine.library_directory", lambda: libraries)
    where = {"backend": "rtl", "device": "2 cores"}
    assert joined(window, **where) == joined(window, backend="numpy") != []


def joined(window, **options):
    rng = np.random.default_rng(11)
    found = []
    with host.StreamJoin(
        on="l.x <= r.x AND r.x <= l.x + 3", window=window, left=SCHEMA, right=SCHEMA,
        time="t", select=["l.id", "r.id"], batch=32, subwindow=64, **options,
    ) as join:
        for number in range(4):
            found += join.push(*(rows(rng, 40, 40 * number) for _ in range(2)))
        found += join.finish()
    return sorted(pa.Table.from_batches(found, join.schema).to_pylist(), key=str)


def rows(rng, count, first):
    ids = np.arange(first, first + count, dtype=np.int32)
    times = pa.array((ids + rng.integers(-3, 4, count)) * 1_000_000, pa.timestamp("us"))
    keys = rng.integers(0, 200, count).astype(np.int32)
    return pa.record_batch([pa.array(keys), times, pa.array(ids)], schema=SCHEMA)


def test_slots_are_used_again(engine):
    for number in range(20):
        engine.create(Side.LEFT, number, 128)
        engine.insert(Side.LEFT, number, make_tuples(np.arange(100)))
        engine.expire(Side.LEFT, number)


def test_what_does_not_fit_is_refused(engine):
    engine.create(Side.LEFT, 1, 2000)
    with pytest.raises(WindowFull) as refused:
        engine.insert(Side.LEFT, 1, make_tuples(np.arange(1000)))
    assert str(refused.value) == (
        "rtl holds 896 tuples in 7 slots of 128, and the windows need more: choose smaller ones"
    )


def test_an_engine_that_is_not_built_names_the_command(tmp_path):
    with pytest.raises(BackendUnavailable) as refused:
        SimulatedEngine(16, 64, tmp_path)
    assert str(refused.value) == (
        "backend rtl has no library of this gateware with 16 cores for 64-bit keys: build it with "
        "python -m sim.build_engine --cores 16 --key-bits 64"
    )


def test_a_device_of_rtl_is_a_number_of_cores():
    with pytest.raises(BackendUnavailable) as refused:
        joined("none", backend="rtl", device="many")
    assert str(refused.value) == "device of backend rtl must be like '4 cores', not 'many'"
