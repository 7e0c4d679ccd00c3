"""The manager: which worker holds what, what is probed, what expires."""

import numpy as np
import pyarrow as pa
import pytest

from host.arrivals import interleave
from host.backends.numpy_backend import NumpyBackend
from host.condition import compile_condition
from host.manager import JoinManager
from host.preprocess import Preprocessor
from host.watermark import Watermark
from hw.spec.params import JoinParams
from hw.spec.tuples import Side
from hw.spec.windows import parse_window

SCHEMA = pa.schema([("a", pa.int32()), ("t", pa.timestamp("us"))])


class Recorder(NumpyBackend):
    """An engine that notes what it is asked."""

    def __init__(self, log, number):
        super().__init__(JoinParams())
        self.log, self.number = log, number

    def create(self, side, subwindow, capacity):
        self.log.append((self.number, "create", side, subwindow))
        super().create(side, subwindow, capacity)

    def probe(self, stored, subwindows, probes):
        self.log.append((self.number, "probe", stored, tuple(subwindows)))
        return super().probe(stored, subwindows, probes)

    def find_among(self, tuples, probes):
        self.log.append((self.number, "among", probes.side))
        return super().find_among(tuples, probes)

    def expire(self, side, subwindow):
        self.log.append((self.number, "expire", side, subwindow))
        super().expire(side, subwindow)

    def close(self):
        self.log.append((self.number, "close"))
        super().close()


class Driven:
    """A manager with a preprocessor before it and a log of its engines behind it."""

    def __init__(self, window, workers=1, rows=2, lateness_us=None, either_way=False):
        self.log, engines = [], iter(range(workers))
        condition, parsed = compile_condition("l.a = r.a", SCHEMA, SCHEMA), parse_window(window)
        self.manager = JoinManager(
            condition, parsed, lambda: Recorder(self.log, next(engines)), workers, rows,
            either_way=either_way,
        )
        marks = (Watermark(lateness_us), Watermark(lateness_us))
        self.preprocessor = Preprocessor(condition, parsed, ("t", "t"), marks)
        self.pushed = [0, 0]

    def push(self, left=(), right=()):
        """Rows (key, time) of both streams; the pairs of their numbers."""
        sides = (left, right)
        rows = tuple(
            pa.RecordBatch.from_pydict(
                {"a": [a for a, _ in side], "t": [t for _, t in side]}, SCHEMA
            )
            for side in sides
        )
        prepared = self.preprocessor.prepare(
            interleave(rows, tuple(np.arange(len(side)) for side in sides))
        )
        pairs = []
        for hits in self.manager.find(prepared, counting=False).hits:
            for probe, row in hits.pairs(1_000):
                own = (hits.probe.order[probe] + hits.probe.first).tolist()
                some = zip(own, row.tolist(), strict=True)
                pairs += some if hits.probe.side is Side.LEFT else ((b, a) for a, b in some)
        self.manager.store(prepared)
        self.manager.settle()
        return sorted(pairs)

    def noted(self, *what):
        return [entry for entry in self.log if entry[1] in what]


@pytest.fixture
def driven():
    made = []

    def make(*arguments, **options):
        made.append(Driven(*arguments, **options))
        return made[-1]

    yield make
    for each in made:
        each.manager.close()


def ones(*times):
    return [(1, time) for time in times]


def test_subwindows_are_dealt_to_workers_in_turn(driven):
    join = driven("rows 100", workers=3)
    join.push(left=ones(*range(8)))
    assert sorted(join.noted("create"), key=lambda entry: entry[3]) == [
        (n % 3, "create", Side.LEFT, n) for n in range(4)
    ]


def test_a_probe_goes_once_to_each_worker_with_what_it_sees(driven):
    join = driven("rows 8", workers=2)
    for rows in (4, 4, 2):
        join.push(left=ones(*range(rows)))
    join.log.clear()
    # The first subwindow, of rows 0 and 1, is past.
    assert join.push(right=ones(0)) == [(row, 0) for row in range(2, 10)]
    assert sorted(join.noted("probe")) == [
        (0, "probe", Side.LEFT, (2, 4)), (1, "probe", Side.LEFT, (1, 3)),
    ]  # fmt: skip


