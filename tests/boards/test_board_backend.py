"""The board backend on a simulated board behind a pty: exact, or a clear error, never a hang."""

import threading

import numpy as np
import pyarrow as pa
import pytest

import host
from host.backends.board_backend import BoardBackend, SerialPort
from host.errors import BackendUnavailable, JoinError, LinkError, WindowFull
from host.link import Link
from hw.spec import JoinParams, Side, tuple_dtype
from sim.cosim import SimulatedBoard, build_board
from tests.boards.cables import Cable

pytestmark = pytest.mark.sim

SCHEMA = pa.schema([("x", pa.int32()), ("id", pa.int32())])


@pytest.fixture(scope="module")
def built():
    return build_board()


@pytest.fixture
def bitstreams(built, monkeypatch):
    """The simulated board's manifest is the one that the host knows."""
    monkeypatch.setattr("hw.bitstreams.FOLDER", built[0])
    return built


def rows(rng, count, first):
    keys = rng.integers(0, 100, count).astype(np.int32)
    return pa.record_batch([keys, np.arange(first, first + count, dtype=np.int32)], schema=SCHEMA)


def joined(seed=3, pushes=1, **options):
    """Pairs of ids of a seeded join."""
    rng = np.random.default_rng(seed)
    found = []
    with host.StreamJoin(
        on="l.x BETWEEN r.x - 2 AND r.x + 2", window="rows 20", left=SCHEMA, right=SCHEMA,
        select=["l.id", "r.id"], batch=16, subwindow=16, **options,
    ) as join:
        for number in range(pushes):
            batches = [rows(rng, 40, 40 * number) for _ in range(2)]
            found += join.push(*batches)
        found += join.finish()
    return sorted(pa.Table.from_batches(found, join.schema).to_pylist(), key=str)


def test_a_join_on_a_board_is_the_join(bitstreams):
    with SimulatedBoard(*bitstreams) as board:
        assert joined(backend="board", device=board.port) == joined(backend="numpy") != []


@pytest.mark.parametrize("seed", range(2))
def test_a_bad_cable_changes_nothing(bitstreams, seed):
    there, back = Cable(seed, 1e-3), Cable(seed + 50, 1e-3)
    with SimulatedBoard(*bitstreams, there, back) as board:
        assert joined(seed, backend="board", device=board.port) == joined(seed, backend="numpy")
    assert there.faults + back.faults > 3


def test_a_second_join_finds_an_empty_board(bitstreams):
    with SimulatedBoard(*bitstreams) as board:
        for seed in (1, 2):
            on_board = joined(seed, backend="board", device=board.port)
            assert on_board == joined(seed, backend="numpy")


def test_a_reset_in_the_middle_is_told(bitstreams):
    with SimulatedBoard(*bitstreams) as board:
        engine = BoardBackend(JoinParams(), board.port)
        engine.create(Side.LEFT, 1, 10)
        board.reset()
        with pytest.raises(LinkError, match="the board was reset in the middle of a join"):
            engine.insert(Side.LEFT, 1, np.zeros(1, tuple_dtype(32)))
        engine.close()


def test_an_unplugged_board_is_told(bitstreams):
    board = SimulatedBoard(*bitstreams)
    threading.Timer(0.5, board.unplug).start()
    with pytest.raises(JoinError, match=r"was unplugged in the middle of a join|did not answer"):
        joined(pushes=4000, backend="board", device=board.port)


def test_windows_that_do_not_fit_are_refused(bitstreams):
    one = np.zeros(1, tuple_dtype(32))
    with SimulatedBoard(*bitstreams) as board:
        engine = BoardBackend(JoinParams(), board.port)
        with pytest.raises(WindowFull) as refused:
            for number in range(8):
                engine.create(Side.LEFT, number, 1)
                engine.insert(Side.LEFT, number, one)
        engine.close()
    assert str(refused.value) == (
        "board holds 28672 tuples in 7 slots of 4096, and the windows need more: "
        "choose smaller ones"
    )


def test_wide_keys_are_refused(bitstreams):
    with SimulatedBoard(*bitstreams) as board, pytest.raises(BackendUnavailable) as refused:
        BoardBackend(JoinParams(key_bits=64), board.port)
    assert str(refused.value) == (
        "the board has 32-bit keys, and this join needs 64: cast its columns to a narrower type"
    )


def test_a_board_of_another_version_is_refused(built, tmp_path):
    with SimulatedBoard(*built) as board, pytest.raises(BackendUnavailable) as refused:
        BoardBackend(JoinParams(), board.port, tmp_path)
    assert str(refused.value) == (
        f"the board at {board.port} runs 'watersmeet {built[1]}', of which this version has no "
        "manifest: flash it with watersmeet flash"
    )


def test_without_a_board_there_is_a_sentence(monkeypatch):
    monkeypatch.setattr("host.backends.board_backend.list_ports.comports", list)
    with pytest.raises(BackendUnavailable) as refused:
        BoardBackend(JoinParams())
    assert str(refused.value) == (
        "no board is connected: plug one in, or name its port with --device"
    )


def test_a_port_that_is_not_there():
    with pytest.raises(BackendUnavailable, match=r"^the port /dev/no-such-port cannot be opened: "):
        SerialPort("/dev/no-such-port")


def test_a_silent_board_is_given_up(built):
    with SimulatedBoard(*built, lambda data: b"") as board:
        port = SerialPort(board.port)
        with pytest.raises(LinkError) as told:
            Link(port, 9, patience_s=0.5, retry_s=0.1)
        port.close()
    assert str(told.value) == (
        f"the board at {board.port} did not begin a session for 0.5 s: check the cable and that "
        "it is flashed"
    )
