"""The demo's picture: pairs by day, and the speed of each micro-batch."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

__all__ = ["draw"]

_STYLE: dict[Any, Any] = {
    "font.size": 9.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlelocation": "left", "svg.hashsalt": "watersmeet",
}
_COLOUR = "#1f6f8b"


def draw(
    days: Sequence[tuple[date, int]], rates: Sequence[tuple[int, float]], path: Path
) -> None:
    """Write the picture, in the format that the path ends with."""
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(9, 5), layout="constrained")
        above, below = figure.subplots(2, 1, height_ratios=(2, 1))
        above.bar([day for day, _ in days], [pairs for _, pairs in days], 1.0, color=_COLOUR)
        above.set_title("Flights that left JFK and LaGuardia as late as each other: pairs a day")
        for day, pairs in sorted(days, key=lambda one: -one[1])[:3]:
            above.annotate(f"{day:%d %B}", (day, pairs), ha="center", va="bottom")
        below.plot([batch for batch, _ in rates], [rate for _, rate in rates], "o-", color=_COLOUR)
        below.set_title("Rows a second that Spark took through the join, by micro-batch")
        below.set_ylim(0)
        below.set_xlabel("micro-batch (a month of departures)")
        figure.savefig(path)
