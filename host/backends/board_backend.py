"""A board on a cable: the engine of a bitstream behind its serial port."""

import secrets
from collections.abc import Iterator
from pathlib import Path

import serial
from serial.tools import list_ports

from host.backends.byte_engine import EngineBackend
from host.errors import BackendUnavailable, LinkError
from host.link import Link
from hw.bitstreams import read_manifest
from hw.spec.link import BAUD
from hw.spec.params import JoinParams

__all__ = ["BoardBackend", "SerialPort", "find_boards"]

#: Serial chips on the boards that have a bitstream: (vendor, product) -> board.
KNOWN = {(0x0403, 0x6015): "ulx3s", (0x0403, 0x6010): "ecpix5"}


class SerialPort:
    """A serial port as the link's transport."""

    def __init__(self, name: str, baud: int = BAUD) -> None:
        self.name = name
        try:
            self._port = serial.Serial(name, baud, timeout=0, exclusive=True)
        except serial.SerialException as error:
            raise BackendUnavailable(
                f"the port {name} cannot be opened: {error.args[-1]}"
            ) from None

    def read(self, timeout_s: float) -> bytes:
        try:
            self._port.timeout = timeout_s
            first = self._port.read(1)
            self._port.timeout = 0
            return first + self._port.read(1 << 14)
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from None

    def write(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except (serial.SerialException, OSError) as error:
            raise self._gone(error) from None

    def _gone(self, error: Exception) -> LinkError:
        return LinkError(f"the board at {self.name} was unplugged in the middle of a join: {error}")

    def close(self) -> None:
        self._port.close()


def find_boards() -> Iterator[tuple[str, str]]:
    """(port, board) of every serial port whose chip is on a known board."""
    for port in list_ports.comports():
        board = KNOWN.get((port.vid, port.pid))
        if board is not None:
            yield port.device, board


class _BoardEngine:
    """A session with a board, as host.backends.byte_engine.ByteEngine."""

    name = "board"

    def __init__(self, port: str, manifests: dict[str, dict]) -> None:
        # 0 is no session; a new number tells this one from whatever was before.
        self._link = Link(SerialPort(port), 1 + secrets.randbelow(0xFFFF))
        said = self._link.welcome.decode("ascii", "replace")
        word, _, digest = said.partition(" ")
        if word != "watersmeet" or digest not in manifests:
            self._link.close()
            raise BackendUnavailable(
                f"the board at {port} runs {said!r}, of which this version has no manifest: "
                "flash it with watersmeet flash"
            )
        self.manifest = manifests[digest]
        self.write, self.read = self._link.write, self._link.read

    def close(self) -> None:
        self._link.close()


class BoardBackend(EngineBackend):
    """An engine on a board; `device` is its serial port, by default the only board there is."""

    def __init__(
        self, params: JoinParams, device: str | None = None, folder: Path | None = None
    ) -> None:
        engine = _BoardEngine(device or _only_board(), _manifests(folder))
        if engine.manifest["params"]["key_bits"] != params.key_bits:
            engine.close()
            raise BackendUnavailable(
                f"the board has {engine.manifest['params']['key_bits']}-bit keys, and this join "
                f"needs {params.key_bits}: cast its columns to a narrower type"
            )
        super().__init__(engine)


def _only_board() -> str:
    found = sorted(find_boards())
    if len(found) == 1:
        return found[0][0]
    if not found:
        raise BackendUnavailable(
            "no board is connected: plug one in, or name its port with --device"
        )
    ports = ", ".join(f"{port} ({board})" for port, board in found)
    raise BackendUnavailable(f"several boards are connected: choose one with --device: {ports}")


def _manifests(folder: Path | None) -> dict[str, dict]:
    """By digest, what is known of every board's bitstream."""
    return {
        digest: {"params": entry.params, **entry.facts}
        for digest, entry in read_manifest(folder).items() if entry.kind == "board"
    }
