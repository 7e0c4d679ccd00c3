"""The paper-faithful mode, asked for as a user does: another engine, the same join."""

import numpy as np
import pytest

from host.backends.opencl_backend import OpenCLBackend
from hw.opencl.paper_insertion import PaperInsertionEngine
from tests.helpers import in_splits, join_of, pairs_of, push_all, stream

pytestmark = pytest.mark.opencl

SPLITS = in_splits(3_000, 2_900, [(700, 650), (1, 3)])


@pytest.mark.parametrize(
    "asked",
    [
        {"emit": "counts"},
        {"select": ["l.id", "r.id"], "order": "strict"},
        {"emit": "aggregate", "aggregates": "n=count(*),total=sum(r.v),most=max(l.v)"},
    ],
    ids=["counts", "pairs", "aggregate"],
)
@pytest.mark.parametrize("params", ["mode=paper", {"mode": "paper", "partitions": 16}])
def test_the_papers_mode_gives_the_same_result(asked, params):
    random = np.random.default_rng(11)
    left, right = (
        stream(x=random.integers(0, 4_000, rows).astype(np.int32), v=random.integers(0, 99, rows))
        for rows in (3_000, 2_900)
    )
    found = []
    for engine in ({"backend": "numpy"}, {"backend": "opencl", "params": params}):
        with join_of(
            "ABS(l.x - r.x) <= 3", "rows 2000,1500", left, right, subwindow=600, **asked, **engine
        ) as join:
            if engine["backend"] == "opencl":
                (worker,) = join.manager.workers
                assert isinstance(worker.backend, OpenCLBackend)
                assert isinstance(worker.backend._insertion, PaperInsertionEngine)
                sizes = worker.backend.params
                assert (sizes.insert_buffer, sizes.partitions) == (
                    1024, 65536 if params == "mode=paper" else 16
                )
            found.append(pairs_of(push_all(join, left, right, SPLITS)))
    assert len(found[0]) > 5_000
    assert found[0] == found[1]
