"""An epoch that is joined while its part is being written: a head start, never another result."""

import pytest

from host.errors import OptionError
from host.service.job import check_messages
from host.spool import write_part
from hw.spec.tuples import Side
from tests.helpers import exactly, in_splits, pairs_of, same_pairs
from tests.service.micro_batches import Source, streams

pytestmark = pytest.mark.usefixtures("without_fsync")

SPLITS = in_splits(40, 44, [(9, 7), (0, 5), (0, 0), (6, 8)])
WINDOWS = {
    "time": ("3 s", {"time": "t"}),
    "late": ("-2 s..3 s", {"time": "t", "lateness": "2 s", "late": "keep"}),
    "none": ("none", {}),
}


#: Rows after which a worker is told of them.
FEW = 4


class Attempts:
    """Tasks that write the parts of a source, as one file with all left rows first."""

    def __init__(self, source, workers):
        self.source, self.workers, self.ran_ahead = source, workers, 0

    def write(self, epoch, name="a", until=99):
        """A part, of which the worker hears up to that message; the parts of its job."""
        source, heard = self.source, []
        first, rows = source.first(epoch), []
        for side in Side:
            table = source.tables[side].slice(first[side], source.splits[epoch][side])
            rows += [(side, batch) for batch in table.to_batches(max_chunksize=2)]

        def told(file, messages):
            if self.workers.held and len(heard) < until:
                heard.append(messages)
                self.workers.held[0].run_ahead(source.job(epoch, parts=()), file, messages)
                self.is_ahead()  # it reads along

        part = write_part(source.directory, epoch, name, rows, told, FEW)
        self.ran_ahead += self.is_ahead()
        return (part,)

    def is_ahead(self):
        if not self.workers.held:
            return False
        held = self.workers.held[0]
        held._thread.submit(int).result()  # after whatever it was told
        return held._ahead is not None

    def answer(self, epoch, parts):
        batches, answer = self.workers.answer(epoch, 0, parts=parts)
        return pairs_of(batches), answer


@pytest.mark.parametrize("window", WINDOWS)
def test_a_head_start_does_not_change_the_results(tmp_path, workers_of, window):
    text, options = WINDOWS[window]
    source = Source(tmp_path, streams(), SPLITS, text, **options)
    attempts = Attempts(source, workers_of(source))
    late = set()
    for epoch, wanted in enumerate(source.expected()):
        for _ in range(2):
            found, answer = attempts.answer(epoch, attempts.write(epoch))
            same_pairs(found, wanted)
        late |= {("lr".index(letter), n) for letter, rows in answer.late
                 for n in rows.column("id").to_pylist()}
        report = answer.report
        assert (report["tuples_left"], report["tuples_right"]) == SPLITS[epoch]
        assert report["pairs"] == len(wanted) and report["replayed"] == 0
    assert late == source.late()
    assert attempts.ran_ahead == sum(1 for split in SPLITS[1:] if sum(split) >= FEW)


def test_a_head_start_of_an_attempt_that_failed_is_undone(tmp_path, workers_of):
    """The attempt after it writes the same rows into another file."""
    source = Source(tmp_path, streams(), SPLITS, "3 s", time="t")
    attempts = Attempts(source, workers_of(source))
    for epoch, wanted in enumerate(source.expected()):
        attempts.write(epoch, "failed", until=1)
        begun = attempts.is_ahead()
        found, answer = attempts.answer(epoch, attempts.write(epoch, "again"))
        same_pairs(found, wanted)
        assert (answer.report["replayed"] > 0) == begun
    assert attempts.ran_ahead


def test_a_head_start_on_what_another_was_faster_with_is_undone(tmp_path, workers_of):
    """Two machines with a worker each; what counts is the manifest."""
    source = Source(tmp_path, streams(), SPLITS, "none")
    attempts, other = Attempts(source, workers_of(source)), workers_of(source)
    for epoch, wanted in enumerate(source.expected()):
        parts = attempts.write(epoch)
        same_pairs(other.run(epoch), wanted)
        found, answer = attempts.answer(epoch, parts)
        same_pairs(found, wanted)
        assert answer.report["pairs"] == len(wanted)
    assert attempts.ran_ahead


def test_a_head_start_that_fails_leaves_the_epoch_as_it_was(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    expected = source.expected()
    same_pairs(workers.run(0), expected[0])
    (source.directory / "spool" / "1").mkdir()
    (source.directory / "spool" / "1" / ".cut off").write_bytes(bytes(100))
    workers.held[0].run_ahead(source.job(1, parts=()), ".gone", [(0, 64, 100)])
    assert workers.held[0].epoch == 0
    workers.held[0].run_ahead(source.job(1, parts=()), ".cut off", [(0, 64, 100)])
    workers.held[0]._thread.submit(int).result()  # before the command, which it would wait for
    batches, answer = workers.answer(1, 0)
    same_pairs(pairs_of(batches), expected[1])
    assert answer.report["recovered"]


@pytest.mark.parametrize("options", [
    {"window": "rows 9"}, {"window": "none", "order": "strict"},
    {"window": "none", "emit": "counts"},
], ids=str)
def test_where_the_order_of_arrival_counts_nothing_runs_ahead(tmp_path, workers_of, options):
    source = Source(tmp_path, streams(), SPLITS, **options)
    attempts = Attempts(source, workers_of(source))
    for epoch in range(len(SPLITS)):
        attempts.answer(epoch, attempts.write(epoch))
    assert attempts.ran_ahead == 0


@pytest.mark.parametrize(("name", "messages", "sentence"), [
    ("part.arrow", [], "'part.arrow' is no part that is being written"),
    ("./../../secret", [], "'./../../secret' is no part that is being written"),
    (None, [], "None is no part that is being written"),
    (".part", [[0, 1]], "'.part' does not have messages, as a side, a place and a size each"),
    (".part", [[2, 1, 1]], "'.part' does not have messages, as a side, a place and a size each"),
    (".part", [[0, -1, 1]], "'.part' does not have messages, as a side, a place and a size each"),
    (".part", 7, "'.part' does not have messages, as a side, a place and a size each"),
])
def test_nonsense_about_a_part_is_refused(name, messages, sentence):
    with pytest.raises(OptionError, match=exactly(sentence)):
        check_messages(name, messages)


def test_a_daemon_gives_a_head_start(shared_daemon, tmp_path):
    source = Source(tmp_path, streams(), SPLITS, "none")
    client = shared_daemon.client()
    for epoch, wanted in enumerate(source.expected()):
        rows = [(side, batch) for side in Side for batch in source.tables[side].slice(
            source.first(epoch)[side], SPLITS[epoch][side]).to_batches(max_chunksize=3)]
        job = source.job(epoch, parts=())
        part = write_part(source.directory, epoch, "a", rows,
                          lambda name, messages, job=job: client.run_ahead(job, name, messages),
                          FEW)
        same_pairs(pairs_of(client.run(source.job(epoch, parts=(part,)))), wanted)
        assert client.report["replayed"] == 0
