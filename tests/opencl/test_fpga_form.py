"""The FPGA form: what it says without a device, and on Intel's FPGA emulator what it does."""

import os
import random
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from host.backends.opencl_fpga_backend import FpgaFormBackend
from host.errors import BackendUnavailable
from hw.opencl.devices import Device
from hw.opencl.fpga import emulator
from hw.opencl.fpga.__main__ import main
from hw.opencl.fpga.arena import Arena
from hw.opencl.fpga.channel_device import ChannelDevice, find_device, has_channels
from hw.opencl.fpga.source import (
    insertion_kernels,
    probing_kernels,
    source,
    storing_kernels,
)
from hw.spec.params import JoinParams
from tests.helpers import exactly

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIMEOUT_S = 300


def run_on_emulator(folder, *arguments, kernels=16):
    """Run pytest in a process of its own: the emulator has to be announced before OpenCL first
    looks for devices, and kernels that wait for each other for ever only end with their process.
    """
    assert emulator.library().exists(), f"{emulator.library()} is missing: run make setup"
    try:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
            cwd=ROOT, env={**os.environ, **emulator.environment(folder, kernels)}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TIMEOUT_S, check=False,
        )
    except subprocess.TimeoutExpired as stuck:
        pytest.fail(f"did not end in {TIMEOUT_S} s: {(stuck.stdout or b'').decode()}")
    assert run.returncode == 0, run.stdout


@pytest.mark.opencl
@pytest.mark.slow
def test_the_fpga_form_keeps_its_promises_on_the_emulator(tmp_path):
    names = ("insertion", "probing", "collecting", "pipes", "bitstream")
    run_on_emulator(tmp_path, *(HERE / "fpga" / f"{name}.py" for name in names))


@pytest.mark.opencl
@pytest.mark.slow
def test_the_fpga_form_passes_the_conformance_suite(tmp_path):
    run_on_emulator(
        tmp_path, "-p", "tests.opencl.fpga.conformance", "-k", "opencl",
        ROOT / "tests" / "host" / "test_backends.py", kernels=4,
    )


def test_without_channels_there_is_a_sentence_with_the_cure(monkeypatch):
    monkeypatch.setattr("hw.opencl.fpga.channel_device.list_devices", list)
    message = (
        "no OpenCL device has channels: program a card, or run the command under Intel's FPGA "
        "emulator with python -m hw.opencl.fpga.emulator"
    )
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        FpgaFormBackend(JoinParams())


def seen(number, platform, name, extensions=""):
    """A device as its driver describes it."""
    return Device(
        number, (number, 0), platform, "OpenCL 1.2", name, "1", "accelerator", 1 << 34, 1,
        handle=SimpleNamespace(extensions=extensions),
    )


CARDS = [
    seen(0, "Portable Computing Language", "a processor"),
    seen(1, "Intel(R) FPGA SDK for OpenCL(TM)", "pac_a10", "cl_khr_icd cl_intel_channels"),
    seen(2, "Xilinx", "xilinx_u280"),
    seen(3, "Intel(R) FPGA Emulation Platform", "FPGA Emulation Device", "cl_intel_channels"),
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (None, ChannelDevice(CARDS[1], staged=False, depth=64, key_depth=512)),
        ("a10", ChannelDevice(CARDS[1], staged=False, depth=64, key_depth=512)),
        ("u280", ChannelDevice(CARDS[2], False, 64, 512, options=("-DXILINX",))),
        ("3", ChannelDevice(CARDS[3], staged=True, depth=8192, key_depth=16384, compiles=True)),
    ],
)
def test_a_card_of_either_vendor_is_found_and_only_the_emulator_compiles(
    monkeypatch, wanted, expected
):
    monkeypatch.setattr("hw.opencl.fpga.channel_device.list_devices", lambda: CARDS)
    assert [has_channels(device) for device in CARDS] == [False, True, True, True]
    assert find_device(wanted) == expected


def test_the_paper_mode_is_not_of_the_fpga_form():
    message = (
        "the FPGA form has no mode=paper: it merges every batch at once; leave it out, or choose "
        "a device without channels"
    )
    with pytest.raises(BackendUnavailable, match=exactly(message)):
        FpgaFormBackend(JoinParams(mode="paper"))


def test_a_command_runs_with_the_emulator_among_its_devices(capfd):
    listing = "from hw.opencl import choose; print(choose('emulation').name)"
    assert emulator.main([sys.executable, "-c", listing]) == 0
    assert capfd.readouterr().out == "Intel(R) FPGA Emulation Device\n"
    assert emulator.main(["false"]) == 1
    assert emulator.main([]) == 2


@pytest.mark.parametrize("cores", [1, 4])
def test_the_program_has_every_kernel_once_and_no_vendor_outside_of_the_header(cores):
    params = JoinParams(cores=cores, mergers=2, probers=2)
    launched = [*storing_kernels(params), *probing_kernels(params)]
    for core in range(cores):
        launched += insertion_kernels(params, core)
    assert len(set(launched)) == len(launched) == 3 + cores * (2 + 3 * 2 + 1 + 2 + 3 * 2)
    text = source(params)
    tasks = len(re.findall(r"(?m)^TASK ", text))
    assert tasks == len(launched)
    code = re.sub(r'#line 1 "channels.h".*?#define EACH_CORE', "", text, flags=re.DOTALL)
    assert re.findall(r"intel|xcl_|\bpipe\b|\bchannel [a-z]+ [a-z_]+;", code) == []


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            ["--cores", "32"],
            "cores of the FPGA form must be at most 16, not 32: distribution and collection are "
            "one level deep",
        ),
        (["--depth", "8"], "depth must be a power of two from 16 up, not 8"),
        (["--key-depth", "100"], "key_depth must be a power of two from 16 up, not 100"),
        (["--mergers", "3"], "mergers must be a power of two, not 3"),
    ],
)
def test_a_size_that_cannot_be_built_is_named(capsys, sizes, message):
    with pytest.raises(SystemExit, match=exactly("2")):
        main(sizes)
    assert capsys.readouterr().err.endswith(f"error: {message}\n")


def test_the_printed_program_is_the_one_that_runs(capsys):
    assert main(["--cores", "2", "--key-bits", "64", "--depth", "32"]) == 0
    params = JoinParams(cores=2, key_bits=64)
    assert capsys.readouterr().out == source(params, depth=32)


def test_an_arena_never_gives_a_place_twice_and_joins_what_comes_back():
    rng = random.Random(3)
    arena, taken = Arena(40), {}
    for _ in range(2_000):
        if taken and rng.random() < 0.5:
            first = rng.choice(sorted(taken))
            arena.give_back(first, taken.pop(first))
            continue
        places = rng.randint(1, 9)
        first = arena.take(places)
        if first is None:
            arena.grow(arena.size + places)
            first = arena.take(places)
        used = {place for begin, room in taken.items() for place in range(begin, begin + room)}
        assert used.isdisjoint(range(first, first + places))
        assert first + places <= arena.size
        taken[first] = places
    for first, places in taken.items():
        arena.give_back(first, places)
    assert arena.take(arena.size) == 0