def test_rows_that_a_large_batch_pushes_out_are_never_stored(driven):
    join = driven("rows 3")
    join.push(left=ones(*range(2)))
    join.push(left=ones(*range(50)))
    held = [(sub.base, tuples["rid"].tolist()) for sub, tuples in join.manager.contents(Side.LEFT)]
    assert held == [(49, [0, 1]), (51, [0])]
    assert join.manager.oldest_row(Side.LEFT) == 49


def test_expired_subwindows_are_forgotten_by_their_worker(driven):
    join = driven("rows 2", workers=2)
    for _ in range(4):
        join.push(left=ones(0))
    assert join.noted("expire") == [(0, "expire", Side.LEFT, 0)]
    assert join.manager.oldest_row(Side.LEFT) == 2


def test_a_silent_stream_lets_the_other_expire_by_its_watermark(driven):
    join = driven("2 us", lateness_us=0)
    join.push(left=ones(1, 2, 3, 4, 5, 6))
    assert join.manager.oldest_row(Side.LEFT) == 0
    join.push(right=ones(7))
    assert join.manager.oldest_row(Side.LEFT) == 4
    join.manager.expire((6, 100))
    assert join.manager.oldest_row(Side.LEFT) == 6
    assert list(join.manager.chains[Side.LEFT]) == []


def test_tuples_of_one_batch_see_those_before_them_only_once(driven):
    join = driven("none")
    assert join.push(ones(0, 0), ones(0, 0)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert join.noted("probe", "expire") == []


def test_what_cannot_match_is_not_sent(driven):
    join = driven("rows 10")
    join.push(left=[(None, 0), (None, 0)])
    assert join.push(right=ones(0)) == []
    assert join.push(left=[(None, 0)]) == []
    assert join.noted("probe") == []


def test_contents_can_be_restored_elsewhere(driven):
    join, other = driven("rows 9", workers=1), driven("rows 9", workers=3)
    join.push(left=[(n % 3, 0) for n in range(7)])
    wanted = [tuples.tolist() for _, tuples in join.manager.contents(Side.LEFT)]
    for side in Side:
        for subwindow, tuples in list(join.manager.contents(side)):
            other.manager.restore(side, subwindow, tuples)
    assert [tuples.tolist() for _, tuples in other.manager.contents(Side.LEFT)] == wanted
    assert [sub.worker for sub in other.manager.chains[Side.LEFT]] == [0, 1, 2, 0]


def test_closing_closes_every_engine():
    join = Driven("none", workers=3)
    join.manager.close()
    assert sorted(join.noted("close")) == [(n, "close") for n in range(3)]


def test_an_engines_failure_reaches_the_caller(driven):
    join = driven("none", workers=2)
    join.push(left=ones(*range(4)))

    def broken(*_):
        raise RuntimeError("no answer")

    join.manager.workers[1].backend.probe = broken
    with pytest.raises(RuntimeError, match=r"^no answer$"):
        join.push(right=ones(0))


@pytest.mark.parametrize(
    ("window", "once"),
    [("rows 3", True), ("rows 2,3", False), ("4 microseconds", True), ("none", True)],
)
def test_tuples_of_a_batch_meet_once_where_either_may_be_the_probe(driven, window, once):
    """Unless a window is smaller than the batch: what a tuple sees of it then tells on arrivals."""
    found = []
    for either_way in (False, True):
        join = driven(window, either_way=either_way)
        before = join.push(left=ones(0, 5), right=ones(2))
        join.log.clear()
        # Times that do not follow arrivals.
        found.append((before, join.push(left=ones(9, 3, 6), right=[(1, 7), (2, 7), (1, 1)])))
        asked = [entry[2] for entry in join.noted("among")]
        assert asked == ([Side.LEFT] if once and either_way else [Side.LEFT, Side.RIGHT])
    assert found[0] == found[1]
    assert len(found[0][1]) > 5
