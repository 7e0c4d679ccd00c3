"""How work is cut into launches: whole on a card, to what channels hold where they are staged."""

from collections.abc import Iterator
from dataclasses import dataclass

from hw.opencl.fpga.channel_device import ChannelDevice
from hw.opencl.fpga.source import BLOCK

__all__ = ["Share", "pieces", "shares"]


@dataclass(frozen=True)
class Share:
    """What one probe launch takes: subwindows [first_area, last_area), `count` probes."""

    first_area: int
    last_area: int
    first: int
    count: int


def pieces(where: ChannelDevice, count: int, most: int) -> Iterator[tuple[int, int]]:
    """(first, count) of the launches for so many words: one, unless launches are staged."""
    step = min(count, most) if where.staged else count
    for first in range(0, count, max(1, step)):
        yield first, min(step, count - first)


def shares(
    where: ChannelDevice, probers: int, subwindows: int, probes: int, bands: int, scan_rows: int
) -> Iterator[Share]:
    """The probe launches for one batch against so many subwindows."""
    if subwindows == 0 or probes == 0:
        return
    if not where.staged:
        yield Share(0, subwindows, 0, probes)
        return
    # All words of a launch fit into every channel: a lane's bounds and rows, a core's results.
    bounds = min(where.depth - 1, where.key_depth // scan_rows)
    of_lane = max(1, bounds // (2 * bands))
    of_core = (where.depth - 1) // (bands + 1)
    most = min(of_core, max(of_lane, of_lane // BLOCK * BLOCK * probers))
    share = min(probes, -(-probes // (BLOCK * probers)) * BLOCK)
    together = max(1, min(subwindows, of_lane // share, of_core // probes))
    for first_area in range(0, subwindows, together):
        last_area = min(subwindows, first_area + together)
        for first, count in pieces(where, probes, most):
            yield Share(first_area, last_area, first, count)
