"""bitstreams/: what was built ahead for a device or a board, and the one manifest of all of it.

bitstreams/manifest.json maps a digest to an entry. The digest names what was built: program and
device for a device binary, gateware and board for a board's bitstream; so an entry serves the very
thing that it was made of, or nothing. One format and one reader for every kind.
"""

import gzip
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

__all__ = [
    "FOLDER", "Bitstream", "DamagedBitstream", "add_facts", "find", "forget", "read_manifest",
    "register",
]

FOLDER = Path(__file__).resolve().parents[1] / "bitstreams"


class DamagedBitstream(Exception):
    """A file of bitstreams/ is not what the manifest says; one sentence."""


@dataclass(frozen=True, kw_only=True)
class Bitstream:
    """An entry of the manifest, under its digest.

    kind    "opencl" or "board"
    file    its name in bitstreams/
    sha256  of the file
    params  sizes of the engine
    device  what it runs on: an OpenCL device's identity, or a board and its chip
    tools   name -> version of what built it
    facts   what is known of it besides: clock, use of the chip, digest of the sources
    """

    kind: str
    file: str
    sha256: str
    params: dict[str, Any]
    device: dict[str, str]
    tools: dict[str, str]
    facts: dict[str, Any] = field(default_factory=dict)

    def read(self, folder: Path | None = None) -> bytes:
        """What was registered, unpacked from a .gz; DamagedBitstream where the file is another."""
        path = (folder or FOLDER) / self.file
        if not path.is_file():
            raise DamagedBitstream(f"{path.name} is in the manifest and not in {path.parent.name}/")
        data = path.read_bytes()
        if sha256(data).hexdigest() != self.sha256:
            raise DamagedBitstream(f"{path.name} is not the file that the manifest names")
        return gzip.decompress(data) if path.suffix == ".gz" else data


def read_manifest(folder: Path | None = None) -> dict[str, Bitstream]:
    """Digest -> entry, of every kind; empty where there is no manifest."""
    path = (folder or FOLDER) / "manifest.json"
    entries = json.loads(path.read_text()) if path.is_file() else {}
    return {digest: Bitstream(**entry) for digest, entry in entries.items()}


def find(digest: str, folder: Path | None = None) -> Bitstream | None:
    """The entry of that digest."""
    return read_manifest(folder).get(digest)


def register(
    digest: str,
    data: bytes,
    *,
    name: str,
    suffix: str,
    kind: str,
    params: Mapping[str, Any],
    device: Mapping[str, str],
    tools: Mapping[str, str],
    facts: Mapping[str, Any] | None = None,
    folder: Path | None = None,
) -> Path:
    """Store a file as <name>-<digest><suffix>, packed where that ends in .gz, and its entry."""
    folder = folder or FOLDER
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}-{digest[:16]}{suffix}"
    if path.suffix == ".gz":
        data = gzip.compress(data, mtime=0)  # the same data, the same file
    _replace(path, data)
    entry = Bitstream(
        kind=kind, file=path.name, sha256=sha256(data).hexdigest(), params=dict(params),
        device=dict(device), tools=dict(tools), facts=dict(facts or {}),
    )
    _write({**read_manifest(folder), digest: entry}, folder)
    return path


def add_facts(digest: str, facts: Mapping[str, Any], folder: Path | None = None) -> None:
    """Add facts to the entry of that digest, or replace those of the same names."""
    folder = folder or FOLDER
    manifest = read_manifest(folder)
    entry = manifest[digest]
    manifest[digest] = replace(entry, facts={**entry.facts, **facts})
    _write(manifest, folder)


def forget(digests: Iterable[str], folder: Path | None = None) -> None:
    """Remove entries and their files."""
    folder = folder or FOLDER
    manifest = read_manifest(folder)
    gone = [manifest.pop(digest) for digest in digests]
    if gone:
        _write(manifest, folder)
    for entry in gone:
        (folder / entry.file).unlink(missing_ok=True)


def _write(manifest: Mapping[str, Bitstream], folder: Path) -> None:
    entries = {digest: asdict(entry) for digest, entry in sorted(manifest.items())}
    _replace(folder / "manifest.json", (json.dumps(entries, indent=2) + "\n").encode())


def _replace(path: Path, data: bytes) -> None:
    """Write whole or not at all: another process may be reading."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)
