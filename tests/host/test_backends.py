"""The one conformance suite: every engine keeps the interface, and every join is the law's."""

import datetime
import decimal
import operator

import numpy as np
import pyarrow as pa
import pytest

from host.backend import Probes
from host.errors import WindowFull
from hw.spec import reference
from hw.spec.predicates import ALL, Band, Predicate, compare, empty_intervals
from hw.spec.tuples import NOT, RECORD, Side, interval_dtype, key_dtype, key_limits
from tests.conftest import BACKENDS, CONFORMING
from tests.helpers import (
    arrival_of,
    exactly,
    expected_pairs,
    in_splits,
    join_of,
    make_tuples,
    null_safe,
    open_engine,
    pairs_of,
    push_all,
    run_join,
    same_pairs,
    stream,
)

PREDICATES = {
    "equal": compare("="),
    "unequal": compare("<>"),
    "less": compare("<", 1),
    "at most": compare("<="),
    "more": compare(">", -2),
    "at least": compare(">="),
    "band": Predicate((Band(-2, 3),)),
    "outside": Predicate((Band(-2, 3),), negated=True),
    "bands": Predicate((Band(None, -6), Band(-1, 0), Band(4, 5))),
    "nothing": Predicate(()),
    "everything": ALL,
}
#: Structures that run on the host and answer every predicate; the width of keys is all one to them.
INDEXES = ["rap", "wib", "chain", "im", "pim", "btree", "loop"]
ENGINES = [
    pytest.param(one, marks=[pytest.mark.sim] * (one[0] == "rtl"), id=" ".join(map(str, one)))
    for one in (
        *((name, "bisort", bits) for name in (*BACKENDS, "rtl") for bits in (32, 64)),
        *(("numpy", name, 64 if name == "wib" else 32) for name in INDEXES),
    )
]


def backend_of(request, monkeypatch, name):
    """That name; the rtl backend's gateware is a small core then."""
    if name == "rtl":
        where = request.getfixturevalue("small_cores")
        monkeypatch.setattr("host.backends.rtl_backend.library_directory", lambda: where)
    return name


@pytest.fixture(params=CONFORMING)
def backend(request, monkeypatch):
    return backend_of(request, monkeypatch, request.param)


@pytest.fixture(params=ENGINES)
def asked_engine(request):
    return request.param


@pytest.fixture
def key_bits(asked_engine):
    return asked_engine[2]


@pytest.fixture
def engine(request, monkeypatch, asked_engine):
    name, index, bits = asked_engine
    opened = open_engine(backend_of(request, monkeypatch, name), bits, index)
    yield opened
    opened.close()


def filled(engine, side, number, keys, key_bits, parts=1):
    """A subwindow that took those keys in some inserts; its keys in order of position."""
    engine.create(side, number, max(1, len(keys)))
    for part in np.array_split(np.arange(len(keys)), parts):
        if len(part):
            engine.insert(side, number, make_tuples(np.asarray(keys)[part], key_bits, part[0]))
    return sorted(keys)


def matched(engine, side, number, records):
    """The rids that records of one probe stand for, sorted."""
    rids = engine.rids(side, number)
    runs = [(int(record["start"]), int(record["end"] & ~NOT)) for record in records]
    inside = np.zeros(len(rids), int)
    for start, end in runs:
        assert 0 <= start <= end <= len(rids)
        inside[start:end] += 1
    assert inside.max(initial=0) <= 1, "a position lies in two runs"
    negated = {bool(record["end"] & NOT) for record in records}
    assert len(negated) == 1
    return sorted(rids[inside == (0 if negated.pop() else 1)].tolist())


def holds(predicate, probe, key, stored):
    """Whether a probe key of that side matches a stored key."""
    return predicate.holds(*((key, stored) if probe is Side.LEFT else (stored, key)))


