"""The engine on any OpenCL device: PoCL on the CPU out of the box, a GPU where there is one."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from host.backend import Probes
from host.errors import BackendUnavailable, WindowFull
from hw.opencl.devices import DeviceError, choose
from hw.opencl.insertion import InsertionEngine, PaperInsertionEngine
from hw.opencl.memory import Pool
from hw.opencl.probing import Batch, ProbingEngine
from hw.opencl.program import open_program
from hw.opencl.subwindow import Subwindow
from hw.spec.params import JoinParams
from hw.spec.tuples import Side

__all__ = ["OpenCLBackend"]


class OpenCLBackend:
    """Backend over hw.opencl; see host.backend.Backend for what every engine promises.

    `mode` "tiered" keeps a sorted insertion tier before each main array; "paper" is PanJoin's
    own BI-Sort with an unsorted insertion buffer, the baseline. A subwindow is one sorted array
    once a newer one of its stream exists, and two before that: records then have twice as many
    runs. With a negated predicate all runs of a probe carry NOT, and what matches is outside of
    all of them.
    """

    name = "opencl"

    def __init__(
        self,
        params: JoinParams,
        device: str | None = None,
        mode: Literal["tiered", "paper"] = "tiered",
        **engine: Any,
    ) -> None:
        if mode not in ("tiered", "paper"):
            raise ValueError(f"mode must be tiered or paper, not {mode}")
        self.params = params
        self._windows: tuple[dict[int, Subwindow], dict[int, Subwindow]] = ({}, {})
        try:
            self._open(device, mode, engine)
        except DeviceError as error:
            raise BackendUnavailable(str(error)) from error

    def _open(self, device: str | None, mode: str, engine: dict[str, Any]) -> None:
        import pyopencl as cl

        self.device = choose(device)
        program = open_program(self.device, self.params.key_bits)
        self._queue = cl.CommandQueue(program.context)
        self._pool = Pool(self.device, program.context, self._queue, engine.pop("shared", None))
        insertion = InsertionEngine if mode == "tiered" else PaperInsertionEngine
        self._insertion = insertion(program, self._pool, self.params, **engine)
        self._probing = ProbingEngine(program, self._pool, self.params.key_bits)

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        windows = self._windows[side]
        if windows:
            # Only the newest takes tuples: the one before it becomes a single sorted array.
            self._insertion.freeze(windows[next(reversed(windows))])
        windows[subwindow] = Subwindow(self._pool, capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        window = self._windows[side][subwindow]
        if window.count + len(tuples) > window.capacity:
            raise WindowFull(
                f"{len(tuples)} tuples do not fit in a subwindow of {window.capacity} that "
                f"holds {window.count}"
            )
        self._insertion.insert(window, tuples)

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        windows = self._listed(stored, subwindows)
        if isinstance(self._insertion, PaperInsertionEngine):
            for window in windows:
                self._insertion.order(window)
        return self._probing.probe(windows, _batch(probes))

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        window = self._windows[side][subwindow]
        rids = self._pool.view(window.rids, np.uint32, window.count)
        rids.flags.writeable = False
        return rids

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        """Matches of each probe in all those subwindows together, int64; no record is made."""
        return self._probing.count(self._listed(stored, subwindows), _batch(probes))

    def expire(self, side: Side, subwindow: int) -> None:
        self._windows[side].pop(subwindow).free()

    def close(self) -> None:
        self._windows = ({}, {})
        self._queue.finish()
        self._pool.close()

    def _listed(self, side: Side, subwindows: Sequence[int]) -> list[Subwindow]:
        return [self._windows[side][number] for number in subwindows]


def _batch(probes: Probes) -> Batch:
    return Batch(probes.side, probes.keys, probes.predicate, probes.wanted)
