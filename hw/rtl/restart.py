"""A restart that goes from part to part: thousands of registers are too many for one wire."""

from amaranth.hdl import *

__all__ = ["Restarted", "RESTART_STEPS"]

#: Levels of parts that have registers of their own, and how many of them at each.
_LEVELS, _REGISTERS = 2, 8
#: Cycles from ``restart`` until the last part of a component has heard of it.
RESTART_STEPS = _LEVELS * _REGISTERS


class Restarted(Elaboratable):
    """`component`, all registers of which are reset by `restart`, part after part.

    A part, and a part of a part, hears of it a cycle after the one before, from a register of its
    own, or one that it shares with every _REGISTERS-th. `restart` must stay on for longer than
    RESTART_STEPS cycles, so that all parts are idle at once; and what is idle stays so until
    something comes from outside.
    """

    def __init__(self, component, restart):
        self.component, self.restart = component, restart

    def elaborate(self, platform):
        return _restarted(Fragment.get(self.component, platform), self.restart, _LEVELS)


def _restarted(fragment, restart, levels):
    if not levels:
        return ResetInserter(restart)(fragment)
    parts, fragment.subfragments = fragment.subfragments, []
    fragment = ResetInserter(restart)(fragment)
    heard = restart
    for n, (part, name, src_loc) in enumerate(parts):
        before = heard if n % _REGISTERS else restart
        heard = Signal(name=f"restart_{name}")
        fragment.add_statements("sync", heard.eq(before))
        fragment.add_subfragment(_restarted(part, heard, levels - 1), name, src_loc=src_loc)
    return fragment
