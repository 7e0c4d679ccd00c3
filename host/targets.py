"""Which subwindows a batch has to probe, and what its probes see of each."""

from dataclasses import dataclass

from host.chain import Chain, Subwindow
from host.views import Seen

__all__ = ["Target", "targets_of"]


@dataclass(frozen=True)
class Target:
    """A subwindow that a batch probes, and whether every probe is known to see all of it."""

    subwindow: Subwindow
    whole: bool


def targets_of(chain: Chain, seen: Seen) -> list[Target]:
    """The subwindows that some probe may see."""
    targets = []
    (earliest, latest), all_see = seen.view.some, seen.view.all_see
    for subwindow in chain:
        if not subwindow.stored or subwindow.largest < earliest or subwindow.smallest > latest:
            continue
        whole = all_see[0] <= subwindow.smallest and subwindow.largest <= all_see[1]
        targets.append(Target(subwindow, whole))
    return targets
