# amaranth: UnusedElaboratable=no
"""hw.boards.frame_transmitter in Amaranth's own simulator: what it sends, and when."""

import pytest
from amaranth.sim import Simulator

from hw.boards.frame_transmitter import FrameTransmitter
from hw.spec.link import MOST_PAYLOAD, WINDOW, Deframer, Kind

WELCOME = b"watersmeet \x7e\x7d"
#: No test here needs so many.
MOST_CYCLES = 16_000


class Host:
    """Steps a transmitter; `frames` are what it has sent so far."""

    def __init__(self, ctx, dut):
        self.ctx, self.dut = ctx, dut
        self.deframer, self.frames = Deframer(), []
        self.cycle, self.stall = 0, False

    async def step(self, cycles=1, **values):
        for _ in range(cycles):
            for name, value in values.items():
                self.ctx.set(getattr(self.dut, name), value)
            self.cycle += 1
            assert self.cycle < MOST_CYCLES, "it never rests"
            ready = int(not self.stall or self.cycle % 3 == 0)
            self.ctx.set(self.dut.cable.ready, ready)
            if ready and self.ctx.get(self.dut.cable.valid):
                byte = self.ctx.get(self.dut.cable.payload)
                self.frames += self.deframer.feed(bytes([byte]))
            answered = self.ctx.get(self.dut.answered)
            await self.ctx.tick()
            for name in values:
                self.ctx.set(getattr(self.dut, name), 0)
            if answered:
                self.ctx.set(self.dut.answer, 0)

    async def hear(self, ack, allowed=WINDOW, again=0):
        """A frame of the host's has come."""
        await self.step(heard=1, ack=ack, allowed=allowed, again=again)
        await self.step()  # two frames are further apart than that

    async def give(self, data, flush=True):
        """Payload; its last byte closes the frame. False where there was no room for all."""
        for place, byte in enumerate(data):
            last = flush and place == len(data) - 1
            for _ in range(4):
                if self.ctx.get(self.dut.payload.ready):
                    break
                await self.step()
            else:
                return False
            self.ctx.set(self.dut.payload.payload, {"byte": byte, "flush": int(last)})
            self.ctx.set(self.dut.payload.valid, 1)
            await self.step()
            self.ctx.set(self.dut.payload.valid, 0)
        return True

    async def ask(self, kind):
        self.ctx.set(self.dut.kind, kind)
        self.ctx.set(self.dut.answer, 1)
        await self.settle()

    async def settle(self):
        """Until nothing has been sent for a while."""
        count = -1
        while len(self.frames) != count:
            count = len(self.frames)
            await self.step(3 * MOST_PAYLOAD if self.long else 160)

    long = False


def drive(script, stall=False):
    dut = FrameTransmitter(WELCOME)
    simulator = Simulator(dut)
    simulator.add_clock(1e-8)

    async def testbench(ctx):
        host = Host(ctx, dut)
        host.stall = stall
        for name, value in (("session", 0x4321), ("expected", 77), ("credit", 5)):
            ctx.set(getattr(dut, name), value)
        await script(host)
        assert None not in host.frames

    simulator.add_testbench(testbench)
    simulator.run()


def data_of(host):
    assert {f.kind for f in host.frames} <= {Kind.DATA}
    return [(f.seq, f.payload) for f in host.frames]


@pytest.mark.parametrize("stall", [False, True])
def test_frames_carry_what_was_given_and_the_head_that_was_set(stall):
    async def script(host):
        await host.hear(0)
        await host.give(b"\x7e\x7dabc")
        await host.give(b"d")
        await host.settle()
        assert data_of(host) == [(0, b"\x7e\x7dabc"), (1, b"d")]
        assert {(f.session, f.ack, f.credit) for f in host.frames} == {(0x4321, 77, 5)}

    drive(script, stall)


def test_a_full_frame_closes_by_itself():
    async def script(host):
        host.long = True
        await host.hear(0)
        long = bytes(n % 251 for n in range(MOST_PAYLOAD + 3))
        await host.give(long)
        await host.settle()
        assert data_of(host) == [(0, long[:MOST_PAYLOAD]), (1, long[MOST_PAYLOAD:])]

    drive(script)


def test_nothing_goes_without_leave():
    async def script(host):
        for n in range(4):
            await host.give(bytes([n]))
        await host.settle()
        assert host.frames == []
        await host.hear(0, allowed=2)
        await host.settle()
        assert data_of(host) == [(0, b"\0"), (1, b"\1")]
        await host.hear(1, allowed=2)
        await host.settle()
        assert data_of(host)[2:] == [(2, b"\2")]
        await host.hear(3, allowed=1)
        await host.settle()
        assert data_of(host)[3:] == [(3, b"\3")]

    drive(script)


