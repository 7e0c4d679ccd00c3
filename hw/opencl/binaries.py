"""Device binaries: built ahead, kept in bitstreams/, loaded where they match.

    python -m hw.opencl.binaries [--device D]                      what `make binaries` runs
    python -m hw.opencl.binaries --list
    python -m hw.opencl.binaries --add engine.aocx [--device D] [--params mergers=8,...]

The digest covers the program's text, its options, the device and its driver. What a vendor's
offline compiler made of the FPGA form (.aocx, .xclbin) is added with the same entry, and the same
hw.opencl.building.build loads it.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hw import bitstreams
from hw.opencl import program
from hw.opencl.building import OPTIONS, build_binary, digest_of
from hw.opencl.devices import Device, DeviceError, choose
from hw.opencl.fpga.channel_device import find_device
from hw.opencl.fpga.source import sizes_of, source
from hw.spec.params import parse_params

__all__ = ["ENGINES", "SUFFIXES", "add", "build_engines", "main"]

#: Every program of the throughput engine, by its parameters.
ENGINES: tuple[dict[str, Any], ...] = (
    {"engine": "throughput", "key_bits": 32},
    {"engine": "throughput", "key_bits": 64},
    {"engine": "aggregates", "values": "int64"},
    {"engine": "aggregates", "values": "float64"},
)
#: What offline compilers make, by the ending of its file -> who makes it.
SUFFIXES = {".aocx": "Intel's aoc", ".xclbin": "Xilinx's v++"}


def build_engines(
    device: str | None = None, engines: Sequence[Mapping[str, Any]] = ENGINES
) -> Iterator[Path]:
    """Build and register programs of the throughput engine for one device, one by one.

    What was made of an older text for the same engine and device goes.
    """
    chosen = choose(device)
    for params in engines:
        text = _text(chosen, params)
        digest = digest_of(chosen, text, OPTIONS)
        data = build_binary(chosen, text)
        path = _register(chosen, digest, data, ".clbin.gz", params)
        bitstreams.forget(_older(chosen, digest, params))
        yield path


def add(path: Path, device: str | None = None, params: str | None = None) -> Path:
    """Register what an offline compiler made of `python -m hw.opencl.fpga` for a card."""
    if path.suffix not in SUFFIXES:
        raise DeviceError(f"{path} must end in {' or '.join(SUFFIXES)}")
    if not path.is_file():
        raise DeviceError(f"there is no file {path}: make it with {SUFFIXES[path.suffix]}")
    where, sizes = find_device(device), parse_params(params)
    text = source(sizes, where.depth, where.key_depth)
    digest = digest_of(where.device, text, (*OPTIONS, *where.options))
    named = {"engine": "fpga", **sizes_of(sizes)}
    return _register(where.device, digest, path.read_bytes(), path.suffix, named)


def _text(device: Device, params: Mapping[str, Any]) -> str:
    if params["engine"] == "throughput":
        return program.engine_text(device, params["key_bits"])
    return program.aggregate_text(device, params["values"] == "float64")


def _register(
    device: Device, digest: str, data: bytes, suffix: str, params: Mapping[str, Any]
) -> Path:
    return bitstreams.register(
        digest, data, name="opencl", suffix=suffix, kind="opencl", params=params,
        device=device.identity,
        tools={name: version(name) for name in ("pyopencl", "numpy")} | {"driver": device.driver},
    )


def _older(device: Device, digest: str, params: Mapping[str, Any]) -> list[str]:
    """Other binaries of the same engine for the same device."""
    return [
        other
        for other, entry in bitstreams.read_manifest().items()
        if other != digest and entry.params == params and entry.device == device.identity
    ]


def _list(device: Device) -> Iterator[str]:
    """A line to an entry: its file, what it is, and whether it would be loaded here."""
    for digest, entry in bitstreams.read_manifest().items():
        sizes = ", ".join(f"{name}={value}" for name, value in entry.params.items())
        name = entry.device.get("device") or entry.device.get("board", "")
        yield f"{entry.file}  {sizes}  {name}: {_state(device, digest, entry)}"


def _state(device: Device, digest: str, entry: bitstreams.Bitstream) -> str:
    if entry.device != device.identity:
        return "for another device"
    if entry.params.get("engine") == "fpga":
        return "for this device"
    text = _text(device, entry.params)
    current = digest_of(device, text, OPTIONS) == digest
    return "loaded instead of source" if current else "stale: run make binaries"


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, list or add; what goes wrong is one line and exit code 1."""
    parser = argparse.ArgumentParser(
        prog="python -m hw.opencl.binaries", description="Device binaries in bitstreams/."
    )
    parser.add_argument("--device", help="a number, a part of a name, or platform:device")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--list", action="store_true", help="show what is there and what it is for")
    what.add_argument("--add", type=Path, metavar="FILE", help="keep an .aocx or .xclbin")
    parser.add_argument("--params", help="sizes of the engine in FILE, e.g. mergers=8,probers=8")
    given = parser.parse_args(arguments)
    try:
        for line in _run(given):
            print(line, flush=True)
    except (DeviceError, ValueError) as error:
        print(f"binaries: {error}", file=sys.stderr)
        return 1
    return 0


def _run(given: argparse.Namespace) -> Iterator[str]:
    if given.list:
        yield from _list(choose(given.device))
        return
    paths = [add(given.add, given.device, given.params)] if given.add else (
        build_engines(given.device)
    )
    for path in paths:
        yield f"{path.parent.name}/{path.name}: {path.stat().st_size:,} bytes"


if __name__ == "__main__":
    raise SystemExit(main())
