"""The FPGA form of the OpenCL engines: single-work-item kernels joined by channels."""

from collections.abc import Sequence

import numpy as np

from host.backend import PASSING, PlainBackend, Probes, check_room
from host.backends.device_errors import device_errors
from host.errors import BackendUnavailable
from host.records import sizes
from hw.opencl.fpga.channel_device import find_device
from hw.spec.params import JoinParams
from hw.spec.predicates import REGISTER, Bound, registers
from hw.spec.tuples import NOT, RECORD, Side

__all__ = ["FpgaFormBackend"]


class FpgaFormBackend(PlainBackend):
    """Subwindows in the memory of a device with channels; `device` as hw.opencl.devices names it.

    Where params.cores is more than one, each subwindow is dealt over the cores tuple by tuple. Its
    positions then count core after core, and a probe has as many runs a band as there are cores.
    """

    name = "opencl"

    def __init__(
        self, params: JoinParams, device: str | None = None, *, timeout_s: float = 60.0
    ) -> None:
        if params.mode != "tiered":
            raise BackendUnavailable(
                f"the FPGA form has no mode={params.mode}: it merges every batch at once; leave it "
                "out, or choose a device without channels"
            )
        with device_errors():
            where = find_device(device)
            # It needs PyOpenCL, whose absence find_device() says in one sentence.
            from hw.opencl.fpga.engine import Engine

            self._engine = Engine(params, where, timeout_s=timeout_s)
        self.params = params
        self._mirrors: dict[tuple[Side, int], np.ndarray] = {}

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        with device_errors():
            self._engine.create(side, subwindow, capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        capacity, held = self._engine.room(side, subwindow)
        check_room(len(tuples), held, capacity)
        self._mirrors.pop((side, subwindow), None)
        with device_errors():
            self._engine.insert(side, subwindow, tuples)

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        records = self._records(stored, subwindows, probes, probes.negated)
        if probes.negated and self.params.cores > 1:
            held = [self._engine.room(stored, number)[1] for number in subwindows]
            return _outside(records, held)
        return records

    def counts(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        total = np.zeros(len(probes), np.int64)
        found = self._records(stored, subwindows, probes, probes.negated)
        for number, records in zip(subwindows, found, strict=True):
            total += sizes(records, self._engine.room(stored, number)[1])
        return total

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        stored = probes.side.other
        self.create(stored, PASSING, len(tuples))
        try:
            with device_errors():
                self._engine.insert(stored, PASSING, tuples, passing=True)
            # As if negated: an empty run too then says where it is, which the sum needs.
            records = self._records(stored, [PASSING], probes, negated=True)[0]
            bases = self._engine.bases(stored, PASSING)
        finally:
            self._engine.expire(stored, PASSING)
        return _together(records, bases, probes.negated)

    def _records(
        self, stored: Side, subwindows: Sequence[int], probes: Probes, negated: bool
    ) -> np.ndarray:
        """One record a core and band: bands side by side, in each of them the cores."""
        given = self._registers(probes) if probes.wanted is None else probes.wanted
        answers = []
        for first in range(0, given.shape[-1], self.params.bands):
            part = given[..., first : first + self.params.bands]
            with device_errors():
                records, _ = self._engine.probe(
                    stored, subwindows, probes.keys, part, negated=negated
                )
            answers.append(records)
        return answers[0] if len(answers) == 1 else np.concatenate(answers, axis=2)

    def _registers(self, probes: Probes) -> np.ndarray:
        assert probes.predicate is not None
        words = registers(probes.predicate, probes.side, self.params.key_bits)
        if len(words):
            return words
        nothing = np.zeros(1, REGISTER)
        nothing["lo_bound"] = Bound.NEVER
        return nothing

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        mirror = self._mirrors.get((side, subwindow))
        if mirror is None:
            mirror = self._engine.rids(side, subwindow)
            mirror.flags.writeable = False
            self._mirrors[side, subwindow] = mirror
        return mirror

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        return self._engine.tuples(side, subwindow)

    def expire(self, side: Side, subwindow: int) -> None:
        self._mirrors.pop((side, subwindow), None)
        self._engine.expire(side, subwindow)

    def close(self) -> None:
        self._mirrors.clear()
        self._engine.close()


def _outside(records: np.ndarray, held: Sequence[int]) -> np.ndarray:
    """One `not` record a core as plain runs: what lies before, between and behind them."""
    subwindows, probes, cores = records.shape
    runs = np.zeros((subwindows, probes, cores + 1), RECORD)
    runs["start"][:, :, 1:] = records["end"] & ~NOT
    runs["end"][:, :, :-1] = records["start"]
    runs["end"][:, :, -1] = np.array(held, np.uint32)[:, None]
    return runs


def _together(records: np.ndarray, bases: np.ndarray, negated: bool) -> np.ndarray:
    """Records of all cores, whose arrays begin at `bases`, as one record a band of the sorted
    whole: what is before a bound there is the sum of what is before it in each core.
    """
    probes, bands = len(records), records.shape[1] // len(bases)
    result = np.empty((probes, bands), RECORD)
    for name in ("start", "end"):
        inner = (records[name] & ~NOT).reshape(probes, bands, len(bases)) - bases
        result[name] = inner.sum(axis=2)
    if negated:
        result["end"] |= NOT
    return result
