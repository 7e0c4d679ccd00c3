"""Pairs and aggregates on OpenCL: what the device makes of records."""

import numpy as np
import pytest

from host.backend import Probes
from hw.spec.predicates import ALL, Band, Predicate, compare
from hw.spec.tuples import Side, key_dtype

pytestmark = pytest.mark.opencl

PREDICATES = {
    "band": Predicate((Band(-5, 7),)),
    "bands": Predicate((Band(-5, 7), Band(20, 40))),
    "unequal": compare("<>"),
    "less": compare("<"),
    "equal": compare("="),
    "nothing": Predicate(()),
}
#: Of a full subwindow, one with a tier, one with a tier alone, and an empty one.
SIZES = ((700, (500, 200)), (3000, (900, 500, 40)), (900, (60,)), (10, ()))


@pytest.fixture
def chain(engine, model):
    """Four subwindows of the left stream, and their models."""
    random = np.random.default_rng(5)
    models = []
    for number, (capacity, sizes) in enumerate(SIZES):
        engine.create(Side.LEFT, number, capacity)
        models.append(model(engine.params.key_bits))
        for size in sizes:
            tuples = models[-1].batch(random.integers(-300, 300, size))
            engine.insert(Side.LEFT, number, tuples)
            models[-1].insert(tuples)
    return models


def probes_of(engine, predicate, count=60):
    keys = np.sort(np.random.default_rng(6).integers(-310, 310, count))
    return Probes(Side.RIGHT, keys.astype(key_dtype(engine.params.key_bits)), predicate)


def wanted_pairs(models, probes):
    """(probe, subwindow, rid) of every match."""
    return [
        (probe, number, rid)
        for number, judge in enumerate(models)
        for probe in range(len(probes))
        for rid in judge.rids(probes, probe).tolist()
    ]


def pairs_of(engine, probes, *arguments):
    """What the engine yields, as (probe, subwindow, rid), and the lengths of its pieces."""
    found, lengths = [], []
    for piece in engine.pairs(Side.LEFT, list(range(len(SIZES))), probes, *arguments):
        where = np.broadcast_to(piece.subwindow, len(piece.probe))
        found += zip(piece.probe.tolist(), where.tolist(), piece.rid.tolist(), strict=True)
        lengths.append(len(piece.probe))
    return found, lengths


@pytest.mark.parametrize("chunk", [977, 1 << 20])
@pytest.mark.parametrize("name", PREDICATES)
def test_pairs_without_order_go_subwindow_by_subwindow(engine, chain, name, chunk):
    probes = probes_of(engine, PREDICATES[name])
    found, lengths = pairs_of(engine, probes, chunk)
    assert sorted(found) == sorted(wanted_pairs(chain, probes))
    assert max(lengths, default=0) <= chunk
    assert [pair[1] for pair in found] == sorted(pair[1] for pair in found)


@pytest.mark.parametrize("order", ["outer", "strict"])
@pytest.mark.parametrize("name", PREDICATES)
def test_pairs_in_order_follow_the_arrival_of_probes(engine, chain, name, order):
    probes = probes_of(engine, PREDICATES[name])
    arrival = np.random.default_rng(8).permutation(len(probes))
    turn = np.argsort(arrival)
    wanted = sorted(
        wanted_pairs(chain, probes), key=lambda pair: (turn[pair[0]], pair[1], pair[2])
    )
    for chunk in (500, 1 << 20):
        found, _ = pairs_of(engine, probes, chunk, order, arrival)
        if order == "outer":
            assert [pair[:2] for pair in found] == [pair[:2] for pair in wanted]
            found.sort(key=lambda pair: (turn[pair[0]], pair[1], pair[2]))
        assert found == wanted


def test_pieces_of_strict_order_are_longer_only_where_one_group_is(engine, chain):
    probes = probes_of(engine, ALL, 5)
    _, lengths = pairs_of(engine, probes, 750, "strict")
    # 700, 1440 and 60 matches of each probe: a group of 1440 is larger than a piece.
    assert max(lengths) == 1440
    assert sum(lengths) == 5 * 2200


