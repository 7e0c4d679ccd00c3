# amaranth: UnusedElaboratable=no
"""hw.rtl.sdram_core against the chip of sim.sdram_chip: a core whose windows are in SDRAM."""

from dataclasses import replace

import numpy as np
import pytest

from hw.rtl.sdram import ULX3S_CHIP
from hw.rtl.sdram_core import SdramCore
from hw.spec import JoinParams, Side
from hw.spec.commands import Status
from sim.sdram_board import CoreWithChip
from sim.sdram_chip import Fault
from tests.rtl.helpers import run
from tests.rtl.test_join_core import BAND, Driver, records_of, tuples_of

HERTZ = 87.5e6
#: The chip of the board with a short power-up, short rows and more refreshes: less to simulate.
TIMING = replace(ULX3S_CHIP, power_up=300.0, row_bits=11, column_bits=5, refresh_every=1500.0)
PARAMS = JoinParams(
    subwindow=64, partitions=4, lanes=2, probers=2, mergers=2, insert_buffer=16, bands=2
)


def test_windows_live_in_sdram():
    rng = np.random.default_rng(3)
    keys = rng.integers(-20, 20, 48).tolist()
    probes = list(range(-24, 24, 4))
    core = CoreWithChip(PARAMS, TIMING, HERTZ)

    async def script(ctx):
        driver = Driver(core, ctx)
        assert await driver.create(Side.LEFT, 5, 64) == (Status.OLDEST_EMPTY, 0)
        for first in range(0, 48, 16):
            part = tuples_of(keys[first : first + 16], first)
            assert (await driver.insert(Side.LEFT, 5, part))[1] == first + 16
        for dense in (0, 1):
            records, _, rows = await driver.probe(Side.LEFT, 5, probes, BAND, dense)
            assert records == records_of(keys, probes, Side.RIGHT, BAND)
            assert rows == 48
        assert await driver.expire(Side.LEFT, 5) == (Status.OLDEST_EMPTY, 0)
        assert Fault(ctx.get(core.fault)) == Fault.NONE

    run(core, script, cycles=20_000)


def test_more_than_the_chip_holds_is_refused():
    large = replace(PARAMS, subwindow=1 << 24, partitions=1 << 10)
    with pytest.raises(ValueError) as refused:
        SdramCore(large, ULX3S_CHIP, HERTZ)
    assert str(refused.value) == (
        "the chip holds 2097152 words of 2 tuples, and the main arrays need 33554432: "
        "choose fewer slots or smaller subwindows"
    )
