"""A StreamJoin on disk: a directory of Arrow files and a manifest with their checksums.

Nothing in it is executable, and nothing is read before its checksum was compared.
"""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from host.arrivals import Arrivals
from host.chain import Subwindow
from host.errors import SnapshotError
from host.growing import Growing
from host.inputs import ArrivalMerger
from host.two_keys import ascending, keyed_twice
from hw.spec.tuples import Side, tuple_dtype

if TYPE_CHECKING:
    from host.stream_join import StreamJoin

__all__ = ["read_snapshot", "write_snapshot"]

VERSION = 1
_MANIFEST = "manifest.json"
#: Options that decide what the result is; the others may differ after a resume.
_MEANING = ("on", "window", "time", "lateness", "arrival", "emit", "select", "order", "aggregates")
_ENGINE = (
    "backend", "device", "index", "params", "batch", "linger", "workers", "late", "subwindow",
)


def write_snapshot(join: "StreamJoin", directory: str) -> None:
    """Write the join's state to a directory that must not exist; it appears whole or not at all."""
    target = Path(directory)
    if target.exists():
        raise SnapshotError(f"{directory} exists already: a snapshot needs a new directory")
    partial = target.with_name(target.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True)
        _Writer(partial).write(join)
        os.replace(partial, target)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        reason = error.strerror or error
        raise SnapshotError(f"the snapshot {directory} cannot be written: {reason}") from None


class _Writer:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sums: dict[str, str] = {}

    def write(self, join: "StreamJoin") -> None:
        options = join.options
        for side in Side:
            self._stream(join, side)
        waiting = _waiting(join)
        for number, arrivals in enumerate(waiting):
            self._arrivals(f"waiting-{number}", arrivals)
        for number, (_, numbers, rows) in enumerate(join.late):
            self._table(f"late-{number}", pa.Table.from_batches([rows]))
            self._table(f"late-{number}-numbers", pa.table({"number": numbers}))
        manifest = {
            "version": VERSION,
            "options": {name: getattr(options, name) for name in _MEANING + _ENGINE},
            "pushed": join.inputs.pushed,
            "reached": getattr(join.inputs, "reached", None),
            "ended": sorted(join.ended),
            "totals": join.preprocessor.totals,
            "watermarks": [[mark.newest, mark.promised] for mark in join.watermarks],
            "metrics": vars(join.metrics),
            "waiting": len(waiting),
            "late": [letter for letter, _, _ in join.late],
            "chains": [_chain(join, side) for side in Side],
            "files": self.sums,
        }
        body = json.dumps(manifest, indent=1, default=list)
        seal = hashlib.sha256(body.encode()).hexdigest()
        (self.directory / _MANIFEST).write_text(f"{seal}\n{body}\n")

    def _stream(self, join: "StreamJoin", side: Side) -> None:
        letter = side.letter
        empty = pa.Table.from_batches([], join.options.schema(side))
        self._table(f"{letter}-schema", empty)
        store = join.stores[side]
        self._table(f"{letter}-rows", pa.Table.from_batches([*store.chunks()], store.schema))
        for subwindow, tuples in join.manager.contents(side):
            name = f"{letter}-subwindow-{subwindow.number}"
            self._table(name, pa.table({"key": tuples["key"], "rid": tuples["rid"]}))
            if subwindow.carried:
                carried = {part: array.values for part, array in subwindow.carried.items()}
                self._table(f"{name}-carried", pa.table(carried))

    def _arrivals(self, name: str, arrivals: Arrivals) -> None:
        for side in Side:
            places = {"number": arrivals.numbers[side], "position": arrivals.positions[side]}
            self._table(f"{name}-{side.letter}-rows", pa.Table.from_batches([arrivals.rows[side]]))
            self._table(f"{name}-{side.letter}-places", pa.table(places))

    def _table(self, name: str, table: pa.Table) -> None:
        path = self.directory / f"{name}.arrow"
        with path.open("wb") as sink:
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
            sink.flush()
            os.fsync(sink.fileno())
        self.sums[path.name] = _digest(path)


def _with_seconds(
    join: "StreamJoin", side: Side, tuples: np.ndarray, base: int
) -> np.ndarray:
    """Tuples of a subwindow with the second keys of their rows.

    An engine with one key also stored those whose second one is NULL: they match nothing.
    """
    rows = join.stores[side].take(tuples["rid"].astype(np.int64) + base)
    seconds, known = join.condition.second_of(side, rows)
    tuples, seconds = tuples[known], seconds[known]
    return keyed_twice(tuples["key"], tuples["rid"], seconds, ascending(seconds))


def _chain(join: "StreamJoin", side: Side) -> dict[str, Any]:
    chain, store = join.manager.chains[side], join.stores[side]
    names = ("number", "base", "capacity", "rows", "smallest", "largest", "stored")
    return {
        "total": chain.total,
        "created": chain.created,
        "first": store.first,
        "end": store.end,
        "subwindows": [{name: getattr(sub, name) for name in names} for sub in chain],
    }