def test_nothing_to_collect_yields_nothing(engine, chain):
    none = Probes(Side.RIGHT, np.empty(0, key_dtype(engine.params.key_bits)), compare("="))
    assert pairs_of(engine, none, 100) == ([], [])
    assert list(engine.pairs(Side.LEFT, [], probes_of(engine, ALL))) == []


def expected(models, columns, probes, probe):
    """The values that one probe matches."""
    parts = [
        column[judge.rids(probes, probe)] for judge, column in zip(models, columns, strict=True)
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize("name", PREDICATES)
def test_aggregates_of_integers_are_exact(engine, chain, name):
    random = np.random.default_rng(9)
    columns = [random.integers(-(1 << 62), 1 << 62, len(judge.tuples)) for judge in chain]
    probes = probes_of(engine, PREDICATES[name])
    numbers = list(range(len(SIZES)))
    result = engine.aggregates(Side.LEFT, numbers, probes, "v", columns)
    sums = engine.aggregates(Side.LEFT, numbers, probes, "v", columns, extremes=False)
    for probe in range(len(probes)):
        values = expected(chain, columns, probes, probe)
        assert result["count"][probe] == sums["count"][probe] == len(values)
        assert result["sum"][probe] == sums["sum"][probe] == values.sum()
        if len(values):
            assert result["least"][probe] == values.min()
            assert result["largest"][probe] == values.max()


@pytest.mark.parametrize("special", [False, True])
def test_aggregates_of_floats_stay_near_and_keep_infinities_apart(engine, chain, special):
    random = np.random.default_rng(10)
    columns = [random.normal(size=len(judge.tuples)) * 1e6 for judge in chain]
    for column in columns[:3]:
        column[::7] = 1e-3
        if special:
            column[5::41], column[9::83] = np.nan, -np.inf
    probes = probes_of(engine, PREDICATES["bands"])
    result = engine.aggregates(Side.LEFT, list(range(len(SIZES))), probes, "v", columns)
    for probe in range(len(probes)):
        values = expected(chain, columns, probes, probe)
        numbers = values[~np.isnan(values)]
        with np.errstate(invalid="ignore"):
            wanted = values.sum()
        np.testing.assert_allclose(result["sum"][probe], wanted, rtol=1e-12, atol=1e-6)
        if len(values):
            # NaN is the largest value, as in Spark.
            least = numbers.min() if len(numbers) else np.nan
            np.testing.assert_equal(result["least"][probe], least)
            np.testing.assert_equal(result["largest"][probe], values.max())


def test_a_small_sum_beside_huge_values_keeps_its_digits(engine, model):
    judge = model(engine.params.key_bits)
    engine.create(Side.LEFT, 0, 400)
    tuples = judge.batch(np.arange(300))
    engine.insert(Side.LEFT, 0, tuples)
    column = np.where(np.arange(300) < 200, 1e15, 1e-3)
    keys = np.array([250], key_dtype(engine.params.key_bits))
    probes = Probes(Side.RIGHT, keys, Predicate((Band(-5, 4),)))
    result = engine.aggregates(Side.LEFT, [0], probes, "v", [column])
    np.testing.assert_allclose(result["sum"], 10e-3, rtol=1e-12)


def test_aggregates_follow_insertions(engine, model):
    random = np.random.default_rng(11)
    judge = model(engine.params.key_bits)
    engine.create(Side.LEFT, 0, 40_000)
    column = random.integers(-1000, 1000, 40_000)
    probes = probes_of(engine, Predicate((Band(-5, 5),)), 40)
    for size in (100, 30, 400, 5, 3_000, 90, 9_000, 20):
        tuples = judge.batch(random.integers(-300, 300, size))
        engine.insert(Side.LEFT, 0, tuples)
        judge.insert(tuples)
        held = [column[: len(judge.tuples)]]
        result = engine.aggregates(Side.LEFT, [0], probes, "v", held)
        for probe in range(len(probes)):
            values = expected([judge], held, probes, probe)
            assert result["sum"][probe] == values.sum()
            if len(values):
                assert result["least"][probe] == values.min()
                assert result["largest"][probe] == values.max()
