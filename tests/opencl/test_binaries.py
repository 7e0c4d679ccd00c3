"""Device binaries: built ahead, loaded where they match, and sentences where they do not."""

import re

import numpy as np
import pytest

import hw.opencl.program
from host.backend import Probes
from host.backends.opencl_backend import OpenCLBackend
from hw import bitstreams
from hw.opencl import binaries, building
from hw.opencl.building import OPTIONS, digest_of
from hw.opencl.devices import DeviceError, choose
from hw.opencl.fpga.channel_device import ChannelDevice
from hw.opencl.fpga.launching import load
from hw.opencl.fpga.source import source
from hw.opencl.program import aggregate_text, open_aggregates, open_program
from hw.spec import JoinParams, Side, compare, tuple_dtype
from tests.helpers import exactly

pytestmark = pytest.mark.opencl

SUMS = {"engine": "aggregates", "values": "int64"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty bitstreams/, and no program that was built before."""
    monkeypatch.setattr(bitstreams, "FOLDER", tmp_path / "bitstreams")
    open_aggregates.cache_clear()
    yield bitstreams.FOLDER
    open_aggregates.cache_clear()


def total(values):
    """The sum that a new engine finds over as many matches."""
    engine = OpenCLBackend(JoinParams())
    tuples = np.zeros(len(values), tuple_dtype(32))
    tuples["rid"] = np.arange(len(values))
    engine.create(Side.LEFT, 0, 10)
    engine.insert(Side.LEFT, 0, tuples)
    probes = Probes(Side.RIGHT, np.zeros(1, np.int32), compare("="))
    try:
        result = engine.aggregates(Side.LEFT, [0], probes, "v", [np.array(values, np.int64)])
        return int(result["sum"][0])
    finally:
        engine.close()


def test_a_binary_that_was_built_is_loaded_instead_of_source(folder, monkeypatch):
    assert SUMS in binaries.ENGINES
    (path,) = binaries.build_engines(engines=[SUMS])
    device = choose()
    digest = digest_of(device, aggregate_text(device, False), OPTIONS)
    entry = bitstreams.find(digest)
    assert (entry.kind, entry.params, entry.device) == ("opencl", SUMS, device.identity)
    assert entry.file == path.name == f"opencl-{digest[:16]}.clbin.gz"
    assert set(entry.tools) == {"pyopencl", "numpy", "driver"}

    def no_source(*_):
        raise AssertionError("built from source")

    open_program(device, 32)  # the sums stand on it
    monkeypatch.setattr(building, "_build_source", no_source)
    assert total([3, 5, 6]) == 14
    open_aggregates.cache_clear()
    bitstreams.forget([digest])
    assert not path.exists()
    with pytest.raises(AssertionError, match=r"^built from source$"):
        total([1])


def test_a_binary_of_an_older_text_is_stale_and_goes_when_it_is_built_anew(
    folder, monkeypatch, capsys
):
    (old,) = binaries.build_engines(engines=[SUMS])
    assert binaries.main(["--list"]) == 0
    name = choose().name
    line = f"{old.name}  engine=aggregates, values=int64  {name}: "
    assert capsys.readouterr().out == f"{line}loaded instead of source\n"
    with monkeypatch.context() as patch:
        patch.setattr(hw.opencl.program, "FAN", 32)
        assert binaries.main(["--list"]) == 0
        assert capsys.readouterr().out == f"{line}stale: run make binaries\n"
        (new,) = binaries.build_engines(engines=[SUMS])
    assert new.exists() and not old.exists()
    assert [entry.file for entry in bitstreams.read_manifest().values()] == [new.name]


@pytest.mark.parametrize("damage", ["refused", "damaged", "missing"])
def test_a_binary_that_does_not_load_is_named_and_the_source_is_used(folder, damage):
    device = choose()
    digest = digest_of(device, aggregate_text(device, False), OPTIONS)
    path = register(digest, ".clbin", device.identity)
    reason = ".*INVALID_BINARY.*"
    if damage == "damaged":
        path.write_bytes(b"other")
        reason = rf"{path.name} is not the file that the manifest names"
    elif damage == "missing":
        path.unlink()
        reason = rf"{path.name} is in the manifest and not in bitstreams/"
    pattern = (
        rf"^the OpenCL device {re.escape(str(device))} does not load bitstreams/{path.name} "
        rf"\({reason}\): build it again, see bitstreams/README.md; until then it is built from "
        "source$"
    )
    with pytest.warns(UserWarning, match=pattern):
        assert total([3, 5, 6]) == 14


def register(digest, suffix, identity, params=SUMS):
    return bitstreams.register(
        digest, b"no driver takes this", name="opencl", suffix=suffix, kind="opencl",
        params=params, device=identity, tools={},
    )


# What vendors' offline compilers make: no card is here, but its file, its entry and its loader are.

SIZES = JoinParams(mergers=2, probers=2)


def load_as_a_card(options=()):
    """Load the FPGA form on a device that is treated as a card: it compiles nothing itself."""
    where = ChannelDevice(choose(), staged=False, depth=64, key_depth=512, options=options)
    return load(where, source(SIZES, 64, 512), ("collect",))


def test_a_card_without_a_bitstream_of_these_sizes_is_told_what_there_is(folder):
    device = choose()
    message = (
        f"bitstreams/ has no engine of these sizes for the OpenCL device {device}: build one, see "
        "bitstreams/README.md"
    )
    with pytest.raises(DeviceError, match=exactly(message)):
        load_as_a_card()
    register("d" * 64, ".aocx", device.identity, {"engine": "fpga", "mergers": 8, "probers": 4})
    message += ", or ask with --params for one that is there (mergers=8,probers=4)"
    with pytest.raises(DeviceError, match=exactly(message)):
        load_as_a_card()


@pytest.mark.parametrize(("suffix", "options"), [(".aocx", ()), (".xclbin", ("-DXILINX",))])
def test_a_bitstream_that_the_card_refuses_is_named(folder, suffix, options):
    device = choose()
    digest = digest_of(device, source(SIZES, 64, 512), (*OPTIONS, *options))
    path = register(digest, suffix, device.identity)
    assert path.name == f"opencl-{digest[:16]}{suffix}"
    pattern = (
        rf"^the OpenCL device {re.escape(str(device))} does not load bitstreams/{path.name} "
        r"\(.*INVALID_BINARY.*\): build it again, see bitstreams/README.md$"
    )
    with pytest.raises(DeviceError, match=pattern):
        load_as_a_card(options)


def test_a_card_that_is_not_here_is_told_by_its_bitstream(folder):
    register("e" * 64, ".aocx", {"device": "pac_a10 : Arria 10", "platform": "Intel"})
    message = (
        f"no OpenCL device matches 'a10', which bitstreams/opencl-{'e' * 16}.aocx is made for: "
        f"plug it in and install its driver, or choose one of {choose()}"
    )
    with pytest.raises(DeviceError, match=exactly(message)):
        choose("a10")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--add", "engine.bin"], "{0}/engine.bin must end in .aocx or .xclbin"),
        (["--add", "engine.aocx"], "there is no file {0}/engine.aocx: make it with Intel's aoc"),
        (
            ["--add", "engine.xclbin"],
            "no OpenCL device has channels: program a card, or run the command under Intel's "
            "FPGA emulator with python -m hw.opencl.fpga.emulator",
        ),
        (
            ["--device", "nowhere"],
            "no OpenCL device matches 'nowhere': choose one of {1}",
        ),
    ],
)
def test_what_cannot_be_kept_is_said_in_one_line(
    folder, tmp_path, monkeypatch, capsys, arguments, message
):
    (tmp_path / "engine.xclbin").write_bytes(b"xclbin2")
    arguments = [str(tmp_path / word) if "engine" in word else word for word in arguments]
    assert binaries.main(arguments) == 1
    assert capsys.readouterr().err == f"binaries: {message.format(tmp_path, choose())}\n"
    assert bitstreams.read_manifest() == {}
