"""RtlBackend on a small simulated core, against the numpy backend."""

import re

import numpy as np
import pytest

from host.backend import Probes
from host.backends.numpy_backend import NumpyBackend
from host.backends.rtl_backend import RtlBackend
from host.errors import BackendUnavailable, WindowFull
from hw.spec import JoinParams, Side, compare, interval_dtype
from hw.spec.predicates import ALL, Band, Predicate
from hw.spec.tuples import NOT
from tests.helpers import exactly, make_tuples

PREDICATES = {
    **{operator: compare(operator, 1) for operator in ("=", "<>", "<", "<=", ">", ">=")},
    "bands": Predicate((Band(None, -9), Band(-5, -4), Band(0, 1), Band(7, None))),
    "outside": Predicate((Band(-2, 3),), negated=True),
    "nothing": Predicate(()),
    "everything": ALL,
}


@pytest.fixture
def engine(small_cores):
    opened = RtlBackend(JoinParams(), small_cores)
    yield opened
    opened.close()


def fill(engine, side, number, keys, parts):
    engine.create(side, number, len(keys))
    first = 0
    for part in np.array_split(keys, parts):
        engine.insert(side, number, make_tuples(part, first_rid=first))
        first += len(part)


def matched(engine, side, number, records):
    """The rids that each probe's records stand for."""
    rids = engine.rids(side, number)
    found = []
    for runs in records:
        inside = np.zeros(len(rids), bool)
        for start, end in runs.tolist():
            inside[start : end & ~int(NOT)] = True
        negated = bool(runs["end"][0] & NOT)
        found.append(sorted(rids[inside != negated].tolist()))
    return found


@pytest.mark.sim
@pytest.mark.parametrize("rows", [0, 1, 50, 200])
def test_it_finds_what_numpy_finds(engine, rows):
    rng = np.random.default_rng(rows)
    numpy = NumpyBackend(JoinParams())
    keys = rng.integers(-40, 40, rows)
    for side in Side:
        for backend in (engine, numpy):
            fill(backend, side, 3, keys, 4)
    assert engine.rids(Side.LEFT, 3).dtype == np.uint32
    assert sorted(engine.tuples(Side.LEFT, 3).tolist()) == sorted(
        numpy.tuples(Side.LEFT, 3).tolist()
    )
    for predicate in PREDICATES.values():
        for stored in Side:
            for count in (0, 1, 23):
                batch = np.sort(rng.integers(-60, 60, count)).astype(np.int32)
                probes = Probes(stored.other, batch, predicate=predicate)
                answers = [
                    matched(backend, stored, 3, backend.probe(stored, [3], probes)[0])
                    for backend in (engine, numpy)
                ]
                assert answers[0] == answers[1]


@pytest.mark.sim
def test_explicit_intervals_and_several_subwindows(engine):
    numpy = NumpyBackend(JoinParams())
    for number in (1, 2, 5):
        for backend in (engine, numpy):
            fill(backend, Side.RIGHT, number, np.arange(number * 40) // 3, 2)
    wanted = np.zeros((7, 2), interval_dtype(32))
    wanted["lo"][:, 0] = [5, 1, 9, 9, -3, 0, 30]
    wanted["hi"][:, 0] = [8, 1, 4, 20, -1, 99, 31]
    wanted["lo"][:, 1], wanted["hi"][:, 1] = 1, 0
    probes = Probes(Side.LEFT, np.arange(7, dtype=np.int32), wanted=wanted)
    got, expected = (backend.probe(Side.RIGHT, [5, 1], probes) for backend in (engine, numpy))
    for row, number in enumerate((5, 1)):
        assert matched(engine, Side.RIGHT, number, got[row]) == matched(
            numpy, Side.RIGHT, number, expected[row]
        )


@pytest.mark.sim
def test_slots_are_used_again_and_cycles_are_counted(engine):
    for number in range(20):
        fill(engine, Side.LEFT, number, np.arange(100), 2)
        if number >= 2:
            engine.expire(Side.LEFT, number - 2)
    use = engine.use()
    assert use.tuples == 2000
    assert use.cycles > 2000
    assert use.stalled < use.cycles
    engine.close()
    assert engine.use() == use


@pytest.mark.sim
def test_a_full_subwindow_takes_nothing(engine):
    fill(engine, Side.LEFT, 1, np.arange(10), 1)
    message = "1 tuples do not fit in a subwindow of 10 that holds 10"
    with pytest.raises(WindowFull, match=exactly(message)):
        engine.insert(Side.LEFT, 1, make_tuples([1]))


@pytest.mark.sim
def test_a_join_tells_its_cycles(small_cores, tmp_path, monkeypatch, capsys):
    from host.__main__ import main

    monkeypatch.setattr("host.backends.rtl_backend.library_directory", lambda: small_cores)
    files = [tmp_path / f"{name}.csv" for name in ("l", "r")]
    for file in files:
        file.write_text("x\n" + "\n".join(map(str, range(150))) + "\n")
    query = ["--on", "l.x = r.x", "--window", "none", "--backend", "rtl"]
    assert main(["join", *map(str, files), *query]) == 0
    report, summary = capsys.readouterr().err.splitlines()
    assert "150 pairs out" in summary
    found = re.fullmatch(
        r"rtl: ([\d,]+) cycles, \d+% of them waiting for memory, ([\d.]+) tuples a cycle; "
        "its time is unknown, as no core of these sizes is placed and routed",
        report,
    )
    assert float(found[2]) == round(300 / int(found[1].replace(",", "")), 3)


def test_without_a_library_it_says_how_to_get_one(tmp_path):
    message = (
        "backend rtl has no library of this gateware for 64-bit keys: "
        "build it with python -m sim.build"
    )
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        RtlBackend(JoinParams(key_bits=64), tmp_path)
