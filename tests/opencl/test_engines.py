"""Insertion and probing engines on OpenCL against numpy."""

import numpy as np
import pytest

from host.backend import Probes
from host.errors import WindowFull
from hw.spec.predicates import ALL, Band, Predicate, compare, empty_intervals
from hw.spec.tuples import NOT, Side, key_dtype, key_limits

pytestmark = pytest.mark.opencl

PREDICATES = {
    "=": compare("=", 3),
    "<>": compare("<>"),
    "<": compare("<", 2),
    "<=": compare("<="),
    ">": compare(">"),
    ">=": compare(">=", -4),
    "band": Predicate((Band(-5, 7),)),
    "bands": Predicate((Band(-40, -20), Band(-5, 7), Band(30, None))),
    "outside": Predicate((Band(-9, 9),), negated=True),
    "nothing": Predicate(()),
    "all": ALL,
}


def matched(engine, number, records):
    """The rids that the records of one probe stand for, ascending."""
    rids = engine.rids(Side.LEFT, number)
    inside = np.zeros(len(rids), int)
    for start, end in records.tolist():
        inside[start : end & ~int(NOT)] += 1
    assert inside.max(initial=0) <= 1
    negated = bool(records["end"][0] & NOT)
    return np.sort(rids[(inside == 1) != negated])


def check(engine, models, probes, some=6):
    """Records, counts and mirror of all subwindows agree with the models."""
    numbers = list(models)
    records = engine.probe(Side.LEFT, numbers, probes)
    counts = engine.counts(Side.LEFT, numbers, probes)
    sizes = [models[number].sizes(probes) for number in numbers]
    assert counts.tolist() == sum(sizes, np.zeros(len(probes), np.int64)).tolist()
    for row, number, size in zip(records, numbers, sizes, strict=True):
        named = ((row["end"] & ~NOT) - row["start"]).sum(axis=1)
        held = len(models[number].tuples)
        assert (held - named if probes.negated else named).tolist() == size.tolist()
        for probe in np.linspace(0, len(probes) - 1, min(some, len(probes)), dtype=int):
            wanted = models[number].rids(probes, probe)
            assert matched(engine, number, row[probe]).tolist() == wanted.tolist()


def keys_of(engine, values):
    return np.sort(np.asarray(values)).astype(key_dtype(engine.params.key_bits))


def fill(engine, model, number, capacity, batches):
    """A subwindow and its model, which took those batches of keys."""
    engine.create(Side.LEFT, number, capacity)
    judge = model(engine.params.key_bits)
    for keys in batches:
        tuples = judge.batch(np.asarray(keys))
        engine.insert(Side.LEFT, number, tuples)
        judge.insert(tuples)
    return judge


@pytest.mark.parametrize("seed", range(4))
def test_any_sequence_of_commands_is_what_numpy_says(engine, model, seed):
    random = np.random.default_rng(seed)
    models, newest = {}, -1
    for _ in range(25):
        if not models or random.random() < 0.12:
            newest += 1
            models[newest] = model(engine.params.key_bits)
            engine.create(Side.LEFT, newest, 12_000)
        span = int(random.choice([3, 1_000, (1 << 31) - 1]))
        room = 12_000 - len(models[newest].tuples)
        size = min(room, int(random.choice([1, 7, 60, 300, 1_100, 5_000])))
        tuples = models[newest].batch(random.integers(-span, span, size))
        engine.insert(Side.LEFT, newest, tuples)
        models[newest].insert(tuples)
        if len(models) > 3:
            oldest = min(models)
            engine.expire(Side.LEFT, oldest)
            del models[oldest]
        keys = keys_of(engine, random.integers(-span, span, int(random.integers(1, 700))))
        predicate = PREDICATES[str(random.choice(list(PREDICATES)))]
        check(engine, models, Probes(Side.RIGHT, keys, predicate))
        stored = engine.tuples(Side.LEFT, newest)
        assert np.sort(stored, order=["key", "rid"]).tolist() == models[newest].tuples.tolist()


