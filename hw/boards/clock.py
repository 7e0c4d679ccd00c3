"""The clock of a board: its oscillator through the chip's phase-locked loop."""

from dataclasses import dataclass

from amaranth.hdl import *
from amaranth.lib import wiring
from amaranth.lib.cdc import FFSynchronizer
from amaranth.lib.wiring import In, Out

__all__ = ["ClockSource", "Pll"]

#: What Lattice allows (ECP5 family data sheet, sysCLOCK PLL timing).
_COMPARED_HERTZ = (10e6, 400e6)
_OSCILLATOR_HERTZ = (400e6, 800e6)


@dataclass(frozen=True, kw_only=True)
class Pll:
    """From `source_hertz` to `source_hertz` / `divide` * `multiply` * `feedback` / `output`.

    feedback  divides the loop's own oscillator, which must run at 400 to 800 MHz, for what is
              compared with the source
    output    divides it for the clock that is made
    """

    source_hertz: int
    divide: int
    multiply: int
    feedback: int
    output: int

    def __post_init__(self) -> None:
        compared = self.source_hertz / self.divide
        for name, value, (low, high) in (
            ("the compared clock", compared, _COMPARED_HERTZ),
            ("the loop's oscillator", self.oscillator_hertz, _OSCILLATOR_HERTZ),
        ):
            if not low <= value <= high:
                raise ValueError(
                    f"{name} must run at {low / 1e6:g} to {high / 1e6:g} MHz, "
                    f"not {value / 1e6:g}"
                )

    @property
    def oscillator_hertz(self) -> float:
        return self.source_hertz / self.divide * self.multiply * self.feedback

    @property
    def hertz(self) -> float:
        return self.oscillator_hertz / self.output


class ClockSource(wiring.Component):
    """Drives the clock of the domain `sync`, which the module around it defines.

    source  the oscillator
    button  is pressed
    unsure  in step with the clock: the button is pressed, or the loop has not locked, so that there
            is no clock to count on. Everything is to begin anew when it ends
    """

    def __init__(self, pll: Pll):
        self.pll = pll
        super().__init__({"source": In(1), "button": In(1), "unsure": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        # Synthesis gives a net one of its many names: this one must stay for the constraint.
        made = Signal(attrs={"keep": 1})
        locked = Signal()
        m.submodules.loop = self._loop(made, locked)
        platform.add_clock_constraint(made, self.pll.hertz)
        m.d.comb += ClockSignal("sync").eq(made)
        m.submodules.unsure = FFSynchronizer(~locked | self.button, self.unsure, init=1)
        return m

    def _loop(self, made, locked):
        pll = self.pll
        compared = Signal()
        return Instance(
            "EHXPLLL",
            a_ICP_CURRENT="12", a_LPF_RESISTOR="8",
            p_PLLRST_ENA="DISABLED", p_INTFB_WAKE="DISABLED", p_STDBY_ENABLE="DISABLED",
            p_DPHASE_SOURCE="DISABLED", p_FEEDBK_PATH="CLKOP",
            p_OUTDIVIDER_MUXA="DIVA", p_CLKOP_ENABLE="ENABLED",
            p_CLKI_DIV=pll.divide, p_CLKFB_DIV=pll.multiply, p_CLKOP_DIV=pll.feedback,
            # Half a period: edges of input and output fall together.
            p_CLKOP_CPHASE=pll.feedback // 2, p_CLKOP_FPHASE=0,
            p_OUTDIVIDER_MUXB="DIVB", p_CLKOS_ENABLE="ENABLED", p_CLKOS_DIV=pll.output,
            p_CLKOS_CPHASE=pll.output // 2, p_CLKOS_FPHASE=0,
            i_CLKI=self.source, i_CLKFB=compared, o_CLKOP=compared, o_CLKOS=made, o_LOCK=locked,
            i_RST=0, i_STDBY=0, i_PHASESEL0=0, i_PHASESEL1=0, i_PHASEDIR=0, i_PHASESTEP=0,
            i_PHASELOADREG=0, i_PLLWAKESYNC=0, i_ENCLKOP=0, i_ENCLKOS=0,
        )  # fmt: skip
