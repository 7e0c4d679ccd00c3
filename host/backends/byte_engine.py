"""An engine of several join cores behind bytes: on a board, or simulated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from host.backend import PlainBackend, Probes, check_room
from host.backends.core_probes import CoreProbes
from host.errors import JoinError, WindowFull
from hw.spec.commands import Opcode, Status
from hw.spec.engine_bytes import Answer, head_bytes, items_bytes, read_answer
from hw.spec.params import JoinParams
from hw.spec.tuples import NOT, RECORD, Side, tuple_dtype

__all__ = ["ByteEngine", "EngineBackend"]


class ByteEngine(Protocol):
    """What carries bytes to an engine and back.

    manifest  its `params`, its `slots` for subwindows, and the layout `head` of a command
    """

    name: str
    manifest: dict

    def write(self, data: bytes) -> None:
        """Send the bytes of a command."""

    def read(self, count: int) -> bytes:
        """The next bytes of its answer."""

    def close(self) -> None:
        """End the session."""


@dataclass
class _Piece:
    """One slot of the engine: the mirror of every core's main array."""

    number: int
    stored: int
    cores: list[np.ndarray]


@dataclass
class _Subwindow:
    capacity: int
    pieces: list[_Piece] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(piece.stored for piece in self.pieces)


class EngineBackend(PlainBackend):
    """Subwindows dealt to the cores of one engine, tuple by tuple (SplitJoin's round robin).

    A subwindow larger than a slot lies in several; positions count through the pieces, in each
    through the cores, so a probe has a run for each piece, core and band. A window that the
    engine's memory cannot hold is refused.
    """

    def __init__(self, engine: ByteEngine) -> None:
        self.name = engine.name
        self.engine = engine
        self.params = JoinParams(**engine.manifest["params"])
        self._slot_rows = self.params.subwindow * self.params.cores
        self._batch_rows = self.params.insert_buffer * self.params.cores
        self._free = engine.manifest["slots"]
        self._subwindows: dict[tuple[Side, int], _Subwindow] = {}
        self._numbers = 0

    def create(self, side: Side, subwindow: int, capacity: int) -> None:
        self._subwindows[side, subwindow] = _Subwindow(capacity)

    def insert(self, side: Side, subwindow: int, tuples: np.ndarray) -> None:
        target = self._subwindows[side, subwindow]
        check_room(len(tuples), target.count, target.capacity)
        while len(tuples):
            if not target.pieces or target.pieces[-1].stored == self._slot_rows:
                target.pieces.append(self._new_piece(side))
            piece = target.pieces[-1]
            room = min(self._slot_rows - piece.stored, self._batch_rows)
            self._insert_piece(side, piece, tuples[:room])
            tuples = tuples[room:]

    def _new_piece(self, side: Side) -> _Piece:
        if not self._free:
            slots = self.engine.manifest["slots"]
            raise WindowFull(
                f"{self.name} holds {slots * self._slot_rows} tuples in {slots} slots of "
                f"{self._slot_rows}, and the windows need more: choose smaller ones"
            )
        self._free -= 1
        self._numbers += 1
        self._run(Opcode.CREATE, side, self._numbers, count=self._slot_rows)
        empty = np.empty(0, tuple_dtype(self.params.key_bits))
        return _Piece(self._numbers, 0, [empty] * self.params.cores)

    def _insert_piece(self, side: Side, piece: _Piece, tuples: np.ndarray) -> None:
        self._run(Opcode.INSERT, side, piece.number, payload=tuples, count=len(tuples))
        cores = self.params.cores
        for number, rows in enumerate(piece.cores):
            # As every core knows by its own counter which tuples are its to store.
            share = tuples[(number - piece.stored) % cores :: cores]
            both = np.concatenate([rows, share])
            piece.cores[number] = both[np.argsort(both["key"], kind="stable")]
        piece.stored += len(tuples)

    def probe(self, stored: Side, subwindows: Sequence[int], probes: Probes) -> np.ndarray:
        asked = CoreProbes.of(probes, stored, self.params)
        chosen = [self._subwindows[stored, number].pieces for number in subwindows]
        cores, most = self.params.cores, max([1, *map(len, chosen)])
        records = np.zeros((len(subwindows), len(probes), most, cores, asked.runs), RECORD)
        for row, pieces in zip(records, chosen, strict=True):
            first = 0
            for column, piece in enumerate(pieces):
                found = self._probe_piece(stored, piece, asked)
                for core, rows in enumerate(piece.cores):
                    for name in ("start", "end"):
                        row[name][:, column, core] = found[name][core] + np.uint32(first)
                    first += len(rows)
        if probes.negated:
            records["end"] |= NOT
        return records.reshape(len(subwindows), len(probes), most * cores * asked.runs)

    def _probe_piece(self, stored: Side, piece: _Piece, asked: CoreProbes) -> np.ndarray:
        """Records of shape (cores, probes, bands), empty ones filled in."""
        answer = self._run(
            Opcode.PROBE, stored, piece.number, payload=asked.keys, count=asked.count,
            **asked.fields_for(max(map(len, piece.cores))),
        )
        records = np.zeros((self.params.cores, asked.count * asked.runs), RECORD)
        found = answer.results
        if len(found) and (
            found["number"].max() >= records.shape[1] or found["core"].max() >= len(records)
        ):
            raise JoinError(f"{self.name} answered a probe that it was not asked")
        for name in ("start", "end"):
            records[name][found["core"], found["number"]] = found[name] & ~NOT
        return records.reshape(self.params.cores, asked.count, asked.runs)

    def match(self, tuples: np.ndarray, probes: Probes) -> np.ndarray:
        """One run for each band: what the cores found lies side by side in the sorted tuples."""
        runs = CoreProbes.of(probes, probes.side.other, self.params).runs
        found = super().match(tuples, probes).reshape(len(probes), -1, runs)
        order = self._dealt(len(tuples))
        start, end = found["start"], found["end"] & ~NOT
        there = end > start
        joined = np.zeros((len(probes), runs), RECORD)
        first = np.where(there, order[np.where(there, start, 0)], len(tuples))
        last = np.where(there, order[np.where(there, end, 1) - 1] + 1, 0)
        joined["end"] = last.max(axis=1, initial=0)
        joined["start"] = np.minimum(first.min(axis=1, initial=len(tuples)), joined["end"])
        if probes.negated:
            joined["end"] |= NOT
        return joined

    def _dealt(self, count: int) -> np.ndarray:
        """By position, the place of a tuple among `count` that were stored in order."""
        cores, places = self.params.cores, np.arange(max(1, count))
        slots = (places[at : at + self._slot_rows] for at in range(0, len(places), self._slot_rows))
        return np.concatenate([slot[core::cores] for slot in slots for core in range(cores)])

    def _run(
        self, opcode: Opcode, side: Side, number: int, *, payload: np.ndarray | None = None,
        count: int = 0, **fields: int,
    ) -> Answer:
        """Send one command with its payload; its answer."""
        values = {"opcode": opcode, "side": side, "subwindow": number, "count": count, **fields}
        size = tuple_dtype(self.params.key_bits).itemsize
        head = self.engine.manifest["head"]
        named = {f"command.{name}": value for name, value in values.items()}
        data = head_bytes(head, named, self.params.lanes, size)
        if payload is not None:
            data += items_bytes(payload, self.params.lanes)
        self.engine.write(data)
        answer = read_answer(self.engine.read)
        refused = [int(end) & Status.REFUSED for end in answer.replies["end"]]
        if len(refused) != self.params.cores or any(refused):
            raise JoinError(f"{self.name} refused {opcode.name} of subwindow {number}")
        return answer

    def rids(self, side: Side, subwindow: int) -> np.ndarray:
        rids = self.tuples(side, subwindow)["rid"]
        rids.flags.writeable = False
        return rids

    def tuples(self, side: Side, subwindow: int) -> np.ndarray:
        pieces = self._subwindows[side, subwindow].pieces
        empty = np.empty(0, tuple_dtype(self.params.key_bits))
        return np.concatenate([empty, *(rows for piece in pieces for rows in piece.cores)])

    def expire(self, side: Side, subwindow: int) -> None:
        for piece in self._subwindows.pop((side, subwindow)).pieces:
            self._run(Opcode.EXPIRE, side, piece.number)
            self._free += 1

    def close(self) -> None:
        self._subwindows.clear()
        self.engine.close()
