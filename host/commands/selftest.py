"""watersmeet selftest: small fixed joins on this machine's engine against plain arithmetic.

The judge holds every left value against every right value with numpy and knows nothing of keys,
intervals, subwindows or batches.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from host.errors import JoinError
from host.stream_join import StreamJoin

__all__ = ["CHECKS", "Check", "run", "run_check"]

_ROWS = 400
_WINDOW_ROWS = (60, 90)
_MINUTE_US = 60_000_000

Columns = dict[str, np.ndarray]
#: Columns of left (upright) and of right (flat) -> a matrix: which pairs hold.
Holds = Callable[[Columns, Columns], np.ndarray]


@dataclass(frozen=True)
class Check:
    """A condition for the join, and the same for the judge."""

    on: str
    holds: Holds


CHECKS = (
    Check("l.a = r.a", lambda p, q: p["a"] == q["a"]),
    Check("l.a <> r.a", lambda p, q: p["a"] != q["a"]),
    Check("l.a < r.a", lambda p, q: p["a"] < q["a"]),
    Check("l.a <= r.a + 3", lambda p, q: p["a"] <= q["a"] + 3),
    Check("l.big > r.big", lambda p, q: p["big"] > q["big"]),
    Check("r.x - l.x >= 0.25", lambda p, q: q["x"] - p["x"] >= 0.25),
    Check(
        "l.a BETWEEN r.a - 5 AND r.a + 7",
        lambda p, q: (p["a"] >= q["a"] - 5) & (p["a"] <= q["a"] + 7),
    ),
    Check("ABS(l.x - r.x) < 0.125", lambda p, q: np.abs(p["x"] - q["x"]) < 0.125),
    Check(
        "l.a BETWEEN r.a AND r.a + 4 OR l.a BETWEEN r.a + 3 AND r.a + 9 OR l.a = r.a - 20",
        lambda p, q: ((p["a"] >= q["a"]) & (p["a"] <= q["a"] + 9)) | (p["a"] == q["a"] - 20),
    ),
    Check(
        "l.k = r.k AND ABS(l.a - r.a) <= 10",
        lambda p, q: (p["k"] == q["k"]) & (np.abs(p["a"] - q["a"]) <= 10),
    ),
    Check("l.a < r.a AND l.x > r.x", lambda p, q: (p["a"] < q["a"]) & (p["x"] > q["x"])),
    Check(
        "ABS(l.a - r.a) <= 20 AND (l.a + r.a) % 3 = 0 AND l.x > 0.5",
        lambda p, q: (np.abs(p["a"] - q["a"]) <= 20) & ((p["a"] + q["a"]) % 3 == 0)
        & (p["x"] > 0.5),
    ),
    Check(
        "r.t BETWEEN l.t - INTERVAL 2 MINUTES AND l.t + INTERVAL 1 MINUTE",
        lambda p, q: (q["t"] >= p["t"] - 2 * _MINUTE_US) & (q["t"] <= p["t"] + _MINUTE_US),
    ),
)

#: Window -> which pairs it lets through, by row numbers and times.
WINDOWS: dict[str, Holds] = {
    # Row i of left arrives just before row i of right: i right rows came before it, and i + 1
    # left rows before that.
    f"rows {_WINDOW_ROWS[0]},{_WINDOW_ROWS[1]}": lambda p, q: (
        (p["row"] >= q["row"] + 1 - _WINDOW_ROWS[0]) & (q["row"] >= p["row"] - _WINDOW_ROWS[1])
    ),
    "-5 minutes..10 minutes": lambda p, q: (
        (q["t"] - p["t"] >= -5 * _MINUTE_US) & (q["t"] - p["t"] <= 10 * _MINUTE_US)
    ),
    "none": lambda p, q: np.ones((_ROWS, _ROWS), bool),
}


def run(arguments: argparse.Namespace) -> int:
    """Print a line for each check; 1 if one fails."""
    engine = {"backend": arguments.backend, "device": arguments.device}
    engine |= {"workers": arguments.workers, "params": arguments.params}
    failed = 0
    for window in WINDOWS:
        for check in CHECKS:
            difference = run_check(check, window, **engine)
            verdict = "ok    " if difference is None else "FAILED"
            print(f"{verdict}  {window:24}{check.on}", flush=True)
            if difference is not None:
                print(f"        {difference}")
            failed += difference is not None
    total = len(WINDOWS) * len(CHECKS)
    print(f"{total - failed} of {total} checks passed")
    return 1 if failed else 0


def run_check(check: Check, window: str, **engine: Any) -> str | None:
    """What differs between the join and the judge, or None."""
    sides = [_columns(seed) for seed in (1, 2)]
    left = {name: column[:, None] for name, column in sides[0].items()}
    right = {name: column[None, :] for name, column in sides[1].items()}
    expected = np.argwhere(check.holds(left, right) & WINDOWS[window](left, right))
    try:
        found = _joined(check, window, sides, engine)
    except JoinError as error:
        return str(error)
    # Pairs in ascending order, so that one that comes twice shows.
    found = found[np.lexsort((found[:, 1], found[:, 0]))]
    if np.array_equal(found, expected):
        return None
    return f"{len(found):,} pairs instead of {len(expected):,}, or other ones"


def _columns(seed: int) -> Columns:
    """Fixed values of every kind that the checks join on; many are equal."""
    rng = np.random.default_rng(seed)
    small = rng.integers(-50, 50, _ROWS)
    return {
        "row": np.arange(_ROWS),
        "k": rng.integers(0, 8, _ROWS),
        "a": small,
        "big": small << 56,
        # Sixteenths: sums and differences are exact.
        "x": rng.integers(-32, 32, _ROWS) / 16,
        "t": np.arange(_ROWS) * 20_000_000 + rng.integers(-30, 30, _ROWS) * 1_000_000,
    }


def _table(columns: Columns) -> pa.Table:
    arrays = {name: pa.array(column) for name, column in columns.items()}
    arrays["a"] = arrays["a"].cast(pa.int32())
    arrays["t"] = arrays["t"].cast(pa.timestamp("us"))
    return pa.table(arrays)


def _joined(
    check: Check, window: str, sides: list[Columns], engine: dict[str, Any]
) -> np.ndarray:
    """Row numbers (left, right) of the pairs, by batches and subwindows that fit nothing."""
    left, right = (_table(columns) for columns in sides)
    timed: dict[str, Any] = {"time": "t"} if "minutes" in window else {}
    with StreamJoin(
        on=check.on, window=window, left=left.schema, right=right.schema,
        select=["l.row", "r.row"], batch=37, subwindow=50, **timed, **engine,
    ) as join:
        batches = [*join.push(left, right), *join.finish()]
    pairs = pa.Table.from_batches(batches, join.schema)
    return np.column_stack([pairs.column(0).to_numpy(), pairs.column(1).to_numpy()])