@pytest.mark.parametrize("sizes", [(40, 40), (2_000, 1_300), (700, 5), (0, 90)])
def test_insertions_side_by_side_are_those_one_by_one(engine, model, sizes):
    """Both streams grow through every way into a tier and a main array, in step and out of it."""
    random = np.random.default_rng(17)
    judges = [model(engine.params.key_bits) for _ in Side]
    for side in Side:
        engine.create(side, 0, 20_000)
    for _ in range(9):
        batches = [
            judge.batch(random.integers(-500, 500, size))
            for judge, size in zip(judges, sizes, strict=True)
        ]
        engine.insert_all([(side, 0, batches[side]) for side in Side])
        for side in Side:
            judges[side].insert(batches[side])
            stored = np.sort(engine.tuples(side, 0), order=["key", "rid"])
            assert stored.tolist() == judges[side].tuples.tolist()
            keys = keys_of(engine, random.integers(-600, 600, 200))
            probes = Probes(side.other, keys, Predicate((Band(-3, 5),)))
            counts = engine.counts(side, [0], probes)
            assert counts.tolist() == judges[side].sizes(probes).tolist()


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("name", PREDICATES)
def test_every_predicate_in_both_directions(engine, model, name, side):
    random = np.random.default_rng(7)
    stored, bits = side.other, engine.params.key_bits
    judge = model(bits)
    engine.create(stored, 0, 1_000)
    for size in (300, 100):
        tuples = judge.batch(random.integers(-60, 60, size))
        engine.insert(stored, 0, tuples)
        judge.insert(tuples)
    keys = keys_of(engine, random.integers(-70, 70, 90))
    probes = Probes(side, keys, PREDICATES[name])
    assert engine.counts(stored, [0], probes).tolist() == judge.sizes(probes).tolist()
    records = engine.probe(stored, [0], probes)[0]
    named = ((records["end"] & ~NOT) - records["start"]).sum(axis=1)
    wanted = judge.sizes(probes)
    assert named.tolist() == (400 - wanted if probes.negated else wanted).tolist()
    explicit = Probes(side, keys, wanted=probes.intervals)
    again = engine.probe(stored, [0], explicit)[0]
    assert again["start"].tolist() == records["start"].tolist()
    assert again["end"].tolist() == (records["end"] & ~NOT).tolist()


@pytest.mark.parametrize("reach", [0, 1, 1000])
def test_bounds_saturate_at_the_ends_of_the_type(engine, model, reach):
    smallest, largest = key_limits(engine.params.key_bits)
    ends = [smallest, smallest, smallest + 1, -1, 0, 0, 1, largest - 1, largest, largest]
    judge = fill(engine, model, 0, 100, [ends, ends[::2]])
    keys = keys_of(engine, ends)
    span = largest - smallest
    for band in (
        Band(-1 - reach, 1), Band(reach, span), Band(-span, -reach), Band(span, span),
        Band(2, 1 << 70), Band(-(1 << 70), -2), Band(span + 1, None), Band(None, -span - 1),
        Band(None, reach), Band(span - reach, None),
    ):
        for negated in (False, True):
            check(engine, {0: judge}, Probes(Side.RIGHT, keys, Predicate((band,), negated)), 10)


@pytest.mark.parametrize(
    "batches",
    [
        [[5]],
        [[7] * 3_000, [7] * 50, [7] * 600],
        [range(4_000), range(0, 4_000, 37), range(50)],
        [range(2_000), range(2_000, 4_000), range(4_000, 4_100)],
        [range(4_000, 2_000, -1), range(2_000, 0, -1)],
        [[0] * 1_500 + [9] * 1_500, [0, 9] * 100, [5] * 300],
    ],
    ids=["one", "all equal", "spread", "ascending", "descending", "two keys"],
)
def test_shapes_of_data_that_pieces_and_runs_meet(engine, model, batches):
    judge = fill(engine, model, 0, 20_000, batches)
    keys = keys_of(engine, range(-2, 4_100, 41))
    check(engine, {0: judge}, Probes(Side.RIGHT, keys, Predicate((Band(-3, 3),))))
    check(engine, {0: judge}, Probes(Side.RIGHT, keys, compare("=")))


@pytest.mark.parametrize("span", [3, 300, 1 << 31], ids=["few", "some", "many"])
@pytest.mark.parametrize("sizes", [(3_000,) * 3, (9_000, 1_500), (9_000, 300), (400, 9_000)])
def test_equal_keys_keep_their_order_however_dense_the_batch(engine, model, sizes, span):
    """Runs of old tuples between two new ones: of none, of some, of many lines."""
    random = np.random.default_rng(5)
    batches = [random.integers(-span, span, size) for size in sizes]
    judge = fill(engine, model, 0, sum(sizes), batches)
    assert engine.tuples(Side.LEFT, 0).tolist() == judge.tuples.tolist()


def test_batches_of_any_density_start_at_their_own_level(engine, model):
    random = np.random.default_rng(3)
    judge = fill(engine, model, 0, 70_000, [random.integers(-(1 << 30), 1 << 30, 70_000)])
    for probes in (1, 2, 33, 200, 5_000, 80_000):
        keys = keys_of(engine, random.integers(-(1 << 30), 1 << 30, probes))
        check(engine, {0: judge}, Probes(Side.RIGHT, keys, Predicate((Band(-5000, 5000),))), 3)


