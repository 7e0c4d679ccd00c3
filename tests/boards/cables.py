"""Cables that spoil what they carry, by a seed."""

import random

from hw.spec.link import FLAG

__all__ = ["Cable"]


class Cable:
    """Flips bits, drops, doubles and inserts bytes, each byte at `rate`; `faults` counts them.

    Now and then a whole read is dropped, doubled or held back until the next one.
    """

    def __init__(self, seed, rate):
        self._rng = random.Random(seed)
        self.rate = rate
        self._held = b""
        self.faults = 0

    def __call__(self, data):
        rng = self._rng
        if not self.rate:
            return data
        if rng.random() < 50 * self.rate:
            self.faults += 1
            kind = rng.randrange(3)
            if kind == 0:
                return b""
            if kind == 1:
                return data + data
            late, self._held = self._held, data
            return late
        out = bytearray(self._held)
        self._held = b""
        for byte in data:
            out += self._spoiled(byte) if rng.random() < self.rate else bytes([byte])
        return bytes(out)

    def _spoiled(self, byte):
        rng = self._rng
        self.faults += 1
        return rng.choice(
            (
                bytes([byte ^ 1 << rng.randrange(8)]),
                b"",
                bytes([byte, byte]),
                bytes([byte, rng.choice((FLAG, rng.randrange(256)))]),
            )
        )
