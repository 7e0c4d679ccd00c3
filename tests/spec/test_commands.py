"""Commands and replies as bytes."""

import numpy as np
import pytest

from hw.spec.commands import (
    ALL_SUBWINDOWS,
    HEADER,
    LARGEST_PAYLOAD,
    Command,
    FrameError,
    Opcode,
    Reply,
    Status,
    pack_command,
    pack_reply,
    unpack_command,
    unpack_reply,
)
from hw.spec.predicates import Band, Predicate, compare
from hw.spec.tuples import NOT, RECORD, Side, interval_dtype, key_dtype
from tests.helpers import exactly, make_tuples


def probe(side=Side.LEFT, key_bits=32, predicate=None, **more):
    keys = np.arange(5, dtype=key_dtype(key_bits))
    return Command(
        opcode=Opcode.PROBE, side=side, subwindow=ALL_SUBWINDOWS, key_bits=key_bits,
        keys=keys, predicate=predicate or Predicate((Band(-1, 2),)), **more,
    )  # fmt: skip


@pytest.mark.parametrize("side", Side)
def test_create_and_expire_name_a_subwindow(side):
    for opcode, count in ((Opcode.CREATE, 4096), (Opcode.EXPIRE, 0)):
        command = Command(opcode=opcode, side=side, subwindow=7, count=count)
        data = pack_command(command)
        assert len(data) == HEADER.itemsize
        assert unpack_command(data) == command


@pytest.mark.parametrize("key_bits", [32, 64])
@pytest.mark.parametrize("count", [0, 1, 9])
def test_insert_carries_its_tuples(key_bits, count):
    tuples = make_tuples(np.arange(count)[::-1] // 2, key_bits)
    command = Command(
        opcode=Opcode.INSERT, side=Side.RIGHT, subwindow=3, key_bits=key_bits, tuples=tuples
    )
    back = unpack_command(pack_command(command))
    assert (back.opcode, back.side, back.subwindow, back.key_bits) == (2, 1, 3, key_bits)
    assert back.count == count
    assert back.tuples.dtype == tuples.dtype
    assert back.tuples.tolist() == tuples.tolist()


@pytest.mark.parametrize("key_bits", [32, 64])
@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    "predicate",
    [
        compare("="), compare("<>", 3), compare("<"), compare(">=", -7), Predicate(()),
        Predicate((Band(-9, -5), Band(0, 3), Band(8, None))), Predicate((Band(1 << 31, None),)),
    ],
)  # fmt: skip
def test_probe_carries_keys_and_the_predicate(key_bits, side, predicate):
    back = unpack_command(pack_command(probe(side, key_bits, predicate)))
    assert (back.opcode, back.side, back.subwindow) == (Opcode.PROBE, side, ALL_SUBWINDOWS)
    assert back.keys.dtype == key_dtype(key_bits)
    assert back.keys.tolist() == [0, 1, 2, 3, 4]
    assert back.predicate == predicate
    assert back.intervals is None


def test_probe_carries_explicit_intervals():
    intervals = np.array([[(1, 2), (5, 4)], [(7, 7), (8, 9)], [(0, 0), (3, 3)]], interval_dtype(64))
    command = Command(
        opcode=Opcode.PROBE, side=Side.LEFT, subwindow=1, key_bits=64, intervals=intervals
    )
    back = unpack_command(pack_command(command))
    assert back.intervals.tolist() == intervals.tolist()
    assert (back.keys, back.predicate) == (None, None)


@pytest.mark.parametrize("shape", [(0, 0, 0), (1, 4, 1), (3, 2, 2)])
def test_a_reply_carries_records_and_status(shape):
    records = np.zeros(shape, RECORD)
    records["end"] = np.arange(records.size).reshape(shape) | NOT
    status = Status.NEWEST_FULL | Status.OLDEST_EMPTY
    reply = Reply(opcode=Opcode.PROBE, side=Side.RIGHT, subwindow=5, status=status, records=records)
    back = unpack_reply(pack_reply(reply))
    assert back == reply
    assert back.records.shape == shape
    assert back.records.tobytes() == records.tobytes()


def test_a_frame_begins_with_its_magic():
    assert pack_command(probe())[:3] == b"WM\x01"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:5], "a frame has at least 20 bytes, not 5"),
        (lambda d: b"XX" + d[2:], "not a frame of version 1: it begins with 585801"),
        (lambda d: d[:2] + b"\x02" + d[3:], "not a frame of version 1: it begins with 574d02"),
        (lambda d: d[:-1], "the header announces 44 bytes, 43 came"),
        (lambda d: d + b"\0", "the header announces 44 bytes, 45 came"),
        (lambda d: d[:3] + b"\x09" + d[4:], "opcode 9 of side 0 is unknown"),
        (lambda d: d[:4] + b"\x02" + d[5:], "opcode 3 of side 2 is unknown"),
        (lambda d: d[:12] + b"\x06" + d[13:], "the payload has 20 bytes where 24 were announced"),
    ],
)
def test_bytes_that_are_no_frame_are_refused(change, message):
    with pytest.raises(FrameError, match=exactly(message)):
        unpack_command(change(pack_command(probe())))


def test_a_command_without_payload_has_none():
    data = bytearray(pack_command(Command(opcode=Opcode.EXPIRE, side=Side.LEFT, subwindow=1)))
    header = np.frombuffer(data, HEADER)
    header["payload"] = 3
    with pytest.raises(FrameError, match=exactly("EXPIRE has no payload, but 3 bytes follow")):
        unpack_command(bytes(data) + b"abc")


def test_a_frame_too_large_to_hold_is_not_made():
    many = np.broadcast_to(np.zeros(1, key_dtype(64)), LARGEST_PAYLOAD // 8 + 1)
    message = f"a frame holds {LARGEST_PAYLOAD} bytes at most, not {8 * len(many) + 24}"
    command = Command(
        opcode=Opcode.PROBE, side=Side.LEFT, subwindow=0, key_bits=64, keys=many,
        predicate=compare("="),
    )  # fmt: skip
    with pytest.raises(FrameError, match=exactly(message)):
        pack_command(command)


@pytest.mark.parametrize("size", [0, 19, 20, 31])
def test_a_cut_reply_is_refused(size):
    data = pack_reply(Reply(opcode=Opcode.INSERT, side=Side.LEFT, subwindow=0))
    with pytest.raises(FrameError):
        unpack_reply(data[:size])
