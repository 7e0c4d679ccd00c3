"""Conversations with a simulated board over a cable that spoils what it carries.

    python -m tests.boards.conversation --faults 1000000

runs them until so many faults were injected. `make soak` keeps what it saw in
bench/results/faults.json, where the suite `board` finds it.
"""

import argparse
import ctypes
import itertools
import json
import random
import sys
import time
from pathlib import Path

import numpy as np

from host.errors import LinkError
from host.link import LinkEnd
from sim.cosim import load_board
from sim.echo_board import build_echo
from tests.boards.cables import Cable

__all__ = ["FLUSH", "Conversation", "converse", "main"]

#: Bytes after which the echo closes a frame.
FLUSH = 37
#: Cycles between two looks at the line, and looks without a byte after which time is up.
_STEP_CYCLES, _SILENT_STEPS = 2_000, 3
#: A conversation that needs more has hung.
_MOST_STEPS = 40_000


class Conversation:
    """A host's end and an echo board, which is the gateware's own link behind its serial line.

    `there` and `back` are the cables. Time is counted in the board's cycles, so that a seed
    repeats everything.
    """

    def __init__(self, library, there, back):
        self._library = load_board(library)
        self._handle = ctypes.c_void_p(self._library.board_open())
        self._cables = there, back
        self._room = np.empty(1 << 12, np.uint8)
        self.resets = 0

    def say(self, session, messages, reset_at=None):
        """Send messages in a new session; what came back. LinkError where a reset ends it."""
        end = LinkEnd(session)
        for message in messages:
            end.send(message)
        expected = sum(map(len, messages))
        waiting, silent = self._cables[0](end.timeout()), 0
        for step in range(_MOST_STEPS):
            if step == reset_at:
                self._library.board_reset(self._handle)
                self.resets += 1
            came, waiting = self._run(waiting)
            end.feed(self._cables[1](came))
            if len(end.received) >= expected and end.idle:
                return bytes(end.received)
            silent = 0 if came or waiting else silent + 1
            if not waiting:
                waiting = self._cables[0](end.transmit())
            if silent > _SILENT_STEPS:
                waiting += self._cables[0](end.timeout())
                silent = 0
        raise AssertionError(f"{len(end.received)} of {expected} bytes after {_MOST_STEPS} steps")

    def _run(self, waiting):
        taken = ctypes.c_uint64()
        came = self._library.board_run(
            self._handle, waiting, len(waiting), self._room.ctypes.data, len(self._room),
            _STEP_CYCLES, ctypes.byref(taken),
        )
        return self._room[:came].tobytes(), waiting[taken.value :]

    def close(self):
        self._library.board_close(self._handle)


def converse(faults, seed, report=lambda line: None):
    """Talk until so many faults were injected; (faults, bytes that came back, resets told).

    Every byte comes back once, in order, or the conversation ends with the error of a reset.
    """
    rng = random.Random(seed)
    library = build_echo(FLUSH)
    there, back = Cable(seed, 0.0), Cable(seed + 1, 0.0)
    board = Conversation(library, there, back)
    echoed = told = 0
    for number in itertools.count(1):
        rate = rng.choice((0.002, 0.02, 0.02, 0.03))
        there.rate = back.rate = rate
        # Where faults are many, frames are short: some must get through.
        longest = 600 if rate < 0.005 else 24
        messages = [rng.randbytes(rng.randrange(1, longest)) for _ in range(40)]
        total = sum(map(len, messages))
        messages.append(bytes(-total % FLUSH))
        reset_at = rng.randrange(5, 60) if rng.random() < 0.1 else None
        try:
            came = board.say(number % 0xFFFF + 1, messages, reset_at)
        except LinkError as error:
            assert reset_at is not None and "was reset in the middle" in str(error)
            told += 1
        else:
            assert came == b"".join(messages), f"seed {seed}, conversation {number}"
            echoed += len(came)
        done = there.faults + back.faults
        if done >= faults:
            board.close()
            return done, echoed, told
        if number % 100 == 0:
            report(f"{done:,} faults, {echoed:,} bytes came back, {told} resets told")
    raise AssertionError("never reached")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--faults", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--output", type=Path, help="a JSON file that keeps what was seen")
    said = parser.parse_args()
    print(f"link: seed {said.seed}", flush=True)
    done, echoed, told = converse(
        said.faults, said.seed, lambda line: print(line, file=sys.stderr, flush=True)
    )
    print(f"link: {done:,} faults, {echoed:,} bytes came back once and in order, "
          f"{told} resets were told, nothing was wrong or lost")
    if said.output:
        # An end comes only if nothing was wrong: converse asserts it of every conversation.
        seen = {
            "faults": done, "bytes": echoed, "resets_told": told, "wrong": 0, "seed": said.seed,
        }
        said.output.write_text(json.dumps(seen, indent=2) + "\n")


if __name__ == "__main__":
    main()
