"""What the link leaves of a serial line to payload, in both directions at once."""

import ctypes
import random
from typing import Any

import numpy as np

from host.link import LinkEnd
from hw.spec.link import MOST_PAYLOAD
from sim.cosim import DIVISOR, load_board
from sim.echo_board import build_echo

__all__ = ["link_load"]

#: Cycles of a byte on the line, with its start bit and its stop bit.
_BYTE_CYCLES = 10 * DIVISOR
#: Cycles between two looks at the line, and bytes left to send when more are asked for: a host
#: that is fast enough never lets the line wait.
_STEP_CYCLES, _REST = 4 * _BYTE_CYCLES, 64


def link_load(frames: int) -> dict[str, Any]:
    """Payload bytes in the time of a byte on the line, there and back, of so many full frames.

    The board sends back what it receives, so both directions carry the same at the same time.
    """
    library = load_board(build_echo(MOST_PAYLOAD))
    handle = ctypes.c_void_p(library.board_open())
    payload = random.Random(1).randbytes(frames * MOST_PAYLOAD)
    end = LinkEnd(session=1)
    end.send(payload)
    room = np.empty(1 << 12, np.uint8)
    taken = ctypes.c_uint64()
    waiting = end.timeout()
    # The first frames and the last: what is between is the load.
    first, last = 8 * MOST_PAYLOAD, len(payload) - 8 * MOST_PAYLOAD
    came_at: dict[int, int] = {}
    acknowledged_at: dict[int, int] = {}
    while len(end.received) < len(payload):
        came = library.board_run(
            handle, waiting, len(waiting), room.ctypes.data, len(room), _STEP_CYCLES,
            ctypes.byref(taken),
        )
        waiting = waiting[taken.value :]
        end.feed(room[:came].tobytes())
        if len(waiting) < _REST:
            waiting += end.transmit()
        now = int(library.board_cycles(handle))
        came_at.setdefault(len(end.received), now)
        acknowledged_at.setdefault(len(payload) - end.unacknowledged, now)
    assert bytes(end.received) == payload and end.retransmitted == 0
    library.board_close(handle)
    return {
        "frames": frames, "payload_of_a_frame": MOST_PAYLOAD,
        "to_board": _share(acknowledged_at, first, last),
        "to_host": _share(came_at, first, last),
    }


def _share(times: dict[int, int], first: int, last: int) -> float:
    """Bytes between the first and the last mark, in bytes that the line could have carried."""
    begin = min(count for count in times if count >= first)
    end = max(count for count in times if count <= last)
    return round((end - begin) * _BYTE_CYCLES / (times[end] - times[begin]), 4)
