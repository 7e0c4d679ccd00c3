# amaranth: UnusedElaboratable=no
"""hw.rtl.sdram against the chip of sim.sdram_chip, in Amaranth's own simulator."""

from dataclasses import replace

import pytest
from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.boards.ulx3s import ULX3S_SDRAM
from hw.rtl.memory import ReadPort, WritePort
from hw.rtl.sdram import ULX3S_CHIP, SdramMemory
from sim.sdram_chip import Fault, SdramChip
from tests.rtl.helpers import no_pause, pauses, run, stream_get, stream_put

HERTZ = 87.5e6
#: The chip of the board with a short power-up, short rows and more refreshes: less to simulate.
TIMING = replace(ULX3S_CHIP, power_up=300.0, column_bits=6, refresh_every=1500.0)


class Wired(wiring.Component):
    """Controller and chip."""

    def __init__(self, bits=128, timing=TIMING, told=TIMING, hertz=HERTZ):
        self.memory = SdramMemory(bits, told, hertz)
        self.chip = SdramChip(timing, hertz)
        address = self.memory.address_bits
        super().__init__(
            {
                "read": In(ReadPort(bits, address)),
                "write": In(WritePort(bits, address)),
                "fault": Out(Fault),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory, m.submodules.chip = self.memory, self.chip
        wiring.connect(m, self.memory.pins, self.chip.pins)
        for name in ("read", "write"):
            wiring.connect(m, wiring.flipped(getattr(self, name)), getattr(self.memory, name))
        m.d.comb += self.fault.eq(self.chip.fault)
        return m


def value_of(address, bits):
    return (0x9E3779B97F4A7C15F39CC0605CEDC835 * (address + 1)) % (1 << bits)


def wrote_and_read(dut, bits, bursts, pause=no_pause, idle=0):
    """Words of bursts, each word written before the first burst that reads it."""
    got = []

    async def write(ctx):
        known = set()
        for address, count in bursts:
            for at in range(address, address + count):
                if at not in known:
                    known.add(at)
                    await stream_put(ctx, dut.write.writes,
                                     {"address": at, "word": value_of(at, bits)})
            await stream_put(ctx, dut.read.requests, {"address": address, "count": count})

    async def read(ctx):
        for _ in range(sum(count for _, count in bursts)):
            got.append(await stream_get(ctx, dut.read.words, pause()))
        for _ in range(idle):
            await ctx.tick()
        assert Fault(ctx.get(dut.fault)) == Fault.NONE

    run(dut, write, read, cycles=30_000)
    return got


@pytest.mark.parametrize("bits", [16, 32, 64, 128])
@pytest.mark.parametrize("pause", [no_pause, pauses(3)])
def test_bursts_bring_what_was_written_across_rows_and_banks(bits, pause):
    dut = Wired(bits)
    bursts = [(0, 20), (5, 1), (30, 12), (3, 9), (0, 42)]
    expected = [value_of(a, bits) for begin, n in bursts for a in range(begin, begin + n)]
    assert wrote_and_read(dut, bits, bursts, pause) == expected


def test_the_chips_times_are_kept_at_the_boards_own_clock():
    hertz = ULX3S_SDRAM.pll.hertz
    dut = Wired(128, hertz=hertz)
    bursts = [(0, 40), (90, 30), (20, 30), (100, 9)]
    expected = [value_of(a, 128) for begin, n in bursts for a in range(begin, begin + n)]
    assert wrote_and_read(dut, 128, bursts, idle=300) == expected
    # What the same chip wants at a faster clock is more cycles.
    assert ULX3S_CHIP.cycles("cycle", hertz) == 5 < ULX3S_CHIP.cycles("cycle", HERTZ) == 6


@pytest.mark.parametrize("bits", [16, 128])
def test_a_word_that_is_asked_for_at_once_is_the_one_that_was_written(bits):
    dut = Wired(bits)
    bursts = [(7, 1), (9, 1), (11, 2)]
    expected = [value_of(a, bits) for begin, n in bursts for a in range(begin, begin + n)]
    assert wrote_and_read(dut, bits, bursts) == expected


def test_rows_are_refreshed_at_rest_and_at_work():
    dut = Wired(32)
    bursts = [(n % 4 * 60, 50) for n in range(8)]
    expected = [value_of(a, 32) for begin, n in bursts for a in range(begin, begin + n)]
    assert wrote_and_read(dut, 32, bursts, idle=1_500) == expected


def test_reads_and_writes_at_once_go_through():
    """As a merge does it: words are read while others are written, neither waits for ever."""
    dut = Wired(128)
    got = []

    async def write(ctx):
        for at in range(24):
            await stream_put(ctx, dut.write.writes, {"address": at, "word": value_of(at, 128)})
        await stream_put(ctx, dut.read.requests, {"address": 0, "count": 24})
        for at in range(24, 48):
            await stream_put(ctx, dut.write.writes, {"address": at, "word": value_of(at, 128)})
        await stream_put(ctx, dut.read.requests, {"address": 24, "count": 24})

    async def read(ctx):
        for _ in range(48):
            got.append(await stream_get(ctx, dut.read.words, 2))
        assert Fault(ctx.get(dut.fault)) == Fault.NONE

    run(dut, write, read, cycles=30_000)
    assert got == [value_of(at, 128) for at in range(48)]


def test_words_of_a_row_follow_each_other():
    timing = replace(TIMING, column_bits=9, refresh_every=7812.5)
    dut = Wired(128, timing, timing)
    cycles = []

    async def write(ctx):
        await stream_put(ctx, dut.read.requests, {"address": 0, "count": 60})

    async def read(ctx):
        now = 0
        while len(cycles) < 60:
            ctx.set(dut.read.words.ready, 1)
            _, _, here = await ctx.tick().sample(dut.read.words.valid)
            now += 1
            if here:
                cycles.append(now)

    run(dut, write, read, cycles=30_000)
    # 60 words of 8 beats in a row, and at most one refresh between.
    assert cycles[-1] - cycles[0] <= 59 * 8 + 30


@pytest.mark.parametrize(
    "name, hasty, fault",
    [
        ("activate", 5.0, Fault.COLUMN_TOO_SOON),
        ("precharge", 5.0, Fault.TOO_EARLY),
        ("recover", 0.0, Fault.NOT_RECOVERED),
        ("open_least", 400.0, Fault.TOO_SOON_CLOSED),
        ("cycle", 600.0, Fault.TOO_SOON_OPENED),
        ("refresh", 5.0, Fault.TOO_EARLY),
        ("power_up", 100.0, Fault.TOO_EARLY),
        ("refresh_every", 15_000.0, Fault.NOT_REFRESHED),
        ("mode_cycles", 9, Fault.TOO_EARLY),
        ("cas", 2, Fault.NOT_SET_UP),
    ],
)
def test_the_chip_notices_a_hasty_controller(name, hasty, fault):
    # Where the chip's own figure is the one that is out of the way, it is the chip that is slow.
    slow_chip = name in ("open_least", "cycle", "mode_cycles")
    told = TIMING if slow_chip else replace(TIMING, **{name: hasty})
    timing = replace(TIMING, **{name: hasty}) if slow_chip else TIMING
    dut = Wired(16, timing, told)

    async def work(ctx):
        for address in (0, 1, 300, 2):
            await stream_put(ctx, dut.write.writes, {"address": address, "word": address})
        for _ in range(1_500 if name == "refresh_every" else 200):
            await ctx.tick()
        assert Fault(ctx.get(dut.fault)) == fault

    run(dut, work, cycles=30_000)


def test_a_word_that_is_no_burst_is_refused():
    with pytest.raises(ValueError, match="a word must have 16, 32, 64 or 128 bits, not 48"):
        SdramMemory(48, TIMING, HERTZ)
