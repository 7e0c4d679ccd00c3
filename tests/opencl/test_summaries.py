"""Counts and sums of what probes see of subwindows, against numpy."""

import numpy as np
import pyarrow as pa
import pytest

import host
from host.aggregates import Measure, Part
from host.backend import Probes, Question
from host.stretches import Stretch
from hw.spec.predicates import Band, Predicate, compare
from hw.spec.tuples import Side, key_dtype
from hw.spec.windows import Sight

pytestmark = pytest.mark.opencl

TOTAL = Measure(Side.LEFT, "v", Part.VALUE)
MEASURES = (TOTAL, Measure(Side.LEFT, "v", Part.LEAST), Measure(Side.LEFT, "f", Part.VALUE))
LIMITS = np.iinfo(np.int64)
BASE = (1 << 33) - 50


def keys_of(engine, values):
    return np.sort(np.asarray(values)).astype(key_dtype(engine.params.key_bits))


def chain(engine, model, random, probes):
    """Stretches with their models: a full subwindow, a newest one, and tuples of the batch."""
    made = []
    for number, (capacity, batches) in enumerate([(3_000, (2_500, 500)), (4_000, (900, 90, 9))]):
        engine.create(Side.LEFT, number, capacity)
        judge = model(engine.params.key_bits)
        for size in batches:
            tuples = judge.batch(random.integers(-200, 200, size))
            engine.insert(Side.LEFT, number, tuples)
            judge.insert(tuples)
        made.append((number, None, judge))
    passing = model(engine.params.key_bits)
    passing.insert(passing.batch(random.integers(-200, 200, 300)))
    made.append((None, passing.tuples, passing))
    for number, tuples, judge in made:
        rows = len(judge.tuples)
        sight = None
        first = random.integers(0, rows, probes)
        if number == 0:
            sight = Sight(
                first.astype(np.uint32), random.integers(0, rows, probes).astype(np.uint32)
            )
        elif tuples is not None:  # row numbers that begin again at 2**32
            sight = Sight((first + BASE).astype(np.uint32), rows // 2, BASE)
        carried = {
            "value v": random.integers(-(1 << 62), 1 << 62, rows),
            "least v": random.integers(-9, 9, rows),
            "value f": random.random(rows),
        }
        yield Stretch(number, tuples, sight, carried), judge


def expected(stretches, probes, probe):
    """Count and measures of one probe, tuple by tuple."""
    count, total, least, floats = 0, 0, LIMITS.max, 0.0
    for stretch, judge in stretches:
        rids = judge.rids(probes, probe).astype(np.int64)
        if stretch.sight is not None:
            first, rows, base = stretch.sight[:3]
            seen = (rids + base - int(first[probe])) % (1 << 32)
            rids = rids[seen < (rows[probe] if stretch.number == 0 else rows)]
        count += len(rids)
        total += sum(stretch.carried["value v"][rids].tolist())
        least = min([least, *stretch.carried["least v"][rids].tolist()])
        floats += stretch.carried["value f"][rids].sum()
    return count, (total + (1 << 63)) % (1 << 64) - (1 << 63), least, floats


@pytest.mark.parametrize("bands", [((-30, 40),), ((-90, -50), (-9, 9), (60, None))])
def test_what_each_probe_sees_is_counted_and_summed(engine, model, bands):
    random = np.random.default_rng(11)
    keys = keys_of(engine, random.integers(-250, 250, 150))
    probes = Probes(Side.RIGHT, keys, Predicate(tuple(Band(*ends) for ends in bands)))
    stretches = list(chain(engine, model, random, len(keys)))
    asked = [stretch for stretch, _ in stretches]
    [(counts, nothing)] = engine.summarise([Question(probes, asked)])
    [(again, (totals, least, floats))] = engine.summarise([Question(probes, asked, MEASURES)])
    wanted = [expected(stretches, probes, probe) for probe in range(len(keys))]
    assert counts.tolist() == again.tolist() == [count for count, *_ in wanted]
    assert nothing == [] and counts.max() > 100
    assert totals.tolist() == [total for _, total, _, _ in wanted]
    assert least.tolist() == [value for _, _, value, _ in wanted]
    assert np.allclose(floats, [value for *_, value in wanted], rtol=1e-12)


def test_questions_of_both_streams_are_answered_at_once(engine, model):
    random = np.random.default_rng(23)
    questions, wanted = [], []
    for side, size in zip(Side, (70, 900), strict=True):
        judge = model(engine.params.key_bits)
        engine.create(side, 0, 2_000)
        judge.insert(judge.batch(random.integers(-99, 99, 1_500)))
        engine.insert(side, 0, judge.tuples)
        keys = keys_of(engine, random.integers(-120, 120, size))
        probes = Probes(side.other, keys, Predicate((Band(-4, 9),)))
        passing = judge.tuples[::3]
        questions.append(Question(probes, [
            Stretch(0, None, None, {}), Stretch(None, passing, None, {}),
        ]))
        beside = model(engine.params.key_bits)
        beside.insert(passing)
        wanted.append(judge.sizes(probes) + beside.sizes(probes))
    nobody = keys_of(engine, [])
    for asked in (questions, questions[::-1]):
        found = engine.summarise(asked)
        for question, (counts, _) in zip(asked, found, strict=True):
            assert counts.tolist() == wanted[question.stored].tolist()
    empty = Question(Probes(Side.LEFT, nobody, compare("=")), questions[1].stretches)
    [(counts, _), (none, _)] = engine.summarise([questions[0], empty])
    assert counts.tolist() == wanted[0].tolist() and none.tolist() == []


def test_tuples_beyond_number_are_not_looked_at(engine, model):
    keys = keys_of(engine, [7] * 40)
    probes = Probes(Side.RIGHT, keys, compare("="))
    judge = model(engine.params.key_bits)
    engine.create(Side.LEFT, 0, 5_000)
    engine.insert(Side.LEFT, 0, judge.batch([7] * 5_000))
    rows = np.full(40, 4_900, np.uint32)
    carried = {"value v": np.ones(5_000, np.int64)}
    partly = Stretch(0, None, Sight(np.zeros(40, np.uint32), rows), carried)
    whole = Stretch(0, None, None, carried)
    for measures in ((), (TOTAL,)):
        assert engine.summarise([Question(probes, [partly], measures)]) is None
        [(counts, _)] = engine.summarise([Question(probes, [whole], measures)])
        assert counts.tolist() == [5_000] * 40
    negated = Probes(Side.RIGHT, keys, compare("<>"))
    assert engine.summarise([Question(negated, [whole])]) is None


def watching(begin, end, probes, random):
    """A sight whose edges move within a batch: some see what lies in `begin`, some in `end`."""
    first, stop = random.integers(*begin, probes), random.integers(*end, probes)
    some = int(first.min()), int(stop.max())
    every = int(first.max()), int(stop.min())
    rows = np.maximum(stop - first, 0).astype(np.uint32)
    return Sight((first + BASE).astype(np.uint32), rows, BASE, some, every)


EDGES = {
    "move on": [((50 * n, 50 * n + 80), (4_000, 4_001)) for n in range(1, 12)],
    "at both ends": [((30 * n, 30 * n + 40), (1_000 + 90 * n, 1_200 + 90 * n)) for n in range(9)],
    "jump": [((9, 70), (2_000, 2_001)), ((900, 999), (1_500, 1_650)), ((3, 4), (2_999, 3_000))],
    "meet": [((900, 990), (2_000, 2_100)), ((1_900, 2_100), (2_000, 2_100)), ((5, 9), (900, 902))],
    "stay": [((400, 500), (5_000, 5_001))] * 3,
}


@pytest.mark.parametrize("edges", EDGES)
def test_frontiers_follow_the_edges_of_windows(engine, model, edges):
    """Of a full subwindow and of one that takes more; some of the rows cannot match."""
    random = np.random.default_rng(7)
    capacities, probes = (3_000, 9_000), 400
    judges = [model(engine.params.key_bits) for _ in capacities]
    for number, (capacity, judge) in enumerate(zip(capacities, judges, strict=True)):
        engine.create(Side.LEFT, number, capacity)
        tuples = judge.batch(random.integers(-2_000, 2_000, 2_700))
        tuples["rid"] = tuples["rid"] * 10 // 9
        judge.insert(tuples)
        engine.insert(Side.LEFT, number, tuples)
    values = random.integers(-(1 << 62), 1 << 62, 9_000)
    for begin, end in EDGES[edges]:
        keys = keys_of(engine, random.integers(-2_000, 2_000, probes))
        asked = Probes(Side.RIGHT, keys, Predicate((Band(-200, -150), Band(-90, 300))))
        sight = watching(begin, end, probes, random)
        stretches = [Stretch(number, None, sight, {"value v": values}) for number in (0, 1)]
        [(counts, _)] = engine.summarise([Question(asked, stretches)])
        [(again, (totals,))] = engine.summarise([Question(asked, stretches, (TOTAL,))])
        for probe in range(probes):
            rids = np.concatenate([judge.rids(asked, probe) for judge in judges]).astype(np.int64)
            rids = rids[(rids + BASE - int(sight.first[probe])) % (1 << 32) < sight.rows[probe]]
            assert counts[probe] == again[probe] == len(rids)
            with np.errstate(over="ignore"):
                assert totals[probe] == values[rids].sum()
        more = judges[1].batch(random.integers(-2_000, 2_000, 40))
        more["rid"] += 300
        judges[1].insert(more)
        engine.insert(Side.LEFT, 1, more)
    assert all(window.frontier for window in engine._windows[Side.LEFT].values())


def test_a_frontier_is_made_ahead_for_batches_whose_edges_go_on_as_they_went(engine, model):
    """Seldom where looks are many, and at once where the edge moves otherwise or tuples come."""
    random = np.random.default_rng(19)
    judge = model(engine.params.key_bits)
    engine.create(Side.LEFT, 0, 60_000)
    judge.insert(judge.batch(random.integers(-900_000, 900_000, 50_000)))
    engine.insert(Side.LEFT, 0, judge.tuples)
    window, keys = engine._windows[Side.LEFT][0], keys_of(engine, np.linspace(-9e5, 9e5, 160))
    probes = Probes(Side.RIGHT, keys, Predicate((Band(-9_000, 9_000),)))
    numbers = []

    def ask(begin, end):
        sight = watching(begin, end, len(keys), random)
        [(counts, _)] = engine.summarise([Question(probes, [Stretch(0, None, sight, {})])])
        for probe in range(len(keys)):
            rids = judge.rids(probes, probe).astype(np.int64) + BASE - int(sight.first[probe])
            assert counts[probe] == (rids % (1 << 32) < sight.rows[probe]).sum()
        numbers.append(window.frontier.number if window.frontier else 0)

    for batch in range(12):
        ask((40 * batch, 40 * batch + 40), (50_000, 50_001))
    assert 0 < len(set(numbers[3:])) < 5
    before = len(numbers)
    for batch in range(12):
        ask((600, 601), (20_000 + 40 * batch, 20_040 + 40 * batch))
    assert len(set(numbers[before:])) < 5
    ask((9_000, 9_040), (50_000, 50_001))
    ask((9_000, 9_040), (40_000, 40_100))
    more = judge.batch(random.integers(-900_000, 900_000, 500))
    judge.insert(more)
    engine.insert(Side.LEFT, 0, more)
    ask((9_000, 9_040), (40_000, 40_100))
    assert numbers[-4] < numbers[-3] < numbers[-2] < numbers[-1]


def test_an_engine_that_met_too_many_draws_frontiers_and_counts_again(engine, model):
    judge = model(engine.params.key_bits)
    engine.create(Side.LEFT, 0, 9_000)
    judge.insert(judge.batch([7] * 9_000))
    engine.insert(Side.LEFT, 0, judge.tuples)
    sight = watching((100, 130), (8_000, 8_001), 40, np.random.default_rng(1))
    stretch = Stretch(0, None, sight, {"value v": np.arange(9_000)})
    for keys in ([-7] * 40, [7] * 40):  # after nothing was met, looks seem to cost little
        probes = Probes(Side.RIGHT, keys_of(engine, keys), compare("="))
        for measures in ((), (TOTAL,)):
            [(counts, _)] = engine.summarise([Question(probes, [stretch], measures)])
            assert counts.tolist() == (sight.rows if keys[0] == 7 else 0 * sight.rows).tolist()


def results(backend, rows, **options):
    """All results of a join of two columns of keys, pushed in five parts."""
    left, right = rows
    with host.StreamJoin(
        left=left.schema, right=right.schema, backend=backend, subwindow=9_000, **options
    ) as join:
        found = []
        for part in range(5):
            begin, size = part * left.num_rows // 5, left.num_rows // 5
            found += join.push(left=left.slice(begin, size), right=right.slice(begin, size))
        return pa.Table.from_batches([*found, *join.finish()])


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize(
    ("window", "time"), [("rows 12000", None), ("30 milliseconds", "t,t"), ("none", None)]
)
@pytest.mark.parametrize("on", ["l.x BETWEEN r.x - 2 AND r.x + 3", "l.x <= r.x"])
def test_joins_are_the_same_as_with_numpy(on, window, time, workers):
    """The second condition matches more than an engine looks at: the manager sums it then."""
    random = np.random.default_rng(3)
    rows = [
        pa.record_batch({
            "x": pa.array(random.integers(0, 300, 20_000), mask=random.random(20_000) < 0.02),
            "q": pa.array(random.integers(-9, 9, 20_000), mask=random.random(20_000) < 0.1),
            "t": pa.array(np.arange(20_000) * 3, pa.timestamp("us")),
        })
        for _ in range(2)
    ]
    asked = {"n": "count(*)", "a": "sum(l.q)", "b": "sum(r.q)", "c": "count(r.q)"}
    options = dict(
        on=on, window=window, time=time, emit="aggregate", aggregates=asked, batch=3_000
    )
    assert results("opencl", rows, workers=workers, **options).equals(
        results("numpy", rows, **options)
    )
