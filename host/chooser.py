"""The chooser: which structure a new subwindow gets, and why.

PanJoin's rule (V-A4) is BI-Sort for large batches or many matches, else RaP-Table where the keys
keep their distribution, else WiB+-Tree. Measured beside them, a BI-Sort whose insertion buffer is
sorted and fits the batch is behind RaP-Table by a quarter at most, where keys stay, and ahead of it
by far where they move; WiB+-Tree is nowhere ahead. So it stands in for both: what is left to choose
is which engine has it, how large the buffer is, and where a loop
is enough. The bench suite `structures` is the judge of these limits.
"""

from dataclasses import dataclass, field

import numpy as np

from host.indexes.splitters import imbalance

__all__ = ["Choice", "Chooser"]

#: Rows up to which looking at every tuple costs no more than any structure.
_LOOP_ROWS = 512
#: Tuples of a batch from which on a device is worth its start.
_LARGE_BATCH = 1 << 12
#: The engine that is in host memory itself: compiled code is ahead of it at every batch.
_HOST = "numpy"
_SMALLEST_BUFFER, _LARGEST_BUFFER = 1 << 9, 1 << 18
#: Keys of a batch that are remembered to tell whether they move, and parts that they are counted
#: in.
_SAMPLE, _PARTS = 1 << 10, 16
#: Share of a batch's weight in what is expected of the next.
_WEIGHT = 0.1


@dataclass(frozen=True)
class Choice:
    """A structure, where it runs, its insertion buffer, and one sentence on why."""

    structure: str
    hosted: bool
    buffer: int
    why: str


class _Sample:
    """Keys that came lately, in the order of their batches."""

    def __init__(self) -> None:
        self._keys = np.empty(8 * _SAMPLE, np.int64)
        self._held = 0

    def add(self, keys: np.ndarray) -> None:
        """Take up to _SAMPLE more; the older half goes where there is no room."""
        if self._held + len(keys) > len(self._keys):
            kept = self._keys[self._held // 2 : self._held].copy()
            self._held = len(kept)
            self._keys[: self._held] = kept
        self._keys[self._held : self._held + len(keys)] = keys
        self._held += len(keys)

    def halves(self) -> tuple[np.ndarray, np.ndarray]:
        """The older and the newer ones."""
        return self._keys[: self._held // 2], self._keys[self._held // 2 : self._held]


@dataclass
class Chooser:
    """What was seen of a join so far; `decide` is asked when a subwindow is created.

    batch    tuples of a batch; at first what the options say
    matches  of a probe
    engine   the name of the engine that has BI-Sort for large batches, if it is a device
    """

    batch: float
    engine: str
    matches: float = 0.0
    decided: dict[str, int] = field(default_factory=dict)
    _samples: dict[int, _Sample] = field(default_factory=dict)
    _seen: bool = False

    def see_batch(self, side: int, keys: np.ndarray) -> None:
        """A batch of ascending keys was inserted."""
        self.batch = self._moved(self.batch, len(keys)) if self._seen else float(len(keys))
        self._seen = True
        if len(keys):
            self._samples.setdefault(side, _Sample()).add(keys[:: -(-len(keys) // _SAMPLE)])

    def see_matches(self, probes: int, found: int) -> None:
        """That many probes found that many tuples."""
        if probes:
            self.matches = self._moved(self.matches, found / probes)

    @staticmethod
    def _moved(before: float, now: float) -> float:
        return before + _WEIGHT * (now - before)

    def drift(self, side: int) -> float:
        """How unevenly the newer half of the keys falls into equal parts of the older half."""
        older, newer = self._samples[side].halves() if side in self._samples else ((), ())
        if not len(older):
            return 0.0
        older = np.sort(older)
        splitters = older[np.arange(1, _PARTS) * len(older) // _PARTS]
        parts = np.searchsorted(splitters, newer)
        return imbalance(np.bincount(parts, minlength=_PARTS))

    def decide(self, side: int, capacity: int) -> Choice:
        """The structure of a subwindow of up to `capacity` tuples that is created now."""
        batch = max(1, round(self.batch))
        # Merging into the buffer costs its length for each batch, emptying it the main array's
        # length for each buffer: together they are least at the geometric mean.
        buffer = 1 << (int(np.sqrt(capacity * batch)) - 1).bit_length()
        buffer = min(max(buffer, _SMALLEST_BUFFER), _LARGEST_BUFFER, capacity)
        facts = f"{capacity:,} rows, batches of about {batch:,}, {self.matches:.3g} matches a tuple"
        if capacity <= _LOOP_ROWS:
            choice = Choice("loop", True, 0, f"{facts}: so few are looked at one by one")
        elif batch >= _LARGE_BATCH and self.engine != _HOST:
            choice = Choice("bisort", False, 0, f"{facts}: {self.engine} merges large batches")
        else:
            moving = "move" if self.drift(side) > 1.0 else "stay"
            sized = f"a sorted buffer of {buffer:,} before the main array"
            choice = Choice("bisort", True, buffer, f"{facts}, keys that {moving}: {sized}")
        name = choice.structure if choice.hosted else f"{choice.structure} on {self.engine}"
        self.decided[name] = self.decided.get(name, 0) + 1
        return choice
