"""hw.boards.link against host.link.LinkEnd over a cable that damages, loses and repeats."""

import random

import pytest
from amaranth.sim import Simulator

from host.errors import LinkError
from host.link import LinkEnd
from hw.boards.link import BoardLink
from hw.spec.link import FLAG, WINDOW, Deframer, Kind, LinkFrame, frame_bytes
from sim.echo_board import Echo


def none(data):
    return data


def faults(seed, rate):
    """A cable: flips, drops, doubles and inserts bytes, each at the rate; counts them."""
    rng = random.Random(seed)

    def spoil(data):
        out = bytearray()
        for byte in data:
            if rng.random() >= rate:
                out.append(byte)
                continue
            spoil.count += 1
            kind = rng.randrange(4)
            if kind == 0:
                out.append(byte ^ 1 << rng.randrange(8))
            elif kind == 1:
                out += bytes([byte, byte])
            elif kind == 2:
                out += bytes([byte, rng.choice((FLAG, rng.randrange(256)))])
        return bytes(out)

    spoil.count = 0
    return spoil


def talk(payload, *, there=none, back=none, cycles=60_000, reset_at=None):
    """Send payload to an echo; the host's end after all of it came back."""
    board = Echo(flush=37)
    end = LinkEnd(session=0x1234)
    end.send(payload)
    simulator = Simulator(board)
    simulator.add_clock(1e-8)

    async def cable(ctx):
        to_board = bytearray(there(end.timeout()))
        silent = 0
        came = bytearray()
        ctx.set(board.transmit.ready, 1)
        for cycle in range(cycles):
            ctx.set(board.reset, int(cycle == reset_at))
            if to_board:
                ctx.set(board.receive.payload, to_board[0])
            ctx.set(board.receive.valid, int(bool(to_board)))
            _, _, taken, valid, byte = await ctx.tick().sample(
                board.receive.ready, board.transmit.valid, board.transmit.payload
            )
            if to_board and taken:
                del to_board[0]
            if valid:
                came.append(byte)
            silent = 0 if valid or to_board else silent + 1
            if byte == FLAG and valid:
                end.feed(back(bytes(came)))
                came.clear()
            if not to_board:
                to_board += there(end.transmit())
            if silent > 100:
                to_board += there(end.timeout())
                silent = 0
            if len(end.received) == len(payload) and end.idle:
                return
        raise AssertionError(f"{len(end.received)} of {len(payload)} after {cycles} cycles")

    simulator.add_testbench(cable)
    simulator.run()
    return end


def bytes_of(seed, count):
    return random.Random(seed).randbytes(count // 37 * 37)


def test_bytes_come_back_in_order():
    payload = bytes_of(1, 1500)
    end = talk(payload)
    assert bytes(end.received) == payload
    assert end.welcome == b"an echo"
    assert (end.damaged, end.retransmitted) == (0, 0)


def test_bytes_that_need_escapes_come_back():
    payload = bytes([0x7E, 0x7D] * 37)
    assert bytes(talk(payload).received) == payload


@pytest.mark.parametrize("seed", range(3))
def test_no_fault_on_the_cable_is_seen_above_it(seed):
    payload = bytes_of(seed, 900)
    there, back = faults(seed, 0.002), faults(seed + 100, 0.002)
    end = talk(payload, there=there, back=back)
    assert bytes(end.received) == payload
    assert there.count + back.count > 1


def test_a_reset_is_told():
    with pytest.raises(LinkError) as told:
        talk(bytes_of(4, 2000), reset_at=2500)
    assert str(told.value) == (
        "the board was reset in the middle of a join: its windows are lost, run it again"
    )


def test_old_frames_that_come_again_are_no_reset():
    end = LinkEnd(session=7)
    old = frame_bytes(LinkFrame(kind=Kind.ACK, session=6, ack=3))
    welcome = frame_bytes(LinkFrame(kind=Kind.WELCOME, session=7, credit=8, payload=b"a board"))
    end.feed(2 * (old + old + welcome))
    asked = end.transmit()
    assert asked == frame_bytes(LinkFrame(kind=Kind.AGAIN, session=7, credit=WINDOW))
    end.feed(frame_bytes(LinkFrame(kind=Kind.ACK, session=7, credit=8)))
    for _ in range(WINDOW):
        end.feed(old)
    with pytest.raises(LinkError, match="the board was reset"):
        end.feed(old)


def test_a_hello_sent_twice_begins_one_session():
    hello = frame_bytes(LinkFrame(kind=Kind.HELLO, session=0x1234))
    sent = []

    def there(data):
        sent.append(data)
        return data + hello if len(sent) in (2, 4) else data

    payload = bytes_of(5, 700)
    assert bytes(talk(payload, there=there).received) == payload


def test_no_more_is_sent_than_there_is_room_for():
    end = LinkEnd(session=7)
    end.send(bytes(512 * 20))
    end.feed(frame_bytes(LinkFrame(kind=Kind.WELCOME, session=7, credit=3)))
    assert len(end.transmit()) // 512 == 3
    end.feed(frame_bytes(LinkFrame(kind=Kind.ACK, session=7, ack=2, credit=WINDOW)))
    assert len(end.transmit()) // 512 == WINDOW - 1


def test_an_acknowledgement_tells_the_room_behind_its_frame():
    board, deframer, came = BoardLink(b"a board"), Deframer(), []
    simulator = Simulator(board)
    simulator.add_clock(1e-8)
    hello = LinkFrame(kind=Kind.HELLO, session=7)
    frames = [LinkFrame(kind=Kind.DATA, session=7, seq=n, payload=bytes(512)) for n in range(2)]

    async def cable(ctx):
        ctx.set(board.transmit.ready, 1)
        for frame in (hello, *frames):
            to_board = bytearray(frame_bytes(frame))
            for _ in range(len(to_board) + 200):
                ctx.set(board.receive.valid, int(bool(to_board)))
                ctx.set(board.receive.payload, to_board[0] if to_board else 0)
                _, _, taken, valid, byte = await ctx.tick().sample(
                    board.receive.ready, board.transmit.valid, board.transmit.payload
                )
                if to_board and taken:
                    del to_board[0]
                if valid:
                    came.extend(deframer.feed(bytes([byte])))

    simulator.add_testbench(cable)
    simulator.run()
    assert [(frame.kind, frame.ack, frame.credit) for frame in came] == [
        (Kind.WELCOME, 0, WINDOW), (Kind.ACK, 1, WINDOW - 1), (Kind.ACK, 2, WINDOW - 2)
    ]
