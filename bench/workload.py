"""Streams for benchmarks: uniform keys, and a band that matches about as often as asked."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

import host

__all__ = ["BATCH", "SCHEMA", "BandWorkload"]

BATCH = 1 << 15
#: An 8-byte tuple: key and identifier.
SCHEMA = pa.schema([("x", pa.int32()), ("id", pa.int32())])


@dataclass
class BandWorkload:
    """Two endless streams of uniform int32 keys and a band join over a row window.

    rows     of the window, each side
    matches  that a tuple has on average in a full window
    """

    rows: int
    matches: float = 1.0
    seed: int = 1
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    @property
    def width(self) -> int:
        """Half the band: |l.x - r.x| <= width."""
        return int(self.matches * 2**31 / self.rows)

    @property
    def on(self) -> str:
        return f"l.x BETWEEN r.x - {self.width} AND r.x + {self.width}"

    def batch(self, rows: int = BATCH) -> pa.RecordBatch:
        keys = self.rng.integers(-(2**31), 2**31, rows).astype(np.int32)
        return pa.record_batch([pa.array(keys), pa.array(np.arange(rows, dtype=np.int32))], SCHEMA)

    def join(self, **options: Any) -> host.StreamJoin:
        """A join whose window is full and whose oldest subwindow is partly expired."""
        join = host.StreamJoin(
            on=self.on, window=f"rows {self.rows}", left=SCHEMA, right=SCHEMA, **options
        )
        for _ in range(0, self.rows + self.rows // 8, BATCH):
            for _ in join.push(left=self.batch(), right=self.batch()):
                pass
        return join
