"""The structures of a subwindow beside each other and beside others: suite `structures`."""

from collections.abc import Callable
from typing import Any

from bench import two_predicates

__all__ = ["run"]


def run(progress: Callable[[str], None], quick: bool = False) -> dict[str, Any]:
    """All figures."""
    return {"quick": quick, "two_predicates": two_predicates.run(progress, quick)}
