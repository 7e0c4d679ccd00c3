# amaranth: UnusedElaboratable=no
"""A board whose windows are in SDRAM: its pins, and what it refuses."""

from dataclasses import replace

import pytest
from amaranth.build import ResourceError
from amaranth.hdl import Fragment

from hw.boards.chip import Chip
from hw.boards.ulx3s import ULX3S_SDRAM


def test_the_chips_pins_are_connected():
    platform = ULX3S_SDRAM.platform()
    Fragment.get(Chip(ULX3S_SDRAM, ""), platform)
    with pytest.raises(ResourceError, match="sdram#0 has already been requested"):
        platform.request("sdram", 0, dir="-")


def test_sdram_serves_one_core():
    with pytest.raises(ValueError, match=r"^SDRAM serves one core, not 2$"):
        replace(ULX3S_SDRAM, params=replace(ULX3S_SDRAM.params, cores=2))