@pytest.mark.parametrize("name", ["=", "<>", "bands", "outside"])
def test_many_subwindows_are_counted_together(engine, model, name):
    """More arrays than are searched side by side, some of them empty."""
    random = np.random.default_rng(11)
    judges = {}
    for number in range(13):
        sizes = [0] if number % 5 == 3 else [2_000, 100]
        batches = [random.integers(-900, 900, size) for size in sizes]
        judges[number] = fill(engine, model, number, 4_000, batches)
    keys = keys_of(engine, random.integers(-1_000, 1_000, 130))
    check(engine, judges, Probes(Side.RIGHT, keys, PREDICATES[name]))


def test_explicit_intervals_need_not_ascend(engine, model):
    random = np.random.default_rng(4)
    judge = fill(engine, model, 0, 9_000, [random.integers(0, 5_000, 8_000)])
    wanted = empty_intervals(engine.params.key_bits, (300, 2))
    wanted["lo"][:, 0] = random.integers(0, 5_000, 300)
    wanted["hi"][:, 0] = wanted["lo"][:, 0] + random.integers(-2, 40, 300)
    wanted["lo"][50:60, 1], wanted["hi"][50:60, 1] = 6_000, 7_000
    keys = keys_of(engine, range(300))
    check(engine, {0: judge}, Probes(Side.RIGHT, keys, wanted=wanted), 60)


def test_empty_subwindows_batches_and_lists_are_answers(engine, model):
    engine.create(Side.LEFT, 0, 10)
    judge = model(engine.params.key_bits)
    one = Probes(Side.RIGHT, keys_of(engine, [1]), compare("="))
    none = Probes(Side.RIGHT, keys_of(engine, []), compare("="))
    check(engine, {0: judge}, one)
    engine.insert(Side.LEFT, 0, judge.batch(np.empty(0, int)))
    assert engine.probe(Side.LEFT, [0], none).shape[:2] == (1, 0)
    assert engine.probe(Side.LEFT, [], one).shape[:2] == (0, 1)
    assert engine.counts(Side.LEFT, [], one).tolist() == [0]
    assert len(engine.rids(Side.LEFT, 0)) == len(engine.tuples(Side.LEFT, 0)) == 0


def test_a_full_subwindow_is_one_array_and_takes_no_more(engine, model):
    judge = fill(engine, model, 0, 500, [range(300), range(100, 300)])
    assert engine.tuples(Side.LEFT, 0).tolist() == judge.tuples.tolist()
    probes = Probes(Side.RIGHT, keys_of(engine, [5]), compare("="))
    assert engine.probe(Side.LEFT, [0], probes).shape == (1, 1, 1)
    with pytest.raises(
        WindowFull, match=r"^2 tuples do not fit in a subwindow of 500 that holds 500$"
    ):
        engine.insert(Side.LEFT, 0, judge.batch([1, 2]))


def test_records_are_the_callers(engine, model):
    judge = fill(engine, model, 0, 5_000, [range(2_000)])
    probes = Probes(Side.RIGHT, keys_of(engine, range(100)), compare("="))
    first = engine.probe(Side.LEFT, [0], probes)[0]
    kept = first.copy()
    for _ in range(5):
        engine.insert(Side.LEFT, 0, judge.batch(np.zeros(400, int)))
        engine.probe(Side.LEFT, [0], probes)
    engine.expire(Side.LEFT, 0)
    assert first.tolist() == kept.tolist()


def test_the_mirror_is_read_only(engine, model):
    fill(engine, model, 0, 10, [[1, 2]])
    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        engine.rids(Side.LEFT, 0)[0] = 1


def test_expired_memory_is_used_again(engine, model):
    for number in range(12):
        fill(engine, model, number, 900_000, [np.arange(900_000)])
        engine.expire(Side.LEFT, number)
    assert len(engine._pool.slabs) == 1


@pytest.mark.parametrize("cores", [1, 2, 8, 5])
def test_every_tuple_is_dealt_to_one_core_in_turn(engine, model, cores):
    random = np.random.default_rng(12)
    tuples = model(engine.params.key_bits).batch(random.integers(-50, 50, 1_000))
    for turn in (0, 3):
        parts = engine.distribute(tuples, cores, turn)
        wanted = [tuples[(tuples["rid"] + turn) % cores == core] for core in range(cores)]
        assert [part.tolist() for part in parts] == [part.tolist() for part in wanted]
    assert [len(part) for part in engine.distribute(tuples[:0], cores)] == [0] * cores