# The engine by itself.


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("side", Side)
def test_the_main_array_ascends_and_equal_keys_keep_their_order(engine, key_bits, side, parts):
    keys = np.random.default_rng(1).integers(-5, 5, 60)
    filled(engine, side, 0, keys, key_bits, parts)
    wanted = make_tuples(keys, key_bits)
    stored = engine.tuples(side, 0)
    assert stored.dtype == wanted.dtype
    assert stored.tolist() == wanted.tolist()
    assert engine.rids(side, 0).tolist() == wanted["rid"].tolist()


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("probe", Side)
def test_a_probe_finds_what_the_reference_finds(engine, key_bits, name, probe):
    random = np.random.default_rng(2)
    predicate, stored = PREDICATES[name], probe.other
    chain = {number: random.integers(-9, 9, size) for number, size in ((0, 40), (3, 1), (4, 17))}
    for number, keys in chain.items():
        filled(engine, stored, number, keys, key_bits, parts=3)
    every = np.concatenate(list(chain.values()))
    keys = np.sort(random.integers(-12, 12, 25)).astype(key_dtype(key_bits))
    wanted_probes = [
        Probes(probe, keys, predicate=predicate),
        Probes(probe, keys, wanted=predicate.intervals(probe, keys)),
    ]
    for probes in wanted_probes:
        records = engine.probe(stored, list(chain), probes)
        counts = engine.counts(stored, list(chain), probes)
        assert counts.dtype == np.int64
        # Explicit intervals are those of the band itself, also where the predicate is negated.
        turned = predicate.negated and not probes.negated
        assert counts.tolist() == [
            sum(holds(predicate, probe, key, held) != turned for held in every.tolist())
            for key in keys.tolist()
        ]
        assert records.dtype == RECORD
        assert records.shape[:2] == (len(chain), len(keys))
        for row, (number, held) in zip(records, chain.items(), strict=True):
            rids = make_tuples(held, key_bits)["rid"]
            for key, found in zip(keys.tolist(), row, strict=True):
                runs = reference.probe_records(sorted(held.tolist()), key, probe, predicate)
                wanted = np.zeros(len(held), bool)
                for start, end in runs:
                    wanted[start:end] = True
                if probes.negated:
                    wanted = ~wanted
                assert matched(engine, stored, number, found) == sorted(rids[wanted].tolist())


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("probe", Side)
def test_candidates_are_what_matches(engine, key_bits, name, probe):
    random = np.random.default_rng(4)
    predicate, stored = PREDICATES[name], probe.other
    chain = {number: random.integers(-9, 9, size) for number, size in ((0, 50), (3, 1), (4, 17))}
    for number, keys in chain.items():
        filled(engine, stored, number, keys, key_bits, parts=3)
    keys = np.sort(random.integers(-12, 12, 25)).astype(key_dtype(key_bits))
    found = engine.find(stored, list(chain), Probes(probe, keys, predicate=predicate))
    for candidates, held in zip(found, chain.values(), strict=True):
        wanted = [
            (place, rid)
            for place, key in enumerate(keys.tolist())
            for rid, other in enumerate(held.tolist())
            if holds(predicate, probe, key, other)
        ]
        pairs = [pair for part in candidates.pairs(7) for pair in zip(*part, strict=True)]
        same_pairs(pairs, wanted)
        sizes = np.bincount([place for place, _ in wanted], minlength=len(keys))
        assert candidates.sizes().tolist() == sizes.tolist()
        odd = np.arange(len(keys)) % 2 == 1
        pairs = [pair for part in candidates.pairs(7, odd) for pair in zip(*part, strict=True)]
        same_pairs(pairs, [pair for pair in wanted if pair[0] % 2])
        first, end = np.full(len(keys), 3), np.arange(len(keys))
        if not any(place % 2 for place, _ in wanted):
            continue  # sums are only asked for where there are many
        assert candidates.sums(first, end, None, odd).tolist() == [
            sum(3 <= rid < at for place, rid in wanted if place == at) * (at % 2)
            for at in range(len(keys))
        ]


