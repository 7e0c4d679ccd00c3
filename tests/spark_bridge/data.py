"""Rows with every kind of value that a condition can meet, NULL and NaN among them."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa

__all__ = ["SECONDS", "mixed_rows"]

#: What the rows' event times span.
SECONDS = 600
_FIRST = dt.datetime(2024, 3, 31, 0, 50, tzinfo=dt.UTC)  # Berlin's clocks go forward at one


def mixed_rows(count, seed):
    """Rows 0 to count - 1, event times rising with some disorder; every tenth value is NULL."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.integers(0, SECONDS, count)) + rng.integers(-5, 5, count)
    times = [_FIRST + dt.timedelta(seconds=int(one)) for one in at]
    floats = [*rng.normal(0, 20, count - 4).round(2), np.nan, -0.0, 0.0, np.inf]
    texts = rng.choice(["ab", "c", "", "Ä"], count)
    columns = {
        "id": pa.array(range(count), pa.int64()),
        "i": _holes(rng, rng.integers(-50, 50, count).tolist(), pa.int32()),
        "f": _holes(rng, rng.permutation(floats).tolist(), pa.float64()),
        "d": _holes(rng, [Decimal(int(x)) / 4 for x in rng.integers(-200, 200, count)],
                    pa.decimal128(9, 2)),
        "day": _holes(rng, [dt.date(2024, 3, 31) + dt.timedelta(days=int(x))
                            for x in rng.integers(-3, 3, count)], pa.date32()),
        "k": _holes(rng, texts.tolist(), pa.string()),
        "ts": _holes(rng, times, pa.timestamp("us", "UTC"), 20),
        "n": _holes(rng, [one.replace(tzinfo=None) for one in times], pa.timestamp("us")),
        "bag": pa.array([[1, None], None, []] * count, pa.list_(pa.int32()))[:count],
    }
    return pa.table(columns)


def _holes(rng, values, kind, every=10):
    """Some values replaced by NULL."""
    return pa.array([None if rng.integers(every) == 0 else one for one in values], kind)
