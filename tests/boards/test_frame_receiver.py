# amaranth: UnusedElaboratable=no
"""hw.boards.frame_receiver in Amaranth's own simulator: frames in, their payload out."""

import random
import zlib

import pytest
from amaranth.sim import Simulator

from hw.boards.frame_receiver import RING, FrameReceiver
from hw.spec.link import ESCAPE, FLAG, FRAME, MOST_PAYLOAD, WINDOW, Kind, LinkFrame, frame_bytes

BYTES = bytes(range(256))


def received(data, *, accept=lambda head: True, take_after=0, clear_after=None, cycles=0):
    """What a receiver makes of cable bytes: (heads of ended frames, payload, credits)."""
    dut = FrameReceiver()
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)
    ended, payload, credits = [], bytearray(), []
    rng = random.Random(len(data))

    async def cable(ctx):
        at = cycle = 0
        quiet = 0
        while quiet < 12:
            cycle += 1
            ctx.set(dut.cable.valid, int(at < len(data)))
            if at < len(data):
                ctx.set(dut.cable.payload, data[at])
            takes = int(at >= take_after and rng.random() < 0.8)
            ctx.set(dut.payload.ready, takes)
            ctx.set(dut.clear, int(cycle == clear_after))
            here = ctx.get(dut.ended)
            head = {name: int(getattr(ctx.get(dut.head), name)) for name in FRAME.names}
            if here:
                ended.append(head if ctx.get(dut.sound) else None)
            ctx.set(dut.accept, int(here and ctx.get(dut.sound) and accept(head)))
            if takes and ctx.get(dut.payload.valid):
                payload.append(ctx.get(dut.payload.payload))
                assert len(payload) <= len(data), "more comes out than went in"
            ready = ctx.get(dut.cable.ready)
            moved = (at < len(data) and ready) or (takes and ctx.get(dut.payload.valid))
            at += bool(at < len(data) and ready)
            quiet = 0 if moved or at < len(data) else quiet + 1
            await ctx.tick()
            credits.append(ctx.get(dut.credit))

    simulator.add_testbench(cable)
    simulator.run()
    return ended, bytes(payload), credits


def data_frame(seq, payload, **more):
    return frame_bytes(LinkFrame(kind=Kind.DATA, session=0x1234, seq=seq, payload=payload, **more))


def raw(body):
    """Bytes between flags, with the checksum that they ought to have."""
    body += zlib.crc32(body).to_bytes(4, "little")
    body = body.replace(b"\x7d", b"\x7d\x5d").replace(b"\x7e", b"\x7d\x5e")
    return bytes([FLAG]) + body + bytes([FLAG])


def head(length, kind=Kind.DATA):
    return bytes([kind, 0x34, 0x12, 7, 3, 8, length & 255, length >> 8])


def test_frames_come_whole_with_all_of_their_heads():
    first = data_frame(9, BYTES, ack=200, credit=5)
    second = frame_bytes(LinkFrame(kind=Kind.ACK, session=0xFEDC, ack=1, credit=8))
    ended, payload, _ = received(first + second[1:] + data_frame(10, b"more"))
    assert ended == [
        {"kind": 3, "session": 0x1234, "seq": 9, "ack": 200, "credit": 5, "length": 256},
        {"kind": 4, "session": 0xFEDC, "seq": 0, "ack": 1, "credit": 8, "length": 0},
        {"kind": 3, "session": 0x1234, "seq": 10, "ack": 0, "credit": 0, "length": 4},
    ]
    assert payload == BYTES + b"more"


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: f[:5] + bytes([f[5] ^ 1]) + f[6:],
        lambda f: f[:-3] + bytes([f[-3] ^ 128]) + f[-2:],
        lambda f: f[:20] + f[21:],
        lambda f: f[:20] + f[19:20] + f[20:],
        lambda f: f[:-1] + bytes([ESCAPE]) + f[-1:],
        lambda f: f[:12] + bytes([FLAG]) + f[12:],
        lambda f: f[:6] + f[-1:],
    ],
)
def test_a_damaged_frame_is_none_and_the_next_one_is_sound(damage):
    ended, payload, _ = received(damage(data_frame(1, b"x" * 30)) + data_frame(2, b"good"))
    assert ended[-1]["seq"] == 2 and set(map(str, ended[:-1])) == {"None"}
    assert payload == b"good"


