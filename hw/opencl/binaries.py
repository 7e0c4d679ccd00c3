"""Device binaries: built ahead, kept in bitstreams/ under a digest, loaded where they match.

bitstreams/manifest.json maps a digest to what was built: file, kind, params, device, tool
versions, and the SHA-256 of the file. The digest covers the program's text, its options, the
device and its driver, so a binary is used by the very program that it was made of, or not at
all. What a vendor's offline compiler made (.aocx, .xclbin) enters by `register` with the same
manifest line, and the same `load` hands it out.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "load", "read_manifest", "register"]

FOLDER = Path(__file__).resolve().parents[2] / "bitstreams"


def load(digest: str, folder: Path | None = None) -> bytes | None:
    """The binary of that digest, or None where there is none or its bytes are damaged."""
    folder = FOLDER if folder is None else folder
    entry = read_manifest(folder).get(digest)
    path = folder / entry["file"] if entry else None
    if entry is None or path is None or not path.is_file():
        return None
    data = path.read_bytes()
    return data if sha256(data).hexdigest() == entry["sha256"] else None


def register(
    digest: str,
    data: bytes,
    *,
    suffix: str,
    params: Mapping[str, Any],
    device: Mapping[str, str],
    folder: Path | None = None,
) -> Path:
    """Store a binary and its manifest line; `suffix` is .clbin, .aocx or .xclbin."""
    folder = FOLDER if folder is None else folder
    folder.mkdir(exist_ok=True)
    path = folder / f"opencl-{digest[:16]}{suffix}"
    _replace(path, data)
    manifest = read_manifest(folder)
    manifest[digest] = {
        "kind": "opencl",
        "file": path.name,
        "sha256": sha256(data).hexdigest(),
        "params": dict(params),
        "device": dict(device),
        "tools": {name: version(name) for name in ("pyopencl", "numpy")},
    }
    _replace(folder / "manifest.json", (json.dumps(manifest, indent=2) + "\n").encode())
    return path


def read_manifest(folder: Path | None = None) -> dict[str, Any]:
    """Digest -> entry, of every kind of binary; empty where there is no manifest."""
    path = (FOLDER if folder is None else folder) / "manifest.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def _replace(path: Path, data: bytes) -> None:
    """Write whole or not at all: another process may be reading."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)
