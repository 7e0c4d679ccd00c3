"""A batch of probes as a join core of the gateware takes it."""

from dataclasses import dataclass

import numpy as np

from host.backend import Probes
from hw.spec.params import JoinParams
from hw.spec.predicates import Bound, registers
from hw.spec.tuples import Side, key_dtype

__all__ = ["CoreProbes"]

#: A batch that has at least one probe for so many stored tuples is scanned, not searched: a scan
#: reads four words for it, a search five.
DENSE_ROWS_PER_PROBE = 16
#: Words of keys that one prober takes in its turn: as the probing engine's figures were taken.
DENSE_CHUNK, SPARSE_CHUNK = 16, 2  # explicit intervals need an even number


@dataclass(frozen=True)
class CoreProbes:
    """Keys and registers, or explicit intervals as keys.

    keys    the payload of PROBE
    count   probes in it
    runs    records of each
    fields  of the command, registers among them
    scans   whether a partition has more than a memory word, so that there is something to scan
    """

    keys: np.ndarray
    count: int
    runs: int
    fields: dict[str, int]
    scans: bool

    @staticmethod
    def of(probes: Probes, stored: Side, params: JoinParams) -> "CoreProbes":
        scans = params.partition_rows > params.lanes
        if probes.wanted is not None:
            flat = np.ascontiguousarray(probes.wanted).view(key_dtype(params.key_bits))
            return CoreProbes(
                flat.reshape(-1), len(probes), probes.wanted.shape[1], {"explicit": 1}, scans
            )
        assert probes.predicate is not None
        words = registers(probes.predicate, stored.other, params.key_bits)
        fields = {"negated": int(probes.predicate.negated), "band_count": max(1, len(words))}
        for number, word in enumerate(words):
            for name in ("lo", "hi", "lo_bound", "hi_bound"):
                fields[f"bands.{number}.{name}"] = int(word[name])
        if not len(words):
            fields |= {"bands.0.lo_bound": Bound.NEVER, "bands.0.hi_bound": Bound.NEVER}
        return CoreProbes(probes.keys, len(probes), max(1, len(words)), fields, scans)

    def fields_for(self, rows: int) -> dict[str, int]:
        """The command's fields for a main array of so many tuples."""
        # Bounds of several bands do not ascend: scanning would read a partition for each.
        dense = (
            self.scans and self.runs == 1 and self.count * DENSE_ROWS_PER_PROBE >= rows
        )
        chunk = DENSE_CHUNK if dense else SPARSE_CHUNK
        return {**self.fields, "dense": int(dense), "chunk_words": chunk}
