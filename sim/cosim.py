"""The simulated board: the top level of the bitstreams, in Verilator, behind a pty.

    python -m sim.cosim

It prints the name of the port, which a host opens like the serial port of a board.
"""

import ctypes
import fcntl
import hashlib
import importlib.metadata
import os
import pty
import select
import tempfile
import threading
import tty
from dataclasses import asdict
from pathlib import Path

import numpy as np

from hw.bitstreams import find, register
from hw.boards.chip import board_top
from hw.boards.ulx3s import ULX3S
from hw.rtl.digest import gateware_digest, library_directory
from hw.rtl.engine_words import head_layout
from hw.rtl.layouts import fields_of
from sim.elaborate import short_verilog
from sim.sdram_board import CoreWithChip
from sim.verilated import QUICK, compile_library

__all__ = ["SimulatedBoard", "build_board", "load_board"]

HARNESS = Path(__file__).with_name("board_harness.cpp")
#: Clock cycles of a bit on the simulated line; a real one has more, the board cannot tell.
DIVISOR = 4
#: Cycles between two looks at the pty while bytes move, and while none do.
_CYCLES, _IDLE_CYCLES = 10_000, 1_000


def build_board(board=ULX3S, *, where=None):
    """Build a simulated board unless it is there; its folder (see hw.bitstreams) and digest.

    It is the board's own top level but for its pins and clock, and for the length of a bit on
    the line. In place of a bitstream's file the folder has a library.
    """
    folder = Path(where or library_directory()) / "board"
    folder.mkdir(parents=True, exist_ok=True)
    made_of = repr((gateware_digest("boards"), board.name, board.params, board.slots, board.sdram,
                    HARNESS.read_text(), QUICK))
    digest = hashlib.sha256(made_of.encode()).hexdigest()[:20]
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if find(digest, folder) is None:
            top = board_top(board, digest, DIVISOR, CoreWithChip)
            text = short_verilog(top, "core")
            with tempfile.TemporaryDirectory(prefix="board-", dir=folder) as directory:
                library = compile_library(
                    text, HARNESS, Path(directory), {"DIVISOR": DIVISOR}, QUICK
                )
                register(
                    digest, library.read_bytes(), name="simulated", suffix=".so", kind="board",
                    params=asdict(board.params), device={"board": "simulated"},
                    tools={"verilator": importlib.metadata.version("verilator")},
                    facts={"slots": board.slots, "head": fields_of(head_layout(board.params))},
                    folder=folder,
                )
    return folder, digest


class SimulatedBoard:
    """A board in a thread of its own, at the other end of the pty `port`.

    `spoil_in` and `spoil_out` see the bytes that go to and come from the board, and give those
    that the cable makes of them. `reset` presses the board's button.
    """

    def __init__(self, folder, digest, spoil_in=bytes, spoil_out=bytes):
        self._library = load_board(folder / find(digest, folder).file)
        self._handle = ctypes.c_void_p(self._library.board_open())
        self._spoil_in, self._spoil_out = spoil_in, spoil_out
        self._master, self._slave = pty.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._ends = threading.Event()
        self._press = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def cycles(self):
        return int(self._library.board_cycles(self._handle))

    def reset(self):
        self._press.set()

    def unplug(self):
        """The cable goes; the host sees an error, not silence."""
        self.close()

    def close(self):
        if self._ends.is_set():
            return
        self._ends.set()
        self._thread.join()
        os.close(self._slave)
        os.close(self._master)
        self._library.board_close(self._handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self):
        waiting, quiet = b"", 0
        room = np.empty(1 << 14, np.uint8)
        taken = ctypes.c_uint64()
        while not self._ends.is_set():
            if self._press.is_set():
                self._press.clear()
                self._library.board_reset(self._handle)
            idle = quiet > 3  # a board at rest costs little processor time
            ready, _, _ = select.select([self._master], [], [], 0.02 if idle else 0)
            if ready:
                waiting += self._spoil_in(os.read(self._master, 4096))
            came = self._library.board_run(
                self._handle, waiting, len(waiting), room.ctypes.data, len(room),
                _IDLE_CYCLES if idle else _CYCLES, ctypes.byref(taken),
            )
            quiet = 0 if came or waiting else quiet + 1
            waiting = waiting[taken.value :]
            if came:
                os.write(self._master, self._spoil_out(room[:came].tobytes()))


def load_board(path):
    """The library of a simulated board."""
    library = ctypes.CDLL(str(path))
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    library.board_open.restype = pointer
    for name in ("board_close", "board_reset", "board_cycles"):
        getattr(library, name).argtypes = [pointer]
    library.board_cycles.restype = number
    library.board_run.restype = number
    library.board_run.argtypes = [
        pointer, ctypes.c_char_p, number, pointer, number, number, pointer,
    ]
    return library


def main():
    with SimulatedBoard(*build_board()) as board:
        print(f"The board is at {board.port}; Ctrl-C ends it.", flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            print(f"{board.cycles} cycles")


if __name__ == "__main__":
    main()