def test_there_is_room_for_a_window_and_acknowledgement_makes_more():
    async def script(host):
        await host.hear(0)
        given = [await host.give(bytes([n])) for n in range(WINDOW + 1)]
        assert given == [True] * WINDOW + [False]
        await host.settle()
        await host.hear(3)
        assert [await host.give(bytes([8 + n])) for n in range(4)] == [True] * 3 + [False]
        await host.settle()
        assert data_of(host) == [(n, bytes([n])) for n in range(WINDOW + 3)]

    drive(script)


def test_again_repeats_from_the_oldest_that_is_not_acknowledged():
    async def script(host):
        await host.hear(0)
        for n in range(5):
            await host.give(bytes([n]) * 3)
        await host.settle()
        await host.hear(2, again=1)
        await host.settle()
        assert data_of(host)[5:] == [(n, bytes([n]) * 3) for n in (2, 3, 4)]
        # What a repetition has not reached again may be acknowledged all the same.
        await host.hear(2, allowed=0, again=1)
        await host.hear(4)
        await host.settle()
        assert data_of(host)[8:] == [(4, bytes([4]) * 3)]

    drive(script)


@pytest.mark.parametrize("clear", [False, True])
def test_again_and_clear_are_heard_in_any_cycle(clear):
    """Also while the next frame is chosen."""

    async def script(host, later):
        await host.hear(0)
        for n in range(3):
            await host.give(bytes([n]))
        await host.step(later)
        before = len(host.frames)
        if clear:
            await host.step(clear=1)
            await host.hear(0)
            await host.give(b"new")
        else:
            await host.hear(0, again=1)
        await host.settle()
        came = data_of(host)
        new = [(0, b"new")] if clear else [(n, bytes([n])) for n in range(3)]
        # A frame that has begun comes to its end; of a session that is over, with any payload.
        begun = len(came) - len(new)
        assert [seq for seq, _ in came[:begun]] == [*range(begun)] and begun - before in (0, 1)
        assert came[begun:] == new

    for later in range(90):
        drive(lambda host, later=later: script(host, later))


def test_acknowledgements_of_what_was_never_sent_are_ignored():
    async def script(host):
        await host.hear(0, allowed=1)
        for n in range(3):
            await host.give(bytes([n]))
        await host.settle()
        for ack in (2, 3, 200, 255):
            await host.hear(ack, allowed=WINDOW)
            await host.settle()
        assert data_of(host) == [(0, b"\0")]
        await host.hear(77, again=1)
        await host.settle()
        assert data_of(host)[1:] == [(0, b"\0")]

    drive(script)


def test_numbers_go_round():
    async def script(host):
        await host.hear(0)
        for n in range(260):
            await host.give(bytes([n & 255]))
            while len(host.frames) <= n:
                await host.step()
            await host.hear((n + 1) & 255)
        assert data_of(host) == [(n & 255, bytes([n & 255])) for n in range(260)]

    drive(script)


def test_other_frames_come_between():
    async def script(host):
        await host.ask(Kind.WELCOME)
        await host.ask(Kind.AGAIN)
        await host.ask(Kind.ACK)
        assert [(f.kind, f.payload, f.seq) for f in host.frames] == [
            (Kind.WELCOME, WELCOME, 0), (Kind.AGAIN, b"", 0), (Kind.ACK, b"", 0),
        ]

    drive(script)


def test_data_acknowledges_as_well_but_again_goes_first():
    async def script(host):
        await host.give(b"a")
        await host.give(b"b")
        await host.hear(0, allowed=1)
        await host.ask(Kind.ACK)
        assert [f.kind for f in host.frames] == [Kind.DATA]
        await host.hear(1, allowed=1)
        await host.ask(Kind.AGAIN)
        assert [f.kind for f in host.frames[1:]] == [Kind.AGAIN, Kind.DATA]

    drive(script)


def test_again_goes_before_data_that_wait_already():
    async def script(host):
        await host.give(b"a")
        await host.give(b"b")
        await host.hear(0)
        await host.step(16)  # the first frame has begun
        assert host.frames == []
        await host.ask(Kind.AGAIN)
        assert [f.kind for f in host.frames] == [Kind.DATA, Kind.AGAIN, Kind.DATA]

    drive(script)


def test_cleared_it_begins_anew():
    async def script(host):
        await host.hear(0)
        await host.give(b"old")
        await host.give(b"open", flush=False)
        await host.settle()
        await host.step(clear=1)
        await host.give(b"new")
        await host.settle()
        assert data_of(host) == [(0, b"old")]
        await host.hear(0)
        await host.settle()
        assert data_of(host) == [(0, b"old"), (0, b"new")]

    drive(script)


def test_a_welcome_that_is_too_long():
    with pytest.raises(ValueError, match=r"^welcome has 512 bytes at most, not 513$"):
        FrameTransmitter(bytes(513))
