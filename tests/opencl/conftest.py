"""Engines on the first OpenCL device, and the model that they are judged by."""

import numpy as np
import pytest

from host.backends.opencl_backend import OpenCLBackend
from hw.spec import JoinParams, tuple_dtype

#: What differs between engines of one law: (keywords, key bits). Tiers are small, so that a few
#: thousand tuples pass through all of them; memory that is not shared is what a GPU has.
ENGINES = {
    "tiered 32": ({"tier_rows": (256, 1024)}, 32),
    "tiered 64": ({"tier_rows": (256, 1024)}, 64),
    "apart": ({"tier_rows": (256, 1024), "shared": False}, 32),
    "paper 32": ({}, 32),
    "paper 64": ({"shared": False}, 64),
}


class Model:
    """One subwindow, as numpy says it: tuples in order of key, then of arrival."""

    def __init__(self, key_bits):
        self.tuples = np.empty(0, tuple_dtype(key_bits))

    def batch(self, keys):
        """Those keys as the next tuples to arrive, sorted as a manager sorts them."""
        order = np.argsort(keys, kind="stable")
        tuples = np.empty(len(keys), self.tuples.dtype)
        tuples["key"], tuples["rid"] = np.asarray(keys)[order], order + len(self.tuples)
        return tuples

    def insert(self, tuples):
        merged = np.concatenate([self.tuples, tuples])
        self.tuples = merged[np.argsort(merged["key"], kind="stable")]

    def sizes(self, probes):
        """Matches of each probe."""
        keys, wanted = self.tuples["key"], probes.intervals
        first = np.searchsorted(keys, wanted["lo"], "left")
        last = np.searchsorted(keys, wanted["hi"], "right")
        sizes = np.maximum(last - first, 0).sum(axis=1)
        return len(keys) - sizes if probes.negated else sizes

    def rids(self, probes, number):
        """The rids that one probe matches, ascending."""
        keys = self.tuples["key"]
        inside = np.zeros(len(keys), bool)
        for lo, hi in probes.intervals[number].tolist():
            inside |= (keys >= lo) & (keys <= hi)
        return np.sort(self.tuples["rid"][inside != probes.negated])


@pytest.fixture
def model():
    return Model


@pytest.fixture(params=ENGINES)
def engine(request):
    """An open engine of each kind; `engine.params.key_bits` says how wide its keys are."""
    keywords, key_bits = ENGINES[request.param]
    mode = "paper" if request.param.startswith("paper") else "tiered"
    params = JoinParams(key_bits=key_bits, partitions=64, insert_buffer=256, mode=mode)
    opened = OpenCLBackend(params, **keywords)
    yield opened
    opened.close()
