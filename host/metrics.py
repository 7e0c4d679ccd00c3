"""Counters and timings of a join, read from one place."""

from dataclasses import dataclass, field

__all__ = ["Metrics"]


@dataclass
class Metrics:
    """What a join has done so far.

    tuples, late  per stream (left, right)
    pairs         in the result
    batches       processed
    seconds       in which push and finish worked for the caller
    engine_s      of these (or beside them), in the workers' engines, added up
    structures    subwindows that were created, by the structure that the chooser gave them
    """

    tuples: list[int] = field(default_factory=lambda: [0, 0])
    late: list[int] = field(default_factory=lambda: [0, 0])
    pairs: int = 0
    batches: int = 0
    seconds: float = 0.0
    engine_s: float = 0.0
    structures: dict[str, int] = field(default_factory=dict)

    def summary(self) -> str:
        """One line: tuples in, pairs out, late, seconds, tuples/s."""
        total = sum(self.tuples)
        rate = total / self.seconds if self.seconds else 0.0
        return (
            f"{total:,} tuples in ({self.tuples[0]:,} left, {self.tuples[1]:,} right), "
            f"{self.pairs:,} pairs out, {sum(self.late):,} late, "
            f"{self.seconds:.3f} s, {rate:,.0f} tuples/s"
        )
