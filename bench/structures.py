"""The structures of a subwindow beside each other and beside others: suite `structures`."""

from collections.abc import Callable
from typing import Any

from bench import choices, subwindows, two_predicates, window_joins
from bench.rounds import two_cores

__all__ = ["run"]


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """All figures, case by case."""
    with two_cores():
        return {
            "quick": quick,
            "subwindows": subwindows.run(progress, quick),
            "window_joins": window_joins.run(progress, quick),
            "choices": choices.run(progress, quick),
            "two_predicates": two_predicates.run(progress, quick),
        }
