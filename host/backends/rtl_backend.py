"""The gateware's join core, simulated cycle by cycle in a Verilator library."""

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from host.backend import PlainBackend, Probes, check_room
from host.backends.core_probes import CoreProbes
from host.cycles import Clock, CoreUse, routed_clock
from host.errors import BackendUnavailable, JoinError
from hw.rtl.digest import gateware_digest, library_directory
from hw.spec.commands import Opcode, Status
from hw.spec.params import JoinParams
from hw.spec.tuples import NOT, RECORD, Side, tuple_dtype

__all__ = ["RtlBackend"]

#: Cycles without a reply after which a core is taken for dead, beyond 64 for each row sent.
PATIENCE_CYCLES = 8_000_000


@dataclass
class _Piece:
    """A part of a subwindow that one slot of a core holds, with its mirror."""

    core: "_Core"
    number: int
    rows: np.ndarray


@dataclass
class _Subwindow:
    """A main array for every `subwindow` tuples of the core; all but the last are full."""

    capacity: int
    pieces: list[_Piece] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(len(piece.rows) for piece in self.pieces)


class RtlBackend(PlainBackend):
    """One or more simulated cores, each with its slots for subwindows.

    A subwindow larger than a core's lies in several pieces, so a probe's runs are the bands of
    each piece. The mirror is kept by the same stable merge as the core's. Each PROBE names one
    subwindow: the core knows no ALL_SUBWINDOWS.
    """

    name = "rtl"

    def __init__(self, params: JoinParams, directory: Path | None = None) -> None:
        self.manifest, self._library = _load(params.key_bits, directory)
        self.params = JoinParams(**self.manifest["params"])
        self._cores: list[_Core] = []
        self._retired = np.zeros(4, np.uint64)
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}
        self._numbers = 0

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self._subwindows[side, subwindow] = _Subwindow(capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._subwindows[side, subwindow]
        check_room(len(tuples), target.count, target.capacity)
        while len(tuples):
            if not target.pieces or len(target.pieces[-1].rows) == self.params.subwindow:
                target.pieces.append(self._new_piece(side))
            piece = target.pieces[-1]
            room = min(self.params.subwindow - len(piece.rows), self.params.insert_buffer)
            self._insert_piece(side, piece, tuples[:room])
            tuples = tuples[room:]

    def _new_piece(self, side: Side) -> _Piece:
        core = next((core for core in self._cores if core.free), None)
        if core is None:
            core = _Core(self._library, self.manifest)
            self._cores.append(core)
        self._numbers += 1
        core.free -= 1
        core.run(Opcode.CREATE, side, self._numbers, count=self.params.subwindow)
        return _Piece(core, self._numbers, np.empty(0, tuple_dtype(self.params.key_bits)))

    def _insert_piece(self, side: Side, piece: _Piece, tuples: np.ndarray) -> None:
        piece.core.run(Opcode.INSERT, side, piece.number, payload=tuples, count=len(tuples))
        both = np.concatenate([piece.rows, tuples])
        piece.rows = both[np.argsort(both["key"], kind="stable")]

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        asked = CoreProbes.of(probes, stored, self.params)
        chosen = [self._subwindows[stored, number].pieces for number in subwindows]
        bands, most = asked.runs, max([1, *map(len, chosen)])
        records = np.zeros((len(subwindows), len(probes), most, bands), RECORD)
        for row, pieces in zip(records, chosen, strict=True):
            first = 0
            for column, piece in enumerate(pieces):
                found = _records(asked, piece, stored).reshape(len(probes), bands)
                row["start"][:, column] = found["start"] + np.uint32(first)
                row["end"][:, column] = found["end"] + np.uint32(first)
                first += len(piece.rows)
        if probes.negated:
            records["end"] |= NOT
        return records.reshape(len(subwindows), len(probes), most * bands)

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        rids = self.tuples(side, subwindow)["rid"]
        rids.flags.writeable = False
        return rids

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        pieces = self._subwindows[side, subwindow].pieces
        empty = np.empty(0, tuple_dtype(self.params.key_bits))
        return np.concatenate([empty, *(piece.rows for piece in pieces)])

    def expire(self, side: Side, subwindow: int) -> None:
        for piece in self._subwindows.pop((side, subwindow)).pieces:
            piece.core.run(Opcode.EXPIRE, side, piece.number)
            piece.core.free += 1

    def use(self) -> CoreUse:
        """Cycles, tuples and records of all cores since they were opened."""
        totals = sum((core.statistics for core in self._cores), start=self._retired)
        return CoreUse(*(int(total) for total in totals))

    def clock(self) -> Clock:
        """What place and route gave for a core like these."""
        return routed_clock(self.manifest["routed"])

    def close(self) -> None:
        for core in self._cores:
            self._retired = self._retired + core.statistics
            core.close()
        self._cores.clear()
        self._subwindows.clear()


def _records(asked: CoreProbes, piece: _Piece, stored: Side) -> np.ndarray:
    """The records of one piece, in the order of the batch."""
    answer = piece.core.run(
        Opcode.PROBE, stored, piece.number, payload=asked.keys, count=asked.count,
        answers=asked.count * asked.runs, **asked.fields_for(len(piece.rows)),
    )
    answer["end"] &= ~NOT
    return answer


class _Core:
    """One simulated core: a handle of the library."""

    def __init__(self, library: ctypes.CDLL, manifest: dict) -> None:
        self._library = library
        self._command = manifest["command"]
        self._reply = manifest["reply"]
        self.free = manifest["slots"]
        self._handle = ctypes.c_void_p(library.core_open())

    def run(
        self, opcode: Opcode, side: Side, number: int, *, payload: np.ndarray | None = None,
        count: int = 0, answers: int = 0, **fields: int,
    ) -> np.ndarray:
        """Send one command with its payload; the records that came."""
        bits = {"opcode": opcode, "side": side, "subwindow": number, "count": count, **fields}
        command = _pack(self._command, bits)
        reply = np.zeros(-(-self._reply["bits"] // 32), np.uint32)
        # A core that answers more than it was asked for would write beyond the records.
        records = np.zeros(answers + 64, RECORD)
        data = np.ascontiguousarray(payload) if payload is not None else np.empty(0, np.uint32)
        kind = {Opcode.INSERT: 1, Opcode.PROBE: 2}.get(opcode, 0)
        came = self._library.core_run(
            self._handle, _pointer(command), kind, _pointer(data), len(data), _pointer(records),
            _pointer(reply), PATIENCE_CYCLES + 64 * len(data),
        )
        if came != answers:
            raise JoinError(f"the simulated core answered {opcode.name} with {came} records "
                            f"where {answers} were due")
        status = Status(_unpack(self._reply, reply, "status"))
        if Status.REFUSED in status:
            raise JoinError(f"the simulated core refused {opcode.name} of subwindow {number}")
        return records[:answers]

    @property
    def statistics(self) -> np.ndarray:
        counters = np.zeros(4, np.uint64)
        self._library.core_statistics(self._handle, _pointer(counters))
        return counters

    def close(self) -> None:
        self._library.core_close(self._handle)


def _load(key_bits: int, directory: Path | None) -> tuple[dict, ctypes.CDLL]:
    """The manifest and the library of this very gateware."""
    directory = directory or library_directory()
    path = directory / f"core{key_bits}-{gateware_digest()}.json"
    try:
        manifest = json.loads(path.read_text())
        library = ctypes.CDLL(str(directory / manifest["library"]))
    except OSError as error:
        raise BackendUnavailable(
            f"backend rtl has no library of this gateware for {key_bits}-bit keys: "
            "build it with python -m sim.build"
        ) from error
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    library.core_open.restype = pointer
    library.core_close.argtypes = [pointer]
    library.core_run.restype = ctypes.c_int64
    library.core_run.argtypes = [
        pointer, pointer, ctypes.c_int, pointer, number, pointer, pointer, number,
    ]
    library.core_statistics.argtypes = [pointer, pointer]
    return manifest, library


def _pointer(array: np.ndarray) -> int:
    return array.ctypes.data


def _pack(layout: dict, values: dict[str, int]) -> np.ndarray:
    """Fields at their bits, as 32-bit words."""
    bits = 0
    for name, value in values.items():
        offset, width = layout["fields"][name]
        bits |= (int(value) & ((1 << width) - 1)) << offset
    words = -(-layout["bits"] // 32)
    return np.frombuffer(bits.to_bytes(4 * words, "little"), np.uint32).copy()


def _unpack(layout: dict, words: np.ndarray, name: str) -> int:
    offset, width = layout["fields"][name]
    return int.from_bytes(words.tobytes(), "little") >> offset & ((1 << width) - 1)
