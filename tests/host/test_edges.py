"""Sums over runs with edges, and the rank matrix below them, against sums one by one."""

import numpy as np
import pyarrow as pa
import pytest

import host
from host.candidates import RunCandidates
from host.edges import sums_over_runs
from host.ranks import RankMatrix
from host.records import Runs
from tests.helpers import stream


@pytest.mark.parametrize("count", [1, 2, 3, 8, 9, 64, 100])
def test_a_rank_matrix_sums_what_is_below(count):
    rng = np.random.default_rng(count)
    numbers, weights = rng.permutation(count), rng.integers(-5, 6, count)
    begin = rng.integers(0, count + 1, 200)
    end = np.maximum(begin, rng.integers(0, count + 1, 200))
    bound = rng.integers(-1, count + 2, 200)
    wanted = [
        weights[low:high][numbers[low:high] < limit].sum()
        for low, high, limit in zip(begin, end, bound, strict=True)
    ]
    assert RankMatrix(numbers, weights).below(begin, end, bound).tolist() == wanted


@pytest.mark.parametrize("case", ["oldest", "own batch", "between", "nothing"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_over_runs_are_those_of_what_each_probe_sees(case, weighted):
    rng = np.random.default_rng(3)
    stored, probes = 150, 80
    rids = rng.permutation(200)[:stored].astype(np.uint32)  # some rows cannot match
    start = rng.integers(0, stored, probes)
    runs = Runs(np.arange(probes), start, rng.integers(1, 60, probes).clip(max=stored - start))
    first, end = {
        "oldest": (rng.integers(40, 70, probes), np.full(probes, 10_000)),
        "own batch": (np.full(probes, -5), rng.integers(0, 200, probes)),
        "between": (rng.integers(0, 50, probes), rng.integers(60, 200, probes)),
        "nothing": (np.full(probes, 300), np.full(probes, 300)),
    }[case]
    weights = rng.integers(-9, 10, 200) if weighted else None
    values = weights if weighted else np.ones(200, int)
    wanted = [
        sum(int(values[rid]) for rid in rids[begin : begin + size] if low <= rid < high)
        for begin, size, low, high in zip(runs.start, runs.size, first, end, strict=True)
    ]
    assert sums_over_runs(runs, rids, first, end, weights).tolist() == wanted


@pytest.mark.parametrize("window", ["rows 300", "rows 40", "90 seconds", "none"])
@pytest.mark.parametrize("emit", ["counts", "aggregate"])
def test_many_matches_have_the_same_counts_and_sums_either_way(monkeypatch, window, emit):
    rng = np.random.default_rng(5)
    options = {"aggregates": {"n": "count(*)", "s": "sum(r.v)"}} if emit == "aggregate" else {}
    tables = [
        stream(
            x=pa.array(rng.integers(0, 4, 1_000), pa.int32(), mask=rng.random(1_000) < 0.1),
            v=pa.array(rng.integers(-99, 99, 1_000), mask=rng.random(1_000) < 0.1),
            t=pa.array(np.sort(rng.integers(0, 10**9, 1_000)), pa.timestamp("us")),
        )
        for _ in "lr"
    ]

    def run():
        with host.StreamJoin(
            "l.x <= r.x", window, tables[0].schema, tables[1].schema, time="t", emit=emit,
            batch=130, subwindow=70, backend="numpy", **options,
        ) as join:
            return pa.Table.from_batches([*join.push(*tables), *join.finish()]).to_pylist()

    called = []
    sums = RunCandidates.sums
    monkeypatch.setattr(RunCandidates, "sums", lambda *given: called.append(1) or sums(*given))
    by_edges = run()
    assert called
    monkeypatch.setattr(RunCandidates, "has_many", lambda *given: False)
    assert run() == by_edges
