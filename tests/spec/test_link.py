"""hw.spec.link: frames survive garbage, and nothing damaged passes for a frame."""

import random
import zlib
from pathlib import Path

import numpy as np
import pytest

from hw.spec import tuple_dtype
from hw.spec.engine_bytes import items_bytes
from hw.spec.link import ESCAPE, FLAG, MOST_PAYLOAD, Deframer, Kind, LinkFrame, frame_bytes

EVERY_BYTE = bytes(range(256))


def sample(payload=EVERY_BYTE, **more):
    return LinkFrame(kind=Kind.DATA, session=0x7E7D, seq=0x7D, ack=0x7E, credit=3,
                     payload=payload, **more)


@pytest.mark.parametrize("payload", [b"", b"\x7e\x7d", EVERY_BYTE, bytes(MOST_PAYLOAD)])
def test_a_frame_comes_back_whatever_it_carries(payload):
    frame = sample(payload)
    assert Deframer().feed(frame_bytes(frame)) == [frame]


def test_the_bytes_of_a_frame():
    sent = frame_bytes(LinkFrame(kind=Kind.ACK, session=0x0102, seq=3, ack=4, credit=5))
    body = bytes.fromhex("0402010304050000")
    assert sent == b"\x7e" + body + zlib.crc32(body).to_bytes(4, "little") + b"\x7e"


def test_the_document_shows_the_bytes():
    page = (Path(__file__).resolve().parents[2] / "docs" / "protocol.md").read_text()
    tuples = np.array([(-1, 0), (5, 1), (9, 2)], tuple_dtype(32))
    shown = [
        frame_bytes(LinkFrame(kind=Kind.HELLO, session=0x1234)),
        frame_bytes(LinkFrame(kind=Kind.ACK, session=0x1234, ack=1, credit=8)),
        frame_bytes(LinkFrame(kind=Kind.DATA, session=0x1234, credit=8, payload=b"\x10\x7e")),
        items_bytes(tuples, 2),
        items_bytes(np.array([5, 6, 7], np.int32), 2),
    ]
    assert [data.hex(" ") for data in shown if data.hex(" ") not in page] == []


def test_bytes_may_come_one_by_one_and_share_flags():
    deframer = Deframer()
    stream = frame_bytes(sample()) + frame_bytes(sample(b"x"))[1:]
    found = [frame for byte in stream for frame in deframer.feed(bytes([byte]))]
    assert found == [sample(), sample(b"x")]


def test_a_frame_after_garbage_is_found():
    rng = random.Random(5)
    deframer = Deframer()
    for _ in range(200):
        garbage = rng.randbytes(rng.randrange(2000))
        found = deframer.feed(garbage + bytes([FLAG]) + frame_bytes(sample()))
        assert found[-1] == sample()
        assert all(frame is None for frame in found[:-1])


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_passes(bit):
    sent = frame_bytes(sample(b"payload \x7e"))
    for place in range(len(sent)):
        broken = bytearray(sent)
        broken[place] ^= 1 << bit
        assert sample(b"payload \x7e") not in Deframer().feed(bytes(broken)) or place in (
            0, len(sent) - 1,
        )


def test_a_truncated_frame_is_damaged():
    sent = frame_bytes(sample())
    for length in range(2, len(sent) - 1):
        assert Deframer().feed(sent[:length] + bytes([FLAG])) == [None]


def test_an_escape_before_a_flag_is_damage():
    deframer = Deframer()
    assert deframer.feed(bytes([FLAG, 1, 2, ESCAPE, FLAG])) == [None]
    assert deframer.damaged == 1


def test_long_payloads_are_refused():
    with pytest.raises(ValueError) as refused:
        frame_bytes(sample(bytes(MOST_PAYLOAD + 1)))
    assert str(refused.value) == "a frame has 512 bytes at most, not 513"