@pytest.mark.parametrize(
    "body",
    [head(5) + b"four", head(3) + b"four", b"\x03\x34", head(MOST_PAYLOAD + 1)
     + bytes(MOST_PAYLOAD + 1), head(0)[:7], head(260 & 255) + bytes(260),
     # As many bytes before a sound frame as its counter can count.
     bytes(1 << (len(head(0)) + MOST_PAYLOAD + 4).bit_length()) + head(4) + b"four"],
)
def test_a_length_that_is_not_the_payloads_is_damage(body):
    ended, payload, _ = received(raw(body) + data_frame(2, b"good"))
    assert ended[0] is None and ended[-1]["seq"] == 2
    assert payload == b"good"


def test_garbage_of_any_length_is_one_damaged_frame():
    noise = bytes(b for b in random.Random(1).randbytes(1300) if b not in (FLAG, ESCAPE))
    ended, payload, _ = received(noise + data_frame(2, b"good"))
    assert [frame and frame["seq"] for frame in ended] == [None, 2]
    assert payload == b"good"


def test_flags_between_frames_end_nothing():
    ended, payload, _ = received(bytes([FLAG]) * 5 + data_frame(1, b"a") + bytes([FLAG]) * 3)
    assert len(ended) == 1 and payload == b"a"


def test_what_is_not_accepted_leaves_no_trace():
    frames = b"".join(data_frame(n, bytes([n]) * 40) for n in range(6))
    _, payload, _ = received(frames, accept=lambda head: head["seq"] % 2 == 0)
    assert payload == b"".join(bytes([n]) * 40 for n in (0, 2, 4))


def test_a_full_ring_takes_nothing_more_and_its_credit_says_so():
    frames = [data_frame(n, bytes([n]) * MOST_PAYLOAD) for n in range(WINDOW + 1)]
    data = b"".join(frames) + data_frame(99, b"small")
    ended, payload, credits = received(data, take_after=len(data))
    # Two bytes wait behind the ring: so eight whole frames fit, but not a ninth.
    assert [frame and frame["seq"] for frame in ended] == [*range(WINDOW), None, None]
    assert len(payload) == RING and payload == b"".join(
        bytes([n]) * MOST_PAYLOAD for n in range(WINDOW)
    )
    assert min(credits) == 0 and credits[-1] == WINDOW
    assert sorted(set(credits)) == [*range(WINDOW + 1)]


def test_a_frame_that_room_came_too_late_for_is_not_sound():
    """A host without credit: when the frame ends it would fit, but its first bytes did not."""
    full = b"".join(data_frame(n, bytes([n]) * MOST_PAYLOAD) for n in range(WINDOW))
    late = data_frame(WINDOW, bytes(20) + bytes([FLAG]) * 100)
    ended, payload, _ = received(full + late, take_after=len(full) + 40)
    assert [frame and frame["seq"] for frame in ended] == [*range(WINDOW), None]
    assert payload == b"".join(bytes([n]) * MOST_PAYLOAD for n in range(WINDOW))


def test_the_ring_can_be_full_to_its_last_byte():
    """Two bytes wait behind the ring."""
    sizes = [MOST_PAYLOAD] * (WINDOW - 1) + [MOST_PAYLOAD - 200, 202]
    data = b"".join(data_frame(n, bytes([n]) * size) for n, size in enumerate(sizes))
    ended, payload, _ = received(data, take_after=len(data))
    assert [frame and frame["seq"] for frame in ended] == [*range(len(sizes))]
    assert payload == b"".join(bytes([n]) * size for n, size in enumerate(sizes))


@pytest.mark.parametrize("later", [3, 4, 10])
def test_cleared_it_has_nothing_left(later):
    """Neither in the ring nor, some cycles after a frame has ended, behind it."""
    first, second = data_frame(1, b"old" * 20), data_frame(2, b"new")
    _, payload, credits = received(
        first + second, take_after=len(first) + later + 1, clear_after=len(first) + later
    )
    assert payload == b"new"
    assert credits[-1] == WINDOW
