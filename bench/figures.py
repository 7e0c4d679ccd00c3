"""A figure: what was measured beside what, what it has to be, and whether it is."""

from typing import Any

__all__ = ["figure"]


def figure(
    name: str, ratio: float, *, at_least: float | None = None, at_most: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """`holds` says whether the ratio keeps its bound; None where it has none."""
    holds = None
    if at_least is not None:
        holds = ratio >= at_least
        more["at_least"] = at_least
    elif at_most is not None:
        holds = ratio <= at_most
        more["at_most"] = at_most
    return {"name": name, "ratio": ratio, **more, "holds": holds}
