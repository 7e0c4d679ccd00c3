"""Sharing: how the tuples of both streams are dealt to workers that do not talk to each other.

Every worker hears of every tuple, so that row numbers, windows and watermarks are the same for
all. A worker stores its share and probes it with all tuples that may match something in it: each
pair is found by the one worker that stored the earlier tuple.

    round robin   PanJoin's and SplitJoin's: stores one tuple in `workers`, in turn; probes all
    random        BiStream's random routing: stores what falls to it; probes all
    hash          BiStream's hash routing: stores and probes tuples by a hash of their equality keys
    contrand:g    BiStream's ContRand: g subgroups by hash, and in turn within a subgroup
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from host.condition import JoinCondition
from host.errors import OptionError
from host.hashing import hashes_of_integers
from hw.spec.tuples import Side

__all__ = ["ROUTINGS", "Share", "chosen_routing"]

ROUTINGS = ("round robin", "random", "hash", "contrand")


def chosen_routing(condition: JoinCondition) -> str:
    """What suits a condition: by hash a tuple is probed once, which only an equality allows."""
    return "hash" if condition.equalities else "round robin"


@dataclass(frozen=True)
class Share:
    """What one worker of several stores and probes; checked against the condition when made."""

    condition: JoinCondition
    routing: str = "round robin"
    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        kind, colon, groups = self.routing.partition(":")
        if kind not in ROUTINGS or bool(colon) != (kind == "contrand"):
            raise OptionError(
                f"routing must be round robin, random, hash or contrand:<subgroups>, "
                f"not {self.routing!r}"
            )
        if not 0 <= self.worker < self.workers:
            raise OptionError(f"worker {self.worker} is not one of {self.workers} workers")
        if colon and not (groups.isdecimal() and 1 <= int(groups) <= self.workers):
            raise OptionError(
                f"routing {self.routing!r} must have from 1 to {self.workers} subgroups, "
                "as many as there are workers"
            )
        if kind in ("hash", "contrand") and not self.condition.equalities:
            raise OptionError(
                f"routing {self.routing!r} needs an equality between the streams, and the "
                f"condition {self.condition.text!r} has none: use round robin"
            )

    @property
    def groups(self) -> int:
        """Workers of one group store in turn; of different groups, nothing in common."""
        if self.routing == "hash":
            return self.workers
        return int(self.routing.partition(":")[2] or 1)

    def probed(self, side: Side, rows: pa.RecordBatch) -> np.ndarray | None:
        """Which tuples this worker looks at, with their hash in its subgroup; None is all."""
        if self.groups == 1:
            return None
        group = _dealt(self.condition.equality_hashes(side, rows), self.groups)
        mine: np.ndarray = group == self.worker % self.groups
        return mine

    def stored(self, side: Side, first: int, count: int) -> np.ndarray | None:
        """Which of the stream's rows from number `first` on are this worker's to keep.

        Of those that it probes, that is; None is all.
        """
        group = self.worker % self.groups
        members = len(range(group, self.workers, self.groups))
        if members == 1:
            return None
        numbers = np.arange(first, first + count)
        if self.routing == "random":
            # The seed is the tuple itself: the same in every life of every worker.
            return _dealt(hashes_of_integers(2 * numbers + side), members) == self.worker
        mine: np.ndarray = numbers % members == self.worker // self.groups
        return mine


def _dealt(hashes: np.ndarray, places: int) -> np.ndarray:
    """A place for each hash, by its upper bits: the lower ones may be those of a key."""
    mixed = hashes_of_integers(hashes.view(np.int64))
    dealt: np.ndarray = (mixed >> np.uint64(32)) * np.uint64(places) >> np.uint64(32)
    return dealt
