"""Device binaries: built ahead, kept in bitstreams/ under a digest, loaded where they match.

bitstreams/manifest.json maps a digest to what was built: file, kind, params, device, tool
versions, and the SHA-256 of the file. The digest covers the program's text, its options, the
device and its driver, so a binary is used by the very program that it was made of, or not at
all. What a vendor's offline compiler made (.aocx, .xclbin) enters by `register` with the same
manifest line, and the same `load` hands it out.
"""

import argparse
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

__all__ = ["ENGINES", "FOLDER", "build_engines", "load", "read_manifest", "register"]

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


#: Every program of the throughput engine, by its parameters.
ENGINES: tuple[dict[str, Any], ...] = (
    {"engine": "throughput", "key_bits": 32},
    {"engine": "throughput", "key_bits": 64},
    {"engine": "aggregates", "values": "int64"},
    {"engine": "aggregates", "values": "float64"},
)


def build_engines(
    device: str | None = None,
    engines: Sequence[Mapping[str, Any]] = ENGINES,
    folder: Path | None = None,
) -> Iterator[Path]:
    """Build and register programs of the throughput engine for one device, one by one."""
    from hw.opencl import program
    from hw.opencl.devices import choose

    chosen = choose(device)
    for params in engines:
        if params["engine"] == "throughput":
            text = program.engine_text(chosen, params["key_bits"])
        else:
            text = program.aggregate_text(chosen, params["values"] == "float64")
        yield register(
            program.digest_of(chosen, text, program.OPTIONS),
            program.build_binary(chosen, text),
            suffix=".clbin", params=params, device=chosen.identity, folder=folder,
        )


def read_manifest(folder: Path | None = None) -> dict[str, Any]:
    """Digest -> entry, of every kind of binary; empty where there is no manifest."""
    path = (FOLDER if folder is None else folder) / "manifest.json"
    return json.loads(path.read_text()) if path.is_file() else {}


def _replace(path: Path, data: bytes) -> None:
    """Write whole or not at all: another process may be reading."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_bytes(data)
    part.replace(path)


def main(arguments: list[str] | None = None) -> int:
    """python -m hw.opencl.binaries [--device D]: what `make binaries` runs."""
    parser = argparse.ArgumentParser(prog="python -m hw.opencl.binaries", description=main.__doc__)
    parser.add_argument("--device", help="a number, a part of a name, or platform:device")
    for path in build_engines(parser.parse_args(arguments).device):
        print(f"{path.relative_to(FOLDER.parent)}: {path.stat().st_size} bytes", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
