"""Sorted containers from PyPI that are kept up to date tuple by tuple.

Each window lives in a process of its own, since two Python threads take turns: so these peers,
too, have two cores.
"""

import multiprocessing
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bench.peers import Windows, bounds
from bench.sorted_windows import BTreeWindow, SortedListWindow, serve
from bench.workload import BandWorkload

__all__ = ["BTreesPeer", "SortedListPeer"]


class _TwoProcesses:
    WINDOW: Callable[[np.ndarray], Any]

    def __init__(self, workload: BandWorkload, windows: Windows) -> None:
        self.width = workload.width
        # Not forked: an OpenCL driver's threads and locks would not survive that.
        context = multiprocessing.get_context("spawn")
        self._links: list[Any] = []
        self._processes: list[Any] = []
        for keys in windows:
            link, other = context.Pipe()
            process = context.Process(target=serve, args=(other, self.WINDOW, keys), daemon=True)
            process.start()
            other.close()
            self._links.append(link)
            self._processes.append(process)
        for link in self._links:
            link.recv()

    def push(self, left: pa.RecordBatch, right: pa.RecordBatch) -> int:
        """Matches of both batches with the windows before them; then the windows move on."""
        for link, batch, probes in zip(self._links, (left, right), (right, left), strict=True):
            link.send((*bounds(probes, self.width), batch.column("x").to_numpy()))
        return sum(link.recv() for link in self._links)

    def probe(self, left: pa.RecordBatch) -> int:
        self._links[1].send((*bounds(left, self.width), np.empty(0, np.int32)))
        return int(self._links[1].recv())

    def close(self) -> None:
        for link in self._links:
            link.send(None)
        for link, process in zip(self._links, self._processes, strict=True):
            process.join()
            process.close()
            link.close()


class SortedListPeer(_TwoProcesses):
    """sortedcontainers.SortedList: two bisections a probe, one add and one remove a tuple."""

    WINDOW = SortedListWindow


class BTreesPeer(_TwoProcesses):
    """BTrees.LLBTree: a range a probe, one add and one remove a tuple."""

    WINDOW = BTreeWindow