@pytest.mark.parametrize("name", PREDICATES)
@pytest.mark.parametrize("probe", Side)
def test_a_batch_is_matched_without_being_stored(engine, key_bits, name, probe):
    random = np.random.default_rng(3)
    predicate, held = PREDICATES[name], random.integers(-9, 9, 30)
    filled(engine, probe.other, 0, [0, 1], key_bits)
    tuples = make_tuples(held, key_bits, first_rid=5)
    keys = np.sort(random.integers(-12, 12, 20)).astype(key_dtype(key_bits))
    records = engine.match(tuples, Probes(probe, keys, predicate=predicate))
    assert records.shape[:1] == (20,)
    for key, runs in zip(keys.tolist(), records, strict=True):
        inside = np.zeros(len(tuples), bool)
        for run in runs:
            inside[run["start"] : run["end"] & ~NOT] = True
        if predicate.negated:
            inside = ~inside
        wanted = [holds(predicate, probe, key, other) for other in tuples["key"].tolist()]
        assert inside.tolist() == wanted
    assert engine.tuples(probe.other, 0)["key"].tolist() == [0, 1]


def test_keys_and_bounds_reach_the_ends_of_the_type(engine, key_bits):
    smallest, largest = key_limits(key_bits)
    ends = [smallest, smallest + 1, -1, 0, 1, largest - 1, largest]
    filled(engine, Side.RIGHT, 0, ends, key_bits)
    keys = np.array(ends, key_dtype(key_bits))
    span = largest - smallest
    for band in (Band(-1, 1), Band(0, span), Band(-span, -1), Band(span, span), Band(2, 1 << 70)):
        predicate = Predicate((band,))
        records = engine.probe(Side.RIGHT, [0], Probes(Side.LEFT, keys, predicate=predicate))[0]
        for left, found in zip(ends, records, strict=True):
            wanted = [rid for rid, right in enumerate(ends) if predicate.holds(left, right)]
            assert matched(engine, Side.RIGHT, 0, found) == wanted


def test_explicit_intervals_may_be_empty_or_single(engine, key_bits):
    filled(engine, Side.LEFT, 0, [1, 2, 2, 5, 9], key_bits)
    wanted = empty_intervals(key_bits, (3, 2))
    wanted[1, 0] = (2, 2)
    wanted[2, 0], wanted[2, 1] = (0, 1), (5, 100)
    keys = np.array([0, 1, 2], key_dtype(key_bits))
    records = engine.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, wanted=wanted))[0]
    assert [matched(engine, Side.LEFT, 0, found) for found in records] == [[], [1, 2], [0, 3, 4]]


def test_an_interval_that_ends_before_it_begins_is_an_empty_run(engine, key_bits):
    filled(engine, Side.LEFT, 0, range(10), key_bits)
    wanted = np.array([[(7, 2)], [(5, 4)]], interval_dtype(key_bits))
    keys = np.array([0, 1], key_dtype(key_bits))
    records = engine.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, wanted=wanted))
    assert (records["start"] == records["end"]).all()


def test_an_empty_subwindow_answers_with_empty_runs(engine, key_bits):
    engine.create(Side.LEFT, 0, 10)
    keys = np.array([1, 2], key_dtype(key_bits))
    records = engine.probe(Side.LEFT, [0], Probes(Side.RIGHT, keys, predicate=ALL))
    assert records.shape[:2] == (1, 2)
    assert (records["start"] == records["end"]).all()
    assert len(engine.rids(Side.LEFT, 0)) == len(engine.tuples(Side.LEFT, 0)) == 0


def test_no_probes_and_no_subwindows_are_answers_too(engine, key_bits):
    filled(engine, Side.LEFT, 0, [1, 2], key_bits)
    nothing = Probes(Side.RIGHT, np.empty(0, key_dtype(key_bits)), predicate=compare("="))
    assert engine.probe(Side.LEFT, [0], nothing).shape[:2] == (1, 0)
    one = Probes(Side.RIGHT, np.ones(1, key_dtype(key_bits)), predicate=compare("="))
    assert engine.probe(Side.LEFT, [], one).shape[:2] == (0, 1)


