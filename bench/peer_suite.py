"""The whole pipeline beside what people do without this project: suite `peers`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bench.feed import Feed
from bench.figures import figure
from bench.incremental import BTreesPeer, SortedListPeer
from bench.limits import MemoryCopy, bytes_a_tuple
from bench.nested_loop import NestedLoopPeer
from bench.peers import (
    DuckDBBuckets,
    DuckDBPairs,
    DuckDBPeer,
    DuckDBReadyBuckets,
    Peer,
    PolarsPairs,
    PolarsPeer,
    PolarsStreaming,
    PolarsStreamingPairs,
)
from bench.rounds import THREADS, best_in_turn, two_cores
from bench.workload import BATCH, BandWorkload

__all__ = ["run"]

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Rival:
    """A peer and the ratio that the join must reach.

    share   of a batch that is measured; the time of the whole is scaled from it, which is right
            only for a peer whose time grows with the batch alone
    """

    name: str
    make: Callable[..., Peer]
    at_least: float
    share: float = 1.0


@dataclass(frozen=True)
class Setting:
    """A window, a batch, and what the join has to be compared with there."""

    rows: int
    rivals: tuple[Rival, ...]
    batch: int = BATCH
    matches: float = 1.0
    emit: str = "counts"

    @property
    def name(self) -> str:
        what = "" if self.emit == "counts" else f", {self.matches:g} matches a tuple, {self.emit}"
        return f"{self.rows:,} rows a side, batch {self.batch:,}{what}"


SETTINGS = (
    Setting(1 << 20, (
        Rival("DuckDB range join", DuckDBPeer, 80),
        Rival("Polars join_where", PolarsPeer, 40),
        Rival("Polars join_where, streaming engine", PolarsStreaming, 40),
    )),
    Setting(1 << 23, (
        Rival("DuckDB range join", DuckDBPeer, 300),
        Rival("Polars join_where", PolarsPeer, 200),
        Rival("Polars join_where, streaming engine", PolarsStreaming, 200),
        Rival("DuckDB, buckets by hand", DuckDBBuckets, 20),
        Rival("DuckDB, buckets kept ready", DuckDBReadyBuckets, 20),
        Rival("nested loop, compiled", NestedLoopPeer, 2000, share=1 / 32),
        Rival("sortedcontainers, incremental", SortedListPeer, 100),
        Rival("BTrees, incremental", BTreesPeer, 12),
    )),
    Setting(1 << 20, (
        Rival("DuckDB range join", DuckDBPairs, 40),
        Rival("Polars join_where", PolarsPairs, 20),
        Rival("Polars join_where, streaming engine", PolarsStreamingPairs, 20),
    ), matches=64, emit="pairs"),
)

ROUNDS = 5
#: Seconds that either side has in a round: our rounds at 2^20 take 30 ms, a peer's up to 200.
TURN_S = 0.25
#: Two identifiers.
_PAIR_BYTES = 8
_QUICK_SHRINK = 1 << 6
_QUICK_BATCH = 1 << 10


def run(progress: Progress, quick: bool = False) -> dict[str, Any]:
    """All figures. Times of the join are of a whole round; see bench.feed."""
    rounds, turn_s = (2, 0.0) if quick else (ROUNDS, TURN_S)
    with two_cores():
        copy = MemoryCopy(1 << (18 if quick else 23))
        speed = copy.size_bytes / min(best_in_turn(*copy.jobs, rounds=5))
        copy.close()
        settings = [
            _compare(_sized(one, quick), rounds, turn_s, speed, progress) for one in SETTINGS
        ]
    return {
        "threads": THREADS,
        "quick": quick,
        "copy_bytes_per_s": speed,
        "settings": settings,
    }


def _sized(setting: Setting, quick: bool) -> Setting:
    if not quick:
        return setting
    batch = min(setting.batch, _QUICK_BATCH)
    return replace(setting, rows=setting.rows // _QUICK_SHRINK, batch=batch)


def _compare(
    setting: Setting, rounds: int, turn_s: float, speed: float, progress: Progress
) -> dict[str, Any]:
    progress(f"filling the window: {setting.name}")
    workload = BandWorkload(setting.rows, setting.matches)
    feed = Feed(
        workload, setting.batch, backend="opencl", emit=setting.emit, select=_select(setting)
    )
    parts = [workload.batch(_measured(setting, rival)) for rival in setting.rivals]
    # Left tuples alone: the right window stays as the peers will have it.
    found = [feed.probe(part) for part in parts]
    figures = []
    for rival, part, expected in zip(setting.rivals, parts, found, strict=True):
        progress(f"{rival.name}: {setting.name}")
        peer = rival.make(workload, feed.windows)
        agrees = peer.probe(part) == expected
        figures.append(
            _side_by_side(setting, rival, feed, peer, rounds, turn_s) | {"agrees": agrees}
        )
        peer.close()
    feed.close()
    return _described(setting, speed, figures)


def _measured(setting: Setting, rival: Rival) -> int:
    """Tuples of each stream that the rival is given at once."""
    return max(1, int(rival.share * setting.batch))


def _select(setting: Setting) -> list[str] | None:
    return ["l.id", "r.id"] if setting.emit == "pairs" else None


def _side_by_side(
    setting: Setting, rival: Rival, feed: Feed, peer: Peer, rounds: int, turn_s: float
) -> dict[str, Any]:
    rows, workload = _measured(setting, rival), feed.workload

    def rival_round() -> Callable[[], object]:
        left, right = workload.batch(rows), workload.batch(rows)
        return lambda: peer.push(left, right)

    ours, theirs = best_in_turn(feed.round, rival_round, rounds=rounds, turn_s=turn_s)
    rate, peer_rate = feed.tuples / ours, 2 * rows / theirs
    return figure(
        rival.name, rate / peer_rate, at_least=rival.at_least,
        tuples_per_s=rate, peer_tuples_per_s=peer_rate,
        measured_tuples=feed.tuples, seconds=ours,
        peer_measured_tuples=2 * rows, peer_seconds=theirs,
        peer_scaled=rows < setting.batch,
    )


def _described(setting: Setting, speed: float, figures: list[dict[str, Any]]) -> dict[str, Any]:
    pairs = _PAIR_BYTES * setting.matches if setting.emit == "pairs" else 0
    return {
        "name": setting.name,
        "rows": setting.rows,
        "batch": setting.batch,
        "matches": setting.matches,
        "emit": setting.emit,
        "limit_tuples_per_s": speed / (bytes_a_tuple(setting.rows, setting.batch) + pairs),
        "figures": figures,
    }
