"""PanJoin's structures by themselves: what its figures 10 to 13 claim, done again."""

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.figures import figure
from bench.rounds import Job, best_in_turn
from host.indexes.bisort import BISortIndex
from host.indexes.index import Index
from host.indexes.merge_tree import BTree
from host.indexes.rap import RapTable
from host.indexes.splitters import imbalance
from host.indexes.wib import WibTree

__all__ = ["run"]

Progress = Callable[[str], None]

_BATCH = 1 << 10
_RANGE = 1 << 31


def run(progress: Progress, quick: bool) -> dict[str, Any]:
    """Convergence of the splitters, insertion, increasing keys, and matches."""
    rows, rounds = (1 << 13, 1) if quick else (1 << 20, 3)
    return {
        "rows": rows, "batch": _BATCH,
        "convergence": _convergence(rows, progress),
        "figures": [
            _insertion(rows, rounds, progress),
            *_increasing(rows // 4, rounds, progress),
            _matches(rows, rounds, progress),
        ],
    }  # fmt: skip


def distributions(random: np.random.Generator, rows: int) -> dict[str, np.ndarray]:
    """Keys as figure 10f has them: uniform, of several modes, and like view counts."""
    modes = random.integers(0, 4, rows)
    normal = (modes * 0.25 + 0.125 - 0.5) * 2 * _RANGE + random.normal(0, 0.01, rows) * _RANGE
    views = random.pareto(1.0, rows) * 1e4
    return {
        "uniform": random.integers(-_RANGE, _RANGE, rows),
        "four normal modes": normal.astype(np.int64),
        "view counts": np.minimum(views, _RANGE - 1).astype(np.int64),
    }


def _convergence(rows: int, progress: Progress) -> list[dict[str, Any]]:
    """Figure 10f: normalised mean absolute error of partition sizes, subwindow by subwindow."""
    progress(f"splitters of {rows:,} rows over seven subwindows")
    random = np.random.default_rng(3)
    tables: dict[str, RapTable | None] = dict.fromkeys(distributions(random, 1))
    errors: dict[str, list[float]] = {name: [] for name in tables}
    for _ in range(7):
        for name, keys in distributions(random, rows).items():
            table = RapTable(rows, 32, tables[name], partition=max(8, rows // 1024))
            table.insert(np.sort(keys), np.arange(rows, dtype=np.uint32))
            tables[name] = table
            errors[name].append(imbalance(table.counts))
    return [
        figure(
            f"RaP-Table, {name}: error after 3 adjustments over that of the last",
            (found[3] + 0.01) / (min(found) + 0.01), at_most=1.5, errors=found,
            paper="PanJoin, figure 10f",
        )
        for name, found in errors.items()
    ]  # fmt: skip


def _filling(make: Callable[[], Index], batches: list[np.ndarray]) -> Job:
    """Insert all batches into a new structure."""
    def job() -> Callable[[], None]:
        index = make()
        rids = np.arange(len(batches) * len(batches[0]), dtype=np.uint32)

        def work() -> None:
            for number, keys in enumerate(batches):
                first = number * len(keys)
                index.insert(keys, rids[first : first + len(keys)])

        return work

    return job


def _batches(keys: np.ndarray) -> list[np.ndarray]:
    return [np.sort(keys[at : at + _BATCH]) for at in range(0, len(keys), _BATCH)]


def _insertion(rows: int, rounds: int, progress: Progress) -> dict[str, Any]:
    progress(f"inserting {rows:,} rows into WiB+-Tree and B+-tree")
    keys = np.random.default_rng(4).integers(-_RANGE, _RANGE, rows)
    batches = _batches(keys)
    ours, theirs = best_in_turn(
        _filling(lambda: WibTree(rows, leaf=512), batches), _filling(lambda: BTree(rows), batches),
        rounds=rounds,
    )
    return figure(
        "WiB+-Tree inserts, over a B+-tree with sorted leaves", theirs / ours, at_least=2.5,
        seconds=ours, peer_seconds=theirs, paper="PanJoin, figure 11f",
    )


def _increasing(rows: int, rounds: int, progress: Progress) -> list[dict[str, Any]]:
    """Section III-B3: the splitters of the subwindow before are of no use."""
    progress(f"probing {rows:,} rows whose keys increase")
    random = np.random.default_rng(5)
    steady = random.integers(0, 8 * rows, (2, rows))
    rising = np.arange(2 * rows).reshape(2, rows) * 8
    jobs = []
    for keys in (steady, rising):
        before = RapTable(rows, 32)
        before.insert(np.sort(keys[0]), np.arange(rows, dtype=np.uint32))
        wanted = np.sort(keys[1][:: max(1, rows >> 12)])
        for index in (RapTable(rows, 32, before), WibTree(rows)):
            for batch in _batches(keys[1]):
                index.insert(batch, np.zeros(len(batch), np.uint32))
            jobs.append(_probing(index, wanted, 8))
    # A probe of a WiB+-Tree takes less than a millisecond: many rounds.
    seconds = best_in_turn(*jobs, rounds=5 * rounds)
    return [
        figure(
            f"{name} probes with increasing keys, over steady ones",
            seconds[place + 2] / seconds[place],
            **({"at_least": 4.0} if name == "RaP-Table" else {"at_most": 2.0}),
            seconds=seconds[place + 2], peer_seconds=seconds[place],
            paper="PanJoin, section III-B3",
        )
        for place, name in enumerate(("RaP-Table", "WiB+-Tree"))
    ]


def _probing(index: Index, keys: np.ndarray, width: int) -> Job:
    def work() -> object:
        return index.count((keys, keys + width))

    def job() -> Callable[[], object]:
        # Once before: what other structures left in the cache is no part of the comparison.
        work()
        return work

    return job


def _matches(rows: int, rounds: int, progress: Progress) -> dict[str, Any]:
    """Figure 12e: BI-Sort gives two places, however many tuples lie between them."""
    progress(f"BI-Sort over {rows:,} rows with 1 and with 4,096 matches a tuple")
    keys = np.sort(np.random.default_rng(6).integers(-_RANGE, _RANGE, rows))
    index = BISortIndex(rows, 1 << 16)
    index.insert(keys, np.arange(rows, dtype=np.uint32))
    probes = np.sort(np.random.default_rng(7).integers(-_RANGE, _RANGE, min(rows, 1 << 15)))
    step = 2 * _RANGE // rows
    many, one = best_in_turn(
        _probing(index, probes, 4096 * step), _probing(index, probes, step), rounds=3 * rounds
    )
    return figure(
        "BI-Sort with 4,096 matches, over 1 match", many / one, at_most=1.5, seconds=many,
        peer_seconds=one, paper="PanJoin, figure 12e",
    )
