"""A worker's epochs: whatever is repeated, lost or shared, each pair comes once."""

import itertools

import pytest

from host.service.held_join import HeldJoin
from tests.helpers import in_splits, pairs_of, same_pairs
from tests.service.micro_batches import Source, streams

SPLITS = in_splits(40, 44, [(9, 3), (0, 5), (0, 0), (4, 1), (1, 12)])
WINDOWS = {
    "rows": ("rows 9,7", {}),
    "short rows": ("rows 2,3", {"order": "strict"}),
    "time": ("3 s", {"time": "t"}),
    "late": ("-2 s..3 s", {"time": "t", "lateness": "2 s", "late": "keep"}),
    "none": ("none", {}),
}
ROUTINGS = [("round robin", 1), ("round robin", 2), ("random", 2), ("round robin", 3),
            ("random", 3), ("hash", 2), ("hash", 3), ("contrand:2", 3), ("contrand:1", 2)]


@pytest.fixture(autouse=True, scope="module")
def without_waiting_for_the_disk():
    """What is on the disk after a power cut is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda number: None)
        yield


class Workers:
    """All workers of a source, each in its own life."""

    def __init__(self, source, routing="round robin", workers=1, engine=None):
        self.source, self.routing, self.workers = source, routing, workers
        self.engine = {"backend": "numpy", "subwindow": 4, "batch": 5} | (engine or {})
        self.held = {}

    def job(self, epoch, worker, **more):
        return self.source.job(epoch, worker, self.workers, routing=self.routing, **more)

    def answer(self, epoch, worker, **more):
        job = self.job(epoch, worker, **more)
        if worker not in self.held:
            self.held[worker] = HeldJoin(job, self.engine)
        answer = self.held[worker].run(job)
        batches = [pa_batch(message, answer) for message in answer.messages()]
        return pairs_of(batches), answer

    def run(self, epoch, workers=None):
        """The pairs of an epoch from all workers together."""
        every = range(self.workers) if workers is None else workers
        return sorted(pair for worker in every for pair in self.answer(epoch, worker)[0])

    def crash(self, worker):
        """What SIGKILL leaves: the log."""
        if worker in self.held:
            self.held.pop(worker).close()

    def close(self):
        for worker in list(self.held):
            self.crash(worker)


def pa_batch(message, answer):
    import pyarrow as pa

    return pa.ipc.read_record_batch(message, answer.schema)


@pytest.fixture
def workers_of():
    made = []

    def make(*arguments, **more):
        made.append(Workers(*arguments, **more))
        return made[-1]

    yield make
    for workers in made:
        workers.close()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(("routing", "count"), ROUTINGS)
def test_every_window_routing_and_crash_gives_each_pair_once(
    tmp_path, workers_of, window, routing, count
):
    text, options = WINDOWS[window]
    source = Source(tmp_path, streams(), SPLITS, text, **options)
    workers = workers_of(source, routing, count)
    lost = itertools.cycle([(), (0,), (), (count - 1,), range(count)])
    for (epoch, wanted), dying in zip(enumerate(source.expected()), lost, strict=False):
        same_pairs(workers.run(epoch), wanted)
        for worker in dying:
            workers.crash(worker)
            workers.answer(epoch, worker)
    assert sum(map(len, source.expected())) > 20