def test_what_does_not_fit_is_refused_and_changes_nothing(engine, key_bits):
    engine.create(Side.LEFT, 0, 5)
    engine.insert(Side.LEFT, 0, make_tuples([3, 1, 2], key_bits))
    before = engine.tuples(Side.LEFT, 0)
    message = "3 tuples do not fit in a subwindow of 5 that holds 3"
    with pytest.raises(WindowFull, match=exactly(message)):
        engine.insert(Side.LEFT, 0, make_tuples([7, 8, 9], key_bits, 3))
    assert engine.tuples(Side.LEFT, 0).tolist() == before.tolist()
    engine.insert(Side.LEFT, 0, make_tuples([7, 0], key_bits, 3))
    assert engine.tuples(Side.LEFT, 0)["key"].tolist() == [0, 1, 2, 3, 7]


def test_subwindows_of_the_two_streams_are_apart(engine, key_bits):
    filled(engine, Side.LEFT, 0, [1, 2], key_bits)
    filled(engine, Side.RIGHT, 0, [3], key_bits)
    filled(engine, Side.LEFT, 1, [4], key_bits)
    engine.expire(Side.LEFT, 0)
    assert engine.tuples(Side.RIGHT, 0)["key"].tolist() == [3]
    assert engine.tuples(Side.LEFT, 1)["key"].tolist() == [4]


def test_records_and_tuples_are_the_callers(engine, key_bits):
    filled(engine, Side.LEFT, 0, [1, 3], key_bits)
    engine.create(Side.LEFT, 1, 10)
    engine.insert(Side.LEFT, 1, make_tuples([1, 3], key_bits))
    keys = np.array([3], key_dtype(key_bits))
    probes = Probes(Side.RIGHT, keys, predicate=compare("="))
    records, tuples = engine.probe(Side.LEFT, [1], probes), engine.tuples(Side.LEFT, 1)
    held = records.copy(), tuples.copy()
    engine.insert(Side.LEFT, 1, make_tuples([2, 0, 3], key_bits, 2))
    engine.probe(Side.LEFT, [0, 1], probes)
    assert records.tobytes() == held[0].tobytes()
    assert tuples.tobytes() == held[1].tobytes()


def test_inserted_tuples_may_be_changed_afterwards(engine, key_bits):
    engine.create(Side.LEFT, 0, 10)
    tuples = make_tuples([1, 2], key_bits)
    engine.insert(Side.LEFT, 0, tuples)
    tuples["key"], tuples["rid"] = 99, 99
    assert engine.tuples(Side.LEFT, 0).tolist() == [(1, 0), (2, 1)]


# The engine in a join.

