"""What the tests of a worker's epochs share: all workers of a join, without their daemon."""

import pyarrow as pa

from host.service.held_join import HeldJoin
from tests.helpers import pairs_of

__all__ = ["Workers"]


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
        batches = [
            pa.ipc.read_record_batch(message, answer.schema) for message in answer.messages()
        ]
        return batches, answer

    def rows(self, epoch, worker=0, **more):
        return pairs_of(self.answer(epoch, worker, **more)[0])

    def run(self, epoch, workers=None):
        """The pairs of an epoch from all workers together."""
        every = range(self.workers) if workers is None else workers
        return sorted(pair for worker in every for pair in self.rows(epoch, worker))

    def rest(self):
        """Wait for what is done after an answer has ended: deleting what has expired."""
        for held in self.held.values():
            for thread in (held._thread, held._disk):
                thread.submit(int).result()

    def crash(self, worker):
        """What SIGKILL leaves: the log."""
        if worker in self.held:
            self.held.pop(worker).close()

    def close(self):
        for worker in list(self.held):
            self.crash(worker)
