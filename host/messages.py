"""PanJoin step 3, sending: the commands of a batch as a worker's backend is given them."""

from collections.abc import Callable, Sequence

import numpy as np

from host.aggregates import Measure
from host.backend import Backend, Probes
from host.candidates import Candidates
from host.chain import Chain, Subwindow
from hw.spec.tuples import Side

__all__ = ["Part", "aggregate", "count", "create", "expire", "insert", "probe", "read", "store"]


def count(
    side: Side, numbers: list[int], probes: Probes
) -> Callable[[Backend], np.ndarray]:
    return lambda backend: backend.counts(side, numbers, probes)


def aggregate(
    chain: Chain, probes: Probes, measure: Measure
) -> Callable[[list[int]], Callable[[Backend], np.ndarray]]:
    def command(numbers: list[int]) -> Callable[[Backend], np.ndarray]:
        values = [
            subwindow.carried[measure.name].values
            for subwindow in chain
            if subwindow.number in numbers
        ]
        return lambda backend: backend.aggregate(chain.side, numbers, probes, measure, values)

    return command


def probe(
    side: Side, numbers: list[int], probes: Probes
) -> Callable[[Backend], Sequence[Candidates]]:
    return lambda backend: backend.find(side, numbers, probes)


def read(side: Side, subwindow: Subwindow) -> Callable[[Backend], np.ndarray]:
    return lambda backend: backend.tuples(side, subwindow.number)


def create(side: Side, subwindow: Subwindow) -> Callable[[Backend], None]:
    return lambda backend: backend.create(side, subwindow.number, subwindow.capacity)


def insert(
    side: Side, subwindow: Subwindow, tuples: np.ndarray
) -> Callable[[Backend], None]:
    return lambda backend: backend.insert(side, subwindow.number, tuples)


#: A subwindow, its stream, whether it is to be created, and tuples to be inserted.
Part = tuple[Side, Subwindow, bool, np.ndarray]


def store(parts: Sequence[Part]) -> Callable[[Backend], None]:
    """What a batch begins and what it adds, in one command and in that order."""

    def command(backend: Backend) -> None:
        batches: list[tuple[Side, int, np.ndarray]] = []
        for side, subwindow, fresh, tuples in parts:
            if fresh:
                # What is chosen for it may depend on what came before.
                backend.insert_all(batches)
                batches = []
                backend.create(side, subwindow.number, subwindow.capacity)
            if len(tuples):
                batches.append((side, subwindow.number, tuples))
        backend.insert_all(batches)

    return command


def expire(side: Side, subwindow: Subwindow) -> Callable[[Backend], None]:
    return lambda backend: backend.expire(side, subwindow.number)
