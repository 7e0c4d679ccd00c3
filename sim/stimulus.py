"""Seeded tuple streams: uniform, skewed, all equal, extremes, empty."""

import random

import numpy as np

from hw.spec import tuple_dtype
from hw.spec.tuples import key_limits

__all__ = ["KINDS", "STALL_RATES", "keys", "sorted_tuples", "merge_cases", "generator"]

KINDS = ("uniform", "skewed", "equal", "extremes", "empty")
#: Fractions of the cycles in which an end of a stream pauses; every bench uses each of them.
STALL_RATES = (0.0, 0.4, 0.9)


def generator(seed):
    """A numpy generator and a random.Random of one seed; the seed goes to the log."""
    print(f"seed {seed}")
    return np.random.default_rng(seed), random.Random(seed)


def keys(rng, kind, count, key_bits=32):
    """`count` keys of that kind (none if "empty"), not sorted."""
    smallest, largest = key_limits(key_bits)
    if kind == "empty":
        count = 0
    if kind == "uniform":
        values = rng.integers(smallest, largest, count, endpoint=True)
    elif kind == "skewed":
        # Few values, most of them small: long runs of equal keys beside single ones.
        values = np.minimum(rng.zipf(1.5, count), 1000) - 5
    elif kind == "extremes":
        values = rng.choice([smallest, smallest + 1, -1, 0, 1, largest - 1, largest], count)
    else:
        values = np.full(count, 7)
    return values.astype(f"<i{key_bits // 8}")


def sorted_tuples(rng, kind, count, key_bits=32, first_rid=0):
    """Tuples that ascend by key, equal keys by rid, with rids from `first_rid` on."""
    values = np.sort(keys(rng, kind, count, key_bits))
    tuples = np.zeros(len(values), tuple_dtype(key_bits))
    tuples["key"] = values
    tuples["rid"] = first_rid + np.arange(len(values))
    return tuples


def merge_cases(rng, kind, most, key_bits=32):
    """A main array and a batch of that kind, each of 0 to `most` tuples; rids tell them apart."""
    sizes = rng.integers(0, most, 2, endpoint=True)
    main = sorted_tuples(rng, kind, int(sizes[0]), key_bits)
    batch = sorted_tuples(rng, kind, int(sizes[1]), key_bits, first_rid=len(main))
    return main, batch
