"""OpenCL engines against the machine: insertion beside a memory copy, probes beside searchsorted.

    python -m bench.kernels [--device D]

Each ratio is of times taken in turn in one run, the best of several.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from host.backend import Probes
from host.backends.opencl_backend import OpenCLBackend
from hw.spec import Band, JoinParams, Predicate, Side, tuple_dtype

__all__ = ["run"]

STORED = 1 << 23
ROUNDS = 9
ENOUGH_S = 3.0
#: (new tuples, least speed of a memory copy's), (probes, least speed of searchsorted's).
INSERTIONS = ((1 << 15, 0.5), (1 << 16, 0.5))
PROBES = ((1 << 15, 10.0), (1 << 20, 5.0))


class Best(NamedTuple):
    """Least seconds of a job: by the clock, and of all processors together."""

    wall: float = float("inf")
    cpu: float = float("inf")


def _best(*jobs: Callable[[], Any], most: int = 100) -> list[Best]:
    """The best of several rounds in which the jobs take turns."""
    best, began, rounds = [Best() for _ in jobs], time.perf_counter(), 0
    while rounds < min(most, ROUNDS) or (
        rounds < most and time.perf_counter() - began < ENOUGH_S
    ):
        rounds += 1
        for number, job in enumerate(jobs):
            cpu, wall = time.process_time(), time.perf_counter()
            job()
            took = time.perf_counter() - wall, time.process_time() - cpu
            best[number] = Best(*map(min, best[number], took))
    return best


def _figures(theirs: Best, ours: Best, at_least: float) -> dict[str, float]:
    """`ratio` by the clock; `cpu_ratio` is free of what else the machine does, and of threads."""
    return {
        "theirs_ms": 1e3 * theirs.wall, "ms": 1e3 * ours.wall,
        "theirs_cpu_ms": 1e3 * theirs.cpu, "cpu_ms": 1e3 * ours.cpu,
        "ratio": theirs.wall / ours.wall, "cpu_ratio": theirs.cpu / ours.cpu,
        "at_least": at_least,
    }


def _tuples(random: np.random.Generator, count: int) -> np.ndarray:
    tuples = np.empty(count, tuple_dtype(32))
    tuples["key"] = np.sort(random.integers(-(1 << 31), 1 << 31, count))
    tuples["rid"] = np.arange(count)
    return tuples


def _engine(stored: np.ndarray, device: str | None, **options: Any) -> OpenCLBackend:
    engine = OpenCLBackend(JoinParams(), device, **options)
    engine.create(Side.LEFT, 0, len(stored) + (1 << 22))
    engine.insert(Side.LEFT, 0, stored)
    return engine


def insertions(stored: np.ndarray, device: str | None) -> dict[str, dict[str, float]]:
    """Insertion into the main array at once, and through the tier, a full tier's worth a time.

    The copy moves the same keys and rids, by one thread or two, whichever is faster.
    """
    random = np.random.default_rng(1)
    source = stored.view(np.int64).copy()  # as words: numpy copies records field by field
    target = np.zeros_like(source)
    halves = [slice(0, len(stored) // 2), slice(len(stored) // 2, None)]
    results = {}
    with ThreadPoolExecutor(2) as threads:

        def copy(half: slice) -> None:
            np.copyto(target[half], source[half])

        def copy_with_two() -> None:
            list(threads.map(copy, halves))

        for count, least in INSERTIONS:
            batches = [_tuples(random, count) for _ in range(4)]
            for name, tier_rows in (("at once", (1, 1)), ("by the tier", (1 << 16, 1 << 18))):
                engine = _engine(stored, device, tier_rows=tier_rows)
                group = 1 if name == "at once" else -(-(1 << 18) // count)

                def insert(
                    engine: OpenCLBackend = engine, batches: Sequence[np.ndarray] = batches,
                    group: int = group,
                ) -> None:
                    for number in range(group):
                        engine.insert(Side.LEFT, 0, batches[number % len(batches)])

                insert()  # makes room
                # What is inserted stays: the array grows by a few per cent.
                most = 20 if group == 1 else 4
                one, two, ours = _best(lambda: copy(slice(None)), copy_with_two, insert, most=most)
                engine.close()
                each = Best(ours.wall / group, ours.cpu / group)
                results[f"insert {count} {name}"] = _figures(min(one, two), each, least)
    return results


def probes(stored: np.ndarray, device: str | None) -> dict[str, dict[str, float]]:
    """Both bounds of a band, as records: one launch beside two calls of searchsorted."""
    random = np.random.default_rng(2)
    engine = _engine(stored, device)
    keys = stored["key"].copy()
    results = {}
    for count, least in PROBES:
        wanted = np.sort(random.integers(-(1 << 31), 1 << 31, count)).astype(np.int32)
        batch = Probes(Side.RIGHT, wanted, Predicate((Band(-100, 100),)))
        lo, hi = batch.intervals["lo"][:, 0].copy(), batch.intervals["hi"][:, 0].copy()

        def search(lo: np.ndarray = lo, hi: np.ndarray = hi) -> None:
            np.searchsorted(keys, lo, "left")
            np.searchsorted(keys, hi, "right")

        def probe(batch: Probes = batch) -> None:
            engine.probe(Side.LEFT, [0], batch)

        theirs, ours = _best(search, probe)
        results[f"probe {count}"] = _figures(theirs, ours, least)
    engine.close()
    return results


def run(
    progress: Callable[[str], None] = lambda line: None,
    device: str | None = None,
    stored: int = STORED,
) -> dict[str, dict[str, float]]:
    """Name -> milliseconds of both, their ratio, and what it has to be at least."""
    tuples = _tuples(np.random.default_rng(0), stored)
    progress("insertion beside a memory copy")
    results = insertions(tuples, device)
    progress("probes beside searchsorted")
    return results | probes(tuples, device)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device")
    for name, figures in run(device=parser.parse_args().device).items():
        print(name, json.dumps({key: round(value, 3) for key, value in figures.items()}))


if __name__ == "__main__":
    main()
