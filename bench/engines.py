"""The OpenCL engines beside what the machine can do: suite `engines`."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.feed import Feed
from bench.figures import figure
from bench.limits import MemoryCopy, bytes_a_tuple
from bench.rounds import THREADS, Job, best_in_turn, two_cores
from bench.workload import BATCH, BandWorkload
from host.backend import Probes
from host.backends.opencl_backend import OpenCLBackend
from hw.spec import Band, JoinParams, Predicate, Side, tuple_dtype

__all__ = ["run"]

Progress = Callable[[str], None]

PAPER = "paper-faithful mode"


@dataclass(frozen=True)
class Sizes:
    """What is measured, full size or quick."""

    stored: int = 1 << 23
    inserted: tuple[int, ...] = (1 << 15, 1 << 16)
    tier: int = 1 << 18
    #: Of a batch, batches in a row, and the ratio that is asked for.
    probes: tuple[tuple[int, int, float], ...] = (
        (1 << 15, 16, 10.0), (1 << 15, 1, 10.0), (1 << 20, 1, 5.0),
    )
    batch: int = BATCH
    paper_batch: int = 1 << 10
    #: As many as fill the tier twice, while the newest subwindow is half full; a whole subwindow
    #: of them would take minutes.
    paper_pushes: int = 1 << 9
    matches_rows: tuple[int, ...] = (1 << 20, 1 << 23)
    many_matches: int = 1000
    growth: tuple[int, ...] = (1 << 17, 1 << 20, 1 << 23)
    rounds: int = 9
    window_rounds: int = 3


QUICK = Sizes(
    stored=1 << 17, inserted=(1 << 11, 1 << 12), tier=1 << 13,
    probes=((1 << 11, 4, 10.0), (1 << 14, 1, 5.0)), batch=1 << 11, paper_batch=1 << 9,
    paper_pushes=1 << 5,
    matches_rows=(1 << 15,),
    many_matches=100, growth=(1 << 13, 1 << 14, 1 << 15), rounds=3, window_rounds=2,
)


def run(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """All figures; every ratio is of times taken in turn in this run."""
    sizes = QUICK if quick else Sizes()
    with two_cores():
        copy = MemoryCopy(sizes.stored)
        stored = _tuples(np.random.default_rng(0), sizes.stored)
        insertion = _insertion(stored, copy, sizes, progress)
        speed = copy.size_bytes / min(best_in_turn(*copy.jobs, rounds=sizes.rounds))
        copy.close()
        return {
            "threads": THREADS,
            "quick": quick,
            "copy_bytes_per_s": speed,
            "insertion": insertion,
            "probe": _probe(stored, sizes, progress),
            "paper": _beside_paper(sizes, progress),
            "matches": _matches(sizes, progress),
            "overhead": _overhead(sizes, progress),
            "growth": _growth(sizes, speed, progress),
        }


# Insertion beside a memory copy of the same array.


def _insertion(
    stored: np.ndarray, copy: MemoryCopy, sizes: Sizes, progress: Progress
) -> list[dict[str, Any]]:
    figures = []
    for count in sizes.inserted:
        progress(f"inserting {count:,} into {len(stored):,} beside a memory copy")
        batches = [_tuples(np.random.default_rng(seed), count) for seed in (1, 2, 3, 4)]
        # At once: no tier. By the tier: as many insertions as fill one, so that its merge counts.
        for how, tier_rows, group in (
            ("at once", (1, 1), 1),
            ("by the tier", (min(sizes.tier, 1 << 16), sizes.tier), sizes.tier // count),
        ):
            insert = _Inserting(stored, batches, group, tier_rows)
            insert()()  # makes room
            rounds = sizes.rounds if group == 1 else sizes.window_rounds
            one, two, ours = best_in_turn(*copy.jobs, insert, rounds=rounds)
            insert.close()
            figures.append(figure(
                f"{count:,} {how}", min(one, two) * group / ours, at_least=0.5,
                stored=len(stored), inserted=count, how=how, seconds=ours / group,
                copy_seconds=min(one, two), copy_threads=1 if one < two else 2,
            ))
    return figures


class _Inserting:
    """Job: a group of insertions. What is inserted stays: the array grows by a few per cent."""

    def __init__(
        self, stored: np.ndarray, batches: list[np.ndarray], group: int,
        tier_rows: tuple[int, int],
    ) -> None:
        self._engine = _filled_engine(stored, tier_rows=tier_rows)
        self._batches = [batches[number % len(batches)] for number in range(group)]

    def __call__(self) -> Callable[[], None]:
        return self._insert

    def _insert(self) -> None:
        for batch in self._batches:
            self._engine.insert(Side.LEFT, 0, batch)
        self._engine.rids(Side.LEFT, 0)  # waits for what is only queued so far

    def close(self) -> None:
        self._engine.close()


def _tuples(random: np.random.Generator, count: int) -> np.ndarray:
    tuples = np.empty(count, tuple_dtype(32))
    tuples["key"] = np.sort(random.integers(-(1 << 31), 1 << 31, count))
    tuples["rid"] = np.arange(count)
    return tuples


def _filled_engine(stored: np.ndarray, **options: Any) -> OpenCLBackend:
    engine = OpenCLBackend(JoinParams(), **options)
    engine.create(Side.LEFT, 0, len(stored) + (1 << 22))
    engine.insert(Side.LEFT, 0, stored)
    return engine


# Probes beside numpy.searchsorted.


def _probe(stored: np.ndarray, sizes: Sizes, progress: Progress) -> list[dict[str, Any]]:
    """Both ends of a band: one launch beside two calls of searchsorted, on two threads as well.

    Batches in a row have keys of their own each, as those of a stream. One alone finds little of
    the engine in the caches, which searchsorted has just gone through.
    """
    engine = _filled_engine(stored)
    searching = _Searching(stored["key"].copy())
    figures = []
    for count, row, least in sizes.probes:
        name = f"{count:,} probes" + (f", {row} batches in a row" if row > 1 else " alone")
        progress(f"{name}, of {len(stored):,} beside numpy.searchsorted")
        batches = [_banded(count, seed) for seed in range(row)]
        searches = [searching.work(probes) for probes in batches]

        def probe(batches: list[Probes] = batches) -> None:
            for probes in batches:
                engine.probe(Side.LEFT, [0], probes)

        def search(searches: list[Callable[[], None]] = searches) -> None:
            for one in searches:
                one()

        theirs, ours = best_in_turn(_same(search), _same(probe), rounds=4 * sizes.rounds)
        figures.append(figure(
            name, theirs / ours, at_least=least, stored=len(stored), probes=count, in_a_row=row,
            seconds=ours / row, searchsorted_seconds=theirs / row,
        ))
    engine.close()
    searching.close()
    return figures


def _banded(count: int, seed: int) -> Probes:
    keys = _tuples(np.random.default_rng((count, seed)), count)["key"].copy()
    return Probes(Side.RIGHT, keys, Predicate((Band(-100, 100),)))


def _same(work: Callable[[], None]) -> Job:
    """Nothing is prepared: every round does the same."""
    return lambda: work


class _Searching:
    """numpy.searchsorted on two threads, each with half of the batch."""

    def __init__(self, keys: np.ndarray) -> None:
        self._keys = keys
        self._threads = ThreadPoolExecutor(THREADS)

    def work(self, probes: Probes) -> Callable[[], None]:
        lo, hi = probes.intervals["lo"][:, 0].copy(), probes.intervals["hi"][:, 0].copy()
        half = len(lo) // 2
        halves = [(lo[:half], hi[:half]), (lo[half:], hi[half:])]

        def search() -> None:
            list(self._threads.map(self._search, halves))

        return search

    def _search(self, ends: tuple[np.ndarray, np.ndarray]) -> None:
        np.searchsorted(self._keys, ends[0], "left")
        np.searchsorted(self._keys, ends[1], "right")

    def close(self) -> None:
        self._threads.shutdown()


# The whole pipeline.


def _beside_paper(sizes: Sizes, progress: Progress) -> list[dict[str, Any]]:
    """Both run over the same subwindows and the same tuples; only the engine differs.

    Subwindows are those that the join chooses, and the paper's own (section V): 8M tuples of
    window in one of them, under an index array of 64K entries.
    """
    rows, batch = sizes.growth[-1], sizes.paper_batch
    figures = []
    for subwindow in (None, rows):
        # One seed: the two see the same tuples.
        feed, paper = (
            _feed(rows, batch, pushes=sizes.paper_pushes, params=params, subwindow=subwindow)
            for params in (None, {"mode": "paper"})
        )
        held = feed.join.manager.chains[0].rows
        progress(f"{PAPER}: {rows:,} rows a side in subwindows of {held:,}, batch {batch:,}")
        ours, theirs = best_in_turn(feed.round, paper.round, rounds=sizes.window_rounds)
        used = paper.join.options.engine_params()
        feed.close()
        paper.close()
        figures.append(figure(
            f"{PAPER}, subwindows of {held:,}", theirs / ours, at_least=10.0, rows=rows,
            batch=batch, subwindow=held, pushes=feed.pushes, agrees=feed.found == paper.found,
            tuples_per_s=feed.tuples / ours, peer_tuples_per_s=paper.tuples / theirs,
            partitions=used.partitions, insert_buffer=used.insert_buffer,
        ))
    return figures


def _feed(rows: int, batch: int, matches: float = 1, emit: str = "counts", **more: Any) -> Feed:
    return Feed(BandWorkload(rows, matches), batch, backend="opencl", emit=emit, **more)


#: What is asked about the matches of each tuple -> options of the join.
_ASKED: dict[str, dict[str, Any]] = {
    "count": {"emit": "counts"},
    "sum": {"emit": "aggregate", "aggregates": {"of_l": "sum(l.id)", "of_r": "sum(r.id)"}},
}


def _matches(sizes: Sizes, progress: Progress) -> list[dict[str, Any]]:
    """Counts and sums should cost the same however many match."""
    figures = []
    for rows in sizes.matches_rows:
        for name, options in _ASKED.items():
            progress(f"{name} at {rows:,} rows a side, {sizes.many_matches:,} matches beside one")
            many, one = (
                _feed(rows, sizes.batch, matches, **options) for matches in (sizes.many_matches, 1)
            )
            seconds, one_seconds = best_in_turn(many.round, one.round, rounds=sizes.window_rounds)
            many.close()
            one.close()
            figures.append(figure(
                f"{name} at {rows:,} rows a side", one_seconds / seconds, at_least=0.75,
                rows=rows, batch=sizes.batch, matches=many.found / many.tuples,
                tuples_per_s=many.tuples / seconds,
                one_match_tuples_per_s=one.tuples / one_seconds,
            ))
    return figures


def _overhead(sizes: Sizes, progress: Progress) -> list[dict[str, Any]]:
    """Push beside the seconds that its engine was busy: kernels, and the calls around them."""
    figures = []
    for rows in sizes.growth[1:]:
        progress(f"push beside its kernels at {rows:,} rows a side")
        feed = _feed(rows, sizes.batch)
        whole, engine = min(_pushed(feed) for _ in range(2 * sizes.window_rounds))
        feed.close()
        figures.append(figure(
            f"{rows:,} rows a side", whole / engine, at_most=1.5, rows=rows, batch=sizes.batch,
            push_s=whole / feed.pushes, engine_s=engine / feed.pushes,
            engine_s_is="Worker.busy_s: the engine's calls, with their kernels and launches",
        ))
    return figures


def _pushed(feed: Feed) -> tuple[float, float]:
    """Seconds of a round, and how long the engine was busy in them."""
    push, busy_s = feed.round(), feed.join.manager.busy_s
    begin = time.perf_counter()
    push()
    return time.perf_counter() - begin, feed.join.manager.busy_s - busy_s


def _growth(sizes: Sizes, speed: float, progress: Progress) -> dict[str, Any]:
    """Tuples a second by the size of the window, and what memory allows."""
    progress(f"the whole pipeline at {', '.join(f'{rows:,}' for rows in sizes.growth)} rows a side")
    feeds = [_feed(rows, sizes.batch) for rows in sizes.growth]
    times = best_in_turn(*[feed.round for feed in feeds], rounds=2 * sizes.window_rounds)
    points = []
    for rows, feed, seconds in zip(sizes.growth, feeds, times, strict=True):
        feed.close()
        moved = bytes_a_tuple(rows, sizes.batch)
        points.append({
            "rows": rows, "batch": sizes.batch, "tuples_per_s": feed.tuples / seconds,
            "limit_tuples_per_s": speed / moved, "limit_bytes_a_tuple": moved,
        })
    before, after = points[-2], points[-1]
    ratio = before["tuples_per_s"] / after["tuples_per_s"]
    name = f"fall from {before['rows']:,} to {after['rows']:,} rows a side"
    return figure(name, ratio, at_most=4.0, points=points)
