"""Results against what they should be, ordered or as a multiset."""

import numpy as np

__all__ = ["merged", "index_array", "cut_points", "same_tuples", "same_multiset"]


def merged(main, batch):
    """The stable merge: of equal keys, those of the main array come first."""
    both = np.concatenate([main, batch])
    return both[np.argsort(both["key"], kind="stable")]


def index_array(main, partition_rows):
    """The index array of a main array: the first key of each partition."""
    return main["key"][::partition_rows]


def cut_points(main, batch, positions):
    """For each output position, how many tuples of the main array come before it."""
    ends = np.concatenate([[0], np.cumsum(_from_main(main, batch))])
    return [int(ends[position]) for position in positions]


def _from_main(main, batch):
    both = np.concatenate([main["key"], batch["key"]])
    return np.argsort(both, kind="stable") < len(main)


def same_tuples(got, expected, what="tuples"):
    """Assert that both are the same tuples in the same order; name the first difference."""
    got, expected = _plain(got), _plain(expected)
    for place, (one, other) in enumerate(zip(got, expected, strict=False)):
        assert one == other, f"{what} at {place}: {one}, expected {other}"
    assert len(got) == len(expected), f"{len(got)} {what}, expected {len(expected)}"


def same_multiset(got, expected, what="tuples"):
    """The same without the order."""
    same_tuples(sorted(_plain(got)), sorted(_plain(expected)), what)


def _plain(values):
    if isinstance(values, np.ndarray):
        return values.tolist()
    return [tuple(value.values()) if isinstance(value, dict) else value for value in values]