def _waiting(join: "StreamJoin") -> list[Arrivals]:
    """What was pushed and is not yet in a window: merging, collected, pending."""
    merging = [join.inputs.waiting()] if isinstance(join.inputs, ArrivalMerger) else []
    return merging + join.batcher.waiting


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_snapshot(
    make: "type[StreamJoin]", directory: str, changed: dict[str, Any]
) -> "StreamJoin":
    """The join that a snapshot holds, with engine options replaced by `changed`."""
    meaning = sorted(set(changed) - set(_ENGINE))
    if meaning:
        raise SnapshotError(
            f"a resumed join keeps its {meaning[0]!r}: only {', '.join(_ENGINE)} can be changed"
        )
    reader = _Reader(Path(directory))
    schemas = {name: reader.table(f"{name[0]}-schema").schema for name in ("left", "right")}
    join = make(**schemas, **{**reader.manifest["options"], **changed})
    try:
        reader.fill(join)
    except BaseException:
        join.close()
        raise
    return join


class _Reader:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.manifest = self._manifest()

    def _manifest(self) -> dict[str, Any]:
        path = self.directory / _MANIFEST
        try:
            seal, _, body = path.read_text().partition("\n")
        except (OSError, UnicodeDecodeError):
            raise SnapshotError(
                f"{self.directory} holds no snapshot: {path.name} cannot be read"
            ) from None
        if hashlib.sha256(body.removesuffix("\n").encode()).hexdigest() != seal:
            raise SnapshotError(
                f"the snapshot {self.directory} is damaged: {path.name} was changed"
            )
        manifest: dict[str, Any] = json.loads(body)
        if manifest["version"] != VERSION:
            raise SnapshotError(
                f"the snapshot {self.directory} has version {manifest['version']}, "
                f"this is version {VERSION}"
            )
        return manifest

    def table(self, name: str) -> pa.Table:
        path = self.directory / f"{name}.arrow"
        if not path.is_file() or _digest(path) != self.manifest["files"].get(path.name):
            raise SnapshotError(
                f"the snapshot {self.directory} is damaged: {path.name} is missing or was changed"
            )
        with pa.OSFile(str(path)) as source:
            return pa.ipc.open_file(source).read_all()

    def fill(self, join: "StreamJoin") -> None:
        manifest = self.manifest
        for side in Side:
            self._fill_stream(join, side, manifest["chains"][side])
            mark = join.watermarks[side]
            mark.newest, mark.promised = manifest["watermarks"][side]
        join.preprocessor.totals[:] = manifest["totals"]
        for name, value in manifest["metrics"].items():
            setattr(join.metrics, name, value)
        waiting = [self._arrivals(f"waiting-{n}") for n in range(manifest["waiting"])]
        if isinstance(join.inputs, ArrivalMerger):
            join.inputs.wait_for(waiting.pop(0), manifest["reached"])
        join.inputs.pushed[:] = manifest["pushed"]
        for number, letter in enumerate(manifest["late"]):
            numbers = self.table(f"late-{number}-numbers")["number"].to_numpy()
            join.late.append((letter, numbers, self._batch(f"late-{number}")))
        join.put_back(waiting, {Side(side) for side in manifest["ended"]})

    def _fill_stream(self, join: "StreamJoin", side: Side, held: dict[str, Any]) -> None:
        chain, store = join.manager.chains[side], join.stores[side]
        chain.total, chain.created = held["total"], held["created"]
        store.skip_to(held["first"])
        for rows in self.table(f"{side.letter}-rows").to_batches():
            store.append(rows)
        store.end = held["end"]
        for entry in held["subwindows"]:
            name = f"{side.letter}-subwindow-{entry['number']}"
            columns = self.table(name)
            tuples = np.empty(columns.num_rows, tuple_dtype(join.condition.key_bits))
            for field in ("key", "rid"):
                tuples[field] = columns[field].to_numpy()
            subwindow = Subwindow(worker=0, **entry)
            if join.condition.second_keys is not None:
                tuples = _with_seconds(join, side, tuples, subwindow.base)
            if f"{name}-carried.arrow" in self.manifest["files"]:
                carried = self.table(f"{name}-carried")
                for part in carried.column_names:
                    subwindow.carried[part] = Growing(carried[part].to_numpy())
            join.manager.restore(side, subwindow, tuples)

    def _arrivals(self, name: str) -> Arrivals:
        rows, numbers, positions = [], [], []
        for side in Side:
            rows.append(self._batch(f"{name}-{side.letter}-rows"))
            places = self.table(f"{name}-{side.letter}-places")
            numbers.append(places["number"].to_numpy())
            positions.append(places["position"].to_numpy())
        return Arrivals((rows[0], rows[1]), (numbers[0], numbers[1]), (positions[0], positions[1]))

    def _batch(self, name: str) -> pa.RecordBatch:
        table = self.table(name).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