#: Text, and the same over plain values; {n} is a distance of n in the type of the columns.
CONDITIONS = {
    "l.a = r.b": operator.eq,
    "l.a <> r.b": operator.ne,
    "l.a < r.b": operator.lt,
    "r.b + {1} >= l.a": lambda a, b: b + 1 >= a,
    "l.a > r.b - {2}": lambda a, b: a > b - 2,
    "l.a >= r.b": operator.ge,
    "l.a BETWEEN r.b - {2} AND r.b + {3}": lambda a, b: b - 2 <= a <= b + 3,
    "NOT l.a BETWEEN r.b - {2} AND r.b + {3}": lambda a, b: not b - 2 <= a <= b + 3,
    "l.a = r.b + {1} OR l.a BETWEEN r.b + {1} AND r.b + {2} OR r.b - {4} = l.a": (
        lambda a, b: a - b in (1, 2, -4)
    ),
    "ABS(l.a - r.b) < {2}": lambda a, b: abs(a - b) < 2,
}
WINDOWS = {
    "rows 9": {},
    "rows 4,11": {},
    "6 s": {"time": "t"},
    "-2 s..7 s": {"time": "t", "lateness": "5 s"},
    "none": {},
}
TYPES = {
    "int8": pa.int8(),
    "uint16": pa.uint16(),
    "int32": pa.int32(),
    "uint32": pa.uint32(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "decimal(5,2)": pa.decimal128(5, 2),
    "decimal(18,4)": pa.decimal128(18, 4),
    "date32": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "zoned": pa.timestamp("us", "UTC"),
}
BATCHES = (1, 7, 9, 1_000)
WORKERS = (1, 2, 5)
PUSHES = [(5, 2), (0, 3), (1, 0), (4, 4)]


def distance(kind, number):
    """That distance between two values of the type, as SQL."""
    temporal = pa.types.is_date(kind) or pa.types.is_timestamp(kind)
    return f"INTERVAL '{number}' DAY" if temporal else str(number)


def column(kind, numbers):
    """Those numbers as values of the type; of dates and times they are days."""
    if pa.types.is_decimal(kind):
        numbers = [None if n is None else decimal.Decimal(n) for n in numbers]
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        start, step = datetime.datetime(2024, 2, 27), datetime.timedelta(days=1)
        numbers = [None if n is None else start + n * step for n in numbers]
    return pa.array(numbers, kind)


def two_streams(rows=(18, 20)):
    """Two lists of numbers from 0 to 12, some None, and event times that go back a little."""
    random = np.random.default_rng(rows[0])
    streams = []
    for count in rows:
        numbers = [None if n == 13 else int(n) for n in random.integers(0, 14, count)]
        seconds = np.arange(count) // 2 + random.integers(-6, 1, count)
        times = pa.array((seconds * 1_000_000).tolist(), pa.timestamp("us"))
        streams.append((numbers, times))
    return streams


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("on", CONDITIONS)
def test_a_join_is_the_references(backend, on, kind, window):
    if on.startswith("ABS") and ("date" in kind or "time" in kind or "zoned" in kind):
        on = "l.a BETWEEN r.b - {3} AND r.b - {1}"  # no difference of times has an ABS
        condition = null_safe(lambda a, b: b - 3 <= a <= b - 1)
    else:
        condition = null_safe(CONDITIONS[on])
    numbers, options = two_streams(), WINDOWS[window]
    plain = [stream(n=values, t=times) for values, times in numbers]
    left, right = (
        stream(**{name: column(TYPES[kind], values)}, t=times)
        for name, (values, times) in zip("ab", numbers, strict=True)
    )
    splits = in_splits(left.num_rows, right.num_rows, PUSHES)
    wanted = expected_pairs(
        lambda a, b: condition(a["n"], b["n"]), window, *plain, arrival_of(splits), **options
    )
    text = on.format(*(distance(TYPES[kind], number) for number in range(5)))
    # In turn, so that each condition meets each number of workers in each window.
    start = len(on) + list(TYPES).index(kind)
    for turn, batch in enumerate(BATCHES):
        if backend != "numpy" and (start + turn + list(WINDOWS).index(window)) % len(BATCHES):
            continue  # the others take one batch size a case
        workers = WORKERS[(start + turn) % len(WORKERS)]
        found = run_join(
            text, window, left, right, splits, backend=backend, batch=batch, linger=60,
            workers=workers, subwindow=3, **options,
        )  # fmt: skip
        same_pairs(found, wanted)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("window", WINDOWS)
def test_counts_are_the_references(backend, window, batch, workers):
    left, right = (
        stream(**{name: column(pa.int32(), values)}, t=times)
        for name, (values, times) in zip("ab", two_streams(rows=(30, 33)), strict=True)
    )
    splits = in_splits(30, 33, PUSHES)
    subwindow = {1: None, 7: 1, 9: 8, 1_000: 3}[batch]
    arrival = arrival_of(splits)
    near = null_safe(lambda a, b: b - 2 <= a <= b + 2)
    wanted = expected_pairs(
        lambda a, b: near(a["a"], b["b"]), window, left, right, arrival, **WINDOWS[window]
    )
    with join_of(
        "l.a BETWEEN r.b - 2 AND r.b + 2", window, left, right, emit="counts", backend=backend,
        batch=batch, workers=workers, subwindow=subwindow, **WINDOWS[window],
    ) as join:  # fmt: skip
        found = pairs_of(push_all(join, left, right, splits))
    assert found == reference.match_counts(arrival, wanted)
