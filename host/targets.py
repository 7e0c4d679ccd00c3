"""Which subwindows a batch has to probe, and what its probes see of each."""

from dataclasses import dataclass

import numpy as np

from host.chain import Chain, Subwindow
from host.views import Seen
from hw.spec.windows import Coverage, coverage

__all__ = ["Target", "targets_of"]


@dataclass(frozen=True)
class Target:
    """A subwindow that a batch probes, and what its probes see of it."""

    subwindow: Subwindow
    covered: np.ndarray | None
    unseen: np.ndarray | None


def targets_of(chain: Chain, seen: Seen) -> list[Target]:
    """The subwindows that some probe sees, with the probes that see them in part or not."""
    targets = []
    (earliest, latest), all_see = seen.view.some, seen.view.all_see
    for subwindow in chain:
        if not subwindow.stored or subwindow.largest < earliest or subwindow.smallest > latest:
            continue
        if all_see[0] <= subwindow.smallest and subwindow.largest <= all_see[1]:
            targets.append(Target(subwindow, None, None))
            continue
        covers = coverage(*seen.places, subwindow.smallest, subwindow.largest)
        whole = covers == Coverage.WHOLE
        none = covers == Coverage.NONE
        targets.append(
            Target(subwindow, None if whole.all() else whole, none if none.any() else None)
        )
    return targets
