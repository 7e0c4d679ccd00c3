"""The durable log of a join: spooled parts, and a manifest for each epoch that names them.

    plan.json            what the join is
    epochs/<epoch>.json  the manifest: which parts, in which order, and where the streams stood
    spool/<epoch>/       the parts (host.spool)

A manifest is made once, by the first worker that runs the epoch; whatever a later command says,
the epoch is what its manifest says. So the order of arrival is fixed once, and all workers, in
all their lives, agree on row numbers, watermarks and on what is too old to be kept.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from host.errors import EpochError, StateError
from host.options import JoinOptions
from host.spool import Part, spool_directory, sync_directory
from hw.spec.tuples import Side
from hw.spec.windows import NOTHING_YET, NoWindow, RowWindow, TimeWindow

__all__ = ["EpochLog", "Manifest"]

VERSION = 1
#: Options that decide what the result is; a join may not change them in its life.
_MEANING = ("on", "window", "left", "right", "time", "lateness", "emit", "select", "order",
            "aggregates", "late")


@dataclass(frozen=True)
class Manifest:
    """An epoch, as it was fixed once.

    first    rows of either stream before it
    rows     rows of either stream in it
    largest  the largest event time of either stream in it; None without one
    newest   the same over all epochs up to this one
    watermark  what is older than this in it is late
    oldest   the first epoch that this one still needs: nothing before it is ever asked for again
    run      the start of the query in which it was fixed
    """

    epoch: int
    first: tuple[int, int]
    rows: tuple[int, int]
    largest: tuple[int | None, int | None]
    newest: tuple[int | None, int | None]
    watermark: int
    oldest: int
    parts: tuple[Part, ...]
    run: str = ""

    @property
    def end(self) -> tuple[int, int]:
        """Rows of either stream after it."""
        return self.first[0] + self.rows[0], self.first[1] + self.rows[1]

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.parts)


class EpochLog:
    """The log of one join; keeps the manifests that it has read."""

    def __init__(self, directory: Path, options: JoinOptions) -> None:
        self.directory = directory
        self._options = options
        self._manifests: dict[int, Manifest] = {}
        self._expired = 0  # everything before it has been deleted

    def check_plan(self, plain: Mapping[str, Any]) -> None:
        """Write what the join is, or compare it with what it was."""
        plan = {"version": VERSION, **{name: plain.get(name) for name in _MEANING}}
        path = self.directory / "plan.json"
        if not path.exists():
            self.directory.mkdir(parents=True, exist_ok=True)
            _create(path, plan)
            for directory in (self.directory, *self.directory.parents[:3]):
                sync_directory(directory)
        change = _difference(_read(path), plan)
        if change:
            raise StateError(
                f"the join in {self.directory} has {change}: "
                "give a changed join another state_dir"
            )

    def has(self, epoch: int) -> bool:
        return epoch in self._manifests or self._path(epoch).exists()

    def manifest(self, epoch: int) -> Manifest:
        """The manifest of an epoch that was run; StateError names the file if it is missing."""
        if epoch not in self._manifests:
            self._manifests[epoch] = _manifest(_read(self._path(epoch)))
        return self._manifests[epoch]

    def watermark(self, epoch: int) -> int:
        """What is older than this in that epoch is late: fixed by the epochs before it.

        Spark's rule: the slower one of the two streams counts.
        """
        return self.manifest(epoch).watermark if self.has(epoch) else self._next_watermark(epoch)

    def _next_watermark(self, epoch: int) -> int:
        lateness_us = self._options.lateness_us
        newest = self.manifest(epoch - 1).newest if epoch else (None, None)
        if lateness_us is None or newest[0] is None or newest[1] is None:
            return NOTHING_YET
        return max(NOTHING_YET, min(newest[0], newest[1]) - lateness_us)

    def settle(
        self,
        epoch: int,
        parts: Sequence[Part],
        largest: tuple[int | None, int | None],
        run: str = "",
    ) -> Manifest:
        """Fix the epoch as `parts`, unless it was fixed before; durable when this returns.

        The parts are durable already (host.spool.write_part), so that no manifest ever names one
        that a crash takes away.
        """
        if not self.has(epoch):
            manifest = self._next(epoch, parts, largest, run)
            path = self._path(epoch)
            if not epoch or not path.parent.exists():
                path.parent.mkdir(exist_ok=True)
                sync_directory(self.directory)
            if _create(path, asdict(manifest)):
                self._manifests[epoch] = manifest
        # Also where another one made it and may not have come as far.
        sync_directory(self._path(epoch).parent)
        return self.manifest(epoch)

    def _next(
        self,
        epoch: int,
        parts: Sequence[Part],
        largest: tuple[int | None, int | None],
        run: str,
    ) -> Manifest:
        first, newest = (0, 0), largest
        if epoch:
            before = self.manifest(epoch - 1)
            first = before.end
            newest = (_later(before.newest[0], largest[0]), _later(before.newest[1], largest[1]))
        rows = (sum(part.left_rows for part in parts), sum(part.right_rows for part in parts))
        kept = tuple(part for part in parts if any(part.rows))
        watermark, oldest = self._next_watermark(epoch), self._next_oldest(epoch)
        return Manifest(epoch, first, rows, largest, newest, watermark, oldest, kept, run)

    def rows_before(self, epoch: int) -> tuple[int, int]:
        """Rows of either stream before an epoch, which may be the next one."""
        if self.has(epoch):
            return self.manifest(epoch).first
        return self.manifest(epoch - 1).end if epoch else (0, 0)

    def oldest(self, epoch: int) -> int:
        """The first epoch that has rows which that epoch can see; itself if there is none."""
        return self.manifest(epoch).oldest if self.has(epoch) else self._next_oldest(epoch)

    def _next_oldest(self, epoch: int) -> int:
        if not epoch:
            return 0
        before, watermark = self.manifest(epoch - 1), self._next_watermark(epoch)
        for candidate in range(before.oldest, epoch):
            if self._is_live(self.manifest(candidate), before.end, watermark):
                return candidate
        return epoch

    def _is_live(self, manifest: Manifest, end: tuple[int, int], watermark: int) -> bool:
        window = self._options.parsed_window
        if isinstance(window, NoWindow):
            return True
        if isinstance(window, RowWindow):
            return any(manifest.end[side] > end[side] - window.rows(side) for side in Side)
        assert isinstance(window, TimeWindow)
        for side in Side:
            largest = manifest.largest[side]
            if largest is not None and largest >= window.horizon(side, watermark):
                return True
        return False

    def expire(self, epoch: int) -> None:
        """Delete what that epoch no longer needs; it has begun, so the ones before committed."""
        oldest = self.manifest(epoch).oldest
        if oldest == self._expired:
            return
        self._expired = oldest
        self.forget(oldest)

    def forget(self, epoch: int) -> None:
        """Delete all that is older than an epoch."""
        for number in self.epochs():
            if number < epoch:
                self.remove(number)

    def remove(self, epoch: int) -> None:
        """Delete an epoch; what a crash leaves of it is found by the next one."""
        self._manifests.pop(epoch, None)
        self._path(epoch).unlink(missing_ok=True)
        shutil.rmtree(spool_directory(self.directory, epoch), ignore_errors=True)

    def epochs(self) -> list[int]:
        """The epochs that have parts or a manifest."""
        names = {path.name for path in (self.directory / "spool").glob("*")}
        names |= {path.stem for path in (self.directory / "epochs").glob("*.json")}
        return sorted(int(name) for name in names if name.isdecimal())

    def check_order(self, epoch: int) -> None:
        """Refuse an epoch that has passed, or whose predecessors are not here."""
        if self.has(epoch + 1):
            raise EpochError(
                f"epoch {epoch} of {self.directory} has passed: epoch {epoch + 1} was begun"
            )
        if epoch and not self.has(epoch) and not self.has(epoch - 1):
            raise EpochError(
                f"epoch {epoch} of {self.directory} cannot be run: "
                f"the state of epoch {epoch - 1} is not there{self._other_join()}"
            )

    def _other_join(self) -> str:
        """If nothing was ever run here: how the one other join of the query differs."""
        plans = set(self.directory.parent.glob("*/plan.json")) - {self.directory / "plan.json"}
        if (self.directory / "epochs").exists() or len(plans) != 1:
            return ""
        other = plans.pop()
        change = _difference(_read(other), _read(self.directory / "plan.json"))
        return f"; the join of the query in {other.parent} has {change or 'other inputs'}"

    def _path(self, epoch: int) -> Path:
        return self.directory / "epochs" / f"{epoch}.json"


def _later(a: int | None, b: int | None) -> int | None:
    return max((time for time in (a, b) if time is not None), default=None)


def _difference(known: Mapping[str, Any], plan: Mapping[str, Any]) -> str:
    """The first thing that two plans do not have in common; nothing if they are the same."""
    for name, value in plan.items():
        if known.get(name) != value:
            return f"another {name}, {_shown(known.get(name))} and not {_shown(value)}"
    return ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _manifest(values: dict[str, Any]) -> Manifest:
    parts = tuple(Part(**part) for part in values.pop("parts"))
    for name in ("first", "rows", "largest", "newest"):
        values[name] = tuple(values[name])
    return Manifest(**values, parts=parts)


def _create(path: Path, values: Mapping[str, Any]) -> bool:
    """Write a sealed file, whole and durable, unless there is one; whether it is this one.

    Results wait for this beside threads that are busy: every call of the system lets one of them
    go first, so there are as few as can be.
    """
    body = json.dumps(values).encode()
    sealed = b"%s\n%s\n" % (hashlib.sha256(body).hexdigest().encode(), body)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        try:
            written = os.write(handle, sealed)
            if written < len(sealed):
                raise OSError(f"{path} could be written to {written} of {len(sealed)} bytes only")
            os.fsync(handle)
        finally:
            os.close(handle)
        try:
            os.link(partial, path)
        except FileExistsError:
            return False
        return True
    finally:
        os.unlink(partial)


def _read(path: Path) -> dict[str, Any]:
    try:
        seal, _, body = path.read_text().partition("\n")
    except FileNotFoundError:
        raise StateError(f"the state file {path} is missing: put it back") from None
    except (OSError, UnicodeDecodeError) as error:
        raise StateError(f"the state file {path} cannot be read: {error}") from None
    if hashlib.sha256(body.removesuffix("\n").encode()).hexdigest() != seal:
        raise StateError(
            f"the state file {path} is damaged: its bytes do not have their checksum"
        )
    values: dict[str, Any] = json.loads(body)
    return values
