"""An engine of several join cores, simulated cycle by cycle in a Verilator library."""

import ctypes
import json
from pathlib import Path

import numpy as np

from host.errors import BackendUnavailable, JoinError
from hw.rtl.digest import gateware_digest, library_directory

__all__ = ["SimulatedEngine"]

#: Cycles in which nothing moves before an engine is taken for dead.
PATIENCE_CYCLES = 8_000_000
_CHUNK = 1 << 16


class SimulatedEngine:
    """The bytes of a simulated engine (host.backends.byte_engine.ByteEngine)."""

    name = "rtl"

    def __init__(self, cores: int, key_bits: int, directory: Path | None = None) -> None:
        self.manifest, self._library = _load(cores, key_bits, directory)
        self._handle = ctypes.c_void_p(self._library.port_open())
        self._command = b""
        self._answer = bytearray()

    def write(self, data: bytes) -> None:
        self._command = data

    def read(self, count: int) -> bytes:
        while len(self._answer) < count:
            self._exchange()
        taken = bytes(self._answer[:count])
        del self._answer[:count]
        return taken

    def _exchange(self) -> None:
        room = np.empty(_CHUNK, np.uint8)
        taken, done = ctypes.c_uint64(), ctypes.c_int()
        came = self._library.port_exchange(
            self._handle, self._command, len(self._command), room.ctypes.data, len(room),
            PATIENCE_CYCLES, ctypes.byref(taken), ctypes.byref(done),
        )
        if came < 0:
            raise JoinError(f"the simulated engine did nothing for {PATIENCE_CYCLES} cycles")
        self._command = self._command[taken.value :]
        self._answer += room[:came].tobytes()

    @property
    def cycles(self) -> int:
        """Cycles since it was opened."""
        return int(self._library.port_cycles(self._handle))

    def close(self) -> None:
        self._library.port_close(self._handle)


def _load(cores: int, key_bits: int, directory: Path | None) -> tuple[dict, ctypes.CDLL]:
    """The manifest and the library of this very gateware."""
    directory = directory or library_directory()
    path = directory / f"engine{cores}-{key_bits}-{gateware_digest()}.json"
    try:
        manifest = json.loads(path.read_text())
        library = ctypes.CDLL(str(directory / manifest["library"]))
    except OSError as error:
        raise BackendUnavailable(
            f"backend rtl has no library of this gateware with {cores} cores for {key_bits}-bit "
            f"keys: build it with python -m sim.build_engine --cores {cores} "
            f"--key-bits {key_bits}"
        ) from error
    pointer, number = ctypes.c_void_p, ctypes.c_uint64
    library.port_open.restype = pointer
    library.port_close.argtypes = [pointer]
    library.port_cycles.argtypes = [pointer]
    library.port_cycles.restype = number
    library.port_exchange.restype = ctypes.c_int64
    library.port_exchange.argtypes = [
        pointer, ctypes.c_char_p, number, pointer, number, number, pointer, pointer,
    ]
    return manifest, library
