"""A worker's epochs: whatever is repeated, lost or shared, each pair comes once."""

import itertools
import os
import tempfile
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.errors import EpochError, EvaluationError, JoinError, OptionError, StateError
from host.partials import combine, partial_schema
from host.service.answer import Answer
from host.service.daemon import Daemon
from host.service.held_join import HeldJoin
from host.service.log import EpochLog
from host.service.places import Place
from host.spool import Part
from hw.spec.tuples import Side
from hw.spec.windows import RowWindow
from tests.helpers import exactly, in_splits, join_of, pairs_of, push_all, same_pairs, share
from tests.service.micro_batches import Source, streams
from tests.service.workers import Workers

pytestmark = pytest.mark.usefixtures("without_fsync")

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


@pytest.mark.parametrize(
    ("window", "routing", "count"),
    [("rows", *routing) for routing in ROUTINGS]
    + [("late", *routing) for routing in ROUTINGS[::2]]
    + [(window, *routing) for window in ("short rows", "time", "none")
       for routing in ROUTINGS[::4]],
)
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
        if dying:
            same_pairs(workers.run(epoch), wanted)  # of these, some from the log
    assert sum(map(len, source.expected())) > 20


@share(1)
@given(st.data())
def test_any_schedule_of_any_join_gives_each_pair_once(data):
    """Micro-batches of any sizes; workers that are asked twice, not at all, or lose their life."""
    text, options = WINDOWS[data.draw(st.sampled_from(sorted(WINDOWS)))]
    routing, count = data.draw(st.sampled_from(ROUTINGS))
    rows = data.draw(st.tuples(st.integers(0, 9), st.integers(0, 9)))
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1,
                               max_size=4))
    splits = in_splits(*rows, [*sizes, (1, 1)])
    with tempfile.TemporaryDirectory() as state_dir:
        seed = data.draw(st.integers(0, 99))
        source = Source(state_dir, streams(rows, seed), splits, text, **options)
        workers = Workers(source, routing, count)
        for epoch, wanted in enumerate(source.expected()):
            schedule = data.draw(st.lists(st.tuples(st.integers(0, count - 1), st.booleans()),
                                          max_size=3))
            for worker, dies in schedule:  # `take` asks some of the workers, retries ask again
                found = workers.rows(epoch, worker)
                assert set(found) <= set(wanted)
                if dies:
                    workers.crash(worker)
            if schedule and data.draw(st.booleans()):
                continue  # the query was stopped here, or had enough
            same_pairs(workers.run(epoch), wanted)
        workers.close()


def test_an_answer_that_does_not_fit_in_memory_is_kept_in_a_file(
    tmp_path, workers_of, monkeypatch
):
    source = Source(tmp_path, streams(), [(40, 44)], "none")
    monkeypatch.setattr("host.service.answer.MEMORY_BYTES", 1000)
    workers = workers_of(source)
    for _ in range(2):
        same_pairs(workers.run(0), source.expected()[0])
    assert workers.held[0].run(workers.job(0, 0))._spilled > 1000


def test_who_waits_for_an_answer_hears_of_it():
    answer = Answer(0)
    messages = answer.messages(patience_s=0.001)
    assert [next(messages), next(messages)] == [None, None]
    rows = pa.record_batch({"a": [1]})
    answer.add(rows)
    assert next(messages) is None
    answer.open()
    assert next(messages) == rows.serialize()
    answer.fail(StateError("no more"))
    with pytest.raises(StateError, match=exactly("no more")):
        next(messages)


def test_of_an_answer_that_failed_before_it_was_open_nothing_is_seen():
    answer = Answer(0)
    answer.add(pa.record_batch({"a": [1]}))
    answer.fail(StateError("no more"))
    with pytest.raises(StateError, match=exactly("no more")):
        next(answer.messages())


def test_rows_that_another_settles_differently_meanwhile_are_taken_back(tmp_path, workers_of):
    """Two machines; the second one's manifest comes while the first one joins."""
    tables = streams()
    first, second = (Source(tmp_path, tables, SPLITS, "none", run=run) for run in "ab")
    mine, other, expected, raced = workers_of(first), workers_of(second), first.expected(), []
    settle = EpochLog.settle

    def lose(log, epoch, *more):
        if len(raced) == epoch:
            raced.append(epoch)
            same_pairs(other.run(epoch), expected[epoch])
        return settle(log, epoch, *more)

    mine.held[0] = HeldJoin(first.job(0), mine.engine)
    mine.held[0]._log.settle = partial(lose, mine.held[0]._log)
    for epoch, wanted in enumerate(expected):
        batches, answer = mine.answer(epoch, 0)
        same_pairs(pairs_of(batches), wanted)
        assert answer.report["pairs"] == len(wanted)
        assert answer.report["replayed"] == (epoch if sum(SPLITS[epoch]) else 0)
    assert raced == [*range(len(SPLITS))]


def test_windows_that_nobody_asks_for_are_let_go_and_come_back(tmp_path, monkeypatch):
    source = Source(tmp_path, streams(), SPLITS, "none")
    place = Place.of(str(tmp_path / "run"), "numpy", None)
    daemon = Daemon(place, {"backend": "numpy"})
    try:
        for epoch in range(3):
            answer = daemon._begun(source.job(epoch))
            assert sum(1 for _ in answer.messages()) > 0 or not source.expected()[epoch]
            assert answer.report["recovered"] == (epoch > 0)
            daemon._forget_unused()
            assert len(daemon._joins) == 1
            monkeypatch.setattr("host.service.daemon._FORGET_S", -1.0)
            daemon._forget_unused()
            assert len(daemon._joins) == 0
            monkeypatch.undo()
    finally:
        daemon.close()


def test_two_inequalities_are_shared(tmp_path, workers_of):
    on = "l.a < r.b AND l.k > r.k"
    source = Source(tmp_path, streams(), SPLITS, "rows 12", on=on)
    workers = workers_of(source, "round robin", 3)
    for epoch, wanted in enumerate(
        source.expected(lambda a, b, k, q: None if None in (a, b) else a < b and k > q)
    ):
        same_pairs(workers.run(epoch), wanted)


AGGREGATES = {"n": "count(*)", "known": "count(r.b)", "total": "sum(r.b)", "least": "min(l.t)",
              "most": "max(r.b)", "mean": "avg(r.b)"}


@pytest.mark.parametrize("routing", ["random", "hash"])
@pytest.mark.parametrize("options", [{"emit": "counts"},
                                     {"emit": "aggregate", "aggregates": AGGREGATES}], ids=str)
def test_parts_of_several_workers_make_the_rows_of_one(tmp_path, workers_of, routing, options):
    tables = streams()
    source = Source(tmp_path, tables, SPLITS, "rows 9,7", **options)
    on = source.options.on
    with join_of(on, "rows 9,7", *tables, select=None, **options) as join:
        wanted = pairs_of(push_all(join, *tables, SPLITS))
    workers = workers_of(source, routing, 3)
    found = []
    for epoch in range(len(SPLITS)):
        batches = [batch for worker in range(3) for batch in workers.answer(epoch, worker)[0]]
        workers.crash(epoch % 3)
        parts = pa.Table.from_batches(batches, partial_schema(source.options))
        assert parts.num_rows < 3 * sum(SPLITS[epoch]) or not parts.num_rows
        found += pairs_of([combine(source.options, parts)])
    assert sorted(found) == sorted(wanted)
    assert any(row[2] > 1 for row in wanted)


def test_a_sum_of_parts_that_64_bits_do_not_hold_is_refused(tmp_path):
    options = {"emit": "aggregate", "aggregates": {"total": "sum(r.k)"}}
    made = Source(tmp_path, streams(), SPLITS, "none", **options).options
    parts = pa.table([["l", "l"], [0, 0], [1, 1], [1, 1], [1 << 62, 1 << 62]],
                     schema=partial_schema(made))
    sentence = "a sum over r.k does not fit in 64 bits: cast its column to double"
    with pytest.raises(EvaluationError, match=exactly(sentence)):
        combine(made, parts)


def test_a_share_is_replayed_and_not_snapshot(tmp_path):
    left, right = streams()
    with join_of("l.a = r.b", "none", left, right, share=("random", 0, 2), batch=4) as join:
        sentence = "a share of a join has no snapshots: replay to it what was pushed"
        with pytest.raises(JoinError, match=exactly(sentence)):
            join.snapshot(str(tmp_path / "snapshot"))
        results = join.push(left, right)
        next(results)
        sentence = "read the results of the last push before tuples are replayed"
        with pytest.raises(JoinError, match=exactly(sentence)):
            join.replay(left, right)


def test_late_rows_and_counts_of_all_come_from_the_first_worker(tmp_path, workers_of):
    text, options = WINDOWS["late"]
    source = Source(tmp_path, streams(), SPLITS, text, **options)
    workers = workers_of(source, "round robin", 2)
    late, pairs = set(), 0
    for epoch in range(len(SPLITS)):
        answers = [workers.answer(epoch, worker)[1] for worker in range(2)]
        late |= {("lr".index(letter), n) for letter, rows in answers[0].late
                 for n in rows.column("id").to_pylist()}
        assert answers[1].late == []
        reports = [answer.report for answer in answers]
        assert [report["tuples_left"] for report in reports] == [SPLITS[epoch][0], 0]
        assert [report["late_right"] for report in reports][1] == 0
        pairs += sum(report["pairs"] for report in reports)
    assert late == source.late() and late
    assert pairs == sum(map(len, source.expected()))


def test_nobody_sees_a_pair_before_its_rows_are_on_the_disk(tmp_path, workers_of, monkeypatch):
    """The part, its name, its epoch's name; then the manifest, then its name; then a result."""
    synced = []

    def fsync(number):
        synced.append(os.readlink(f"/proc/self/fd/{number}"))

    monkeypatch.setattr("os.fsync", fsync)
    source = Source(tmp_path, streams(), SPLITS, "none", run="a")
    epoch = next(n for n, pairs in enumerate(source.expected()) if n and pairs)
    workers = workers_of(source)
    for before in range(epoch):
        workers.run(before)
    for attempt in range(2):
        synced.clear()
        job = workers.job(epoch, 0)  # writes the parts, or finds them
        names = [source.directory / "spool" / str(epoch), source.directory / "spool"]
        assert synced[-2:] == [str(name) for name in names]
        assert attempt or synced[-3].startswith(str(names[0] / "."))
    synced.clear()
    assert next(workers.held[0].run(job).messages()) is not None
    assert synced[0].startswith(str(source.directory / "epochs" / f".{epoch}.json-"))
    assert synced[1] == str(source.directory / "epochs")


# The order of epochs.


def test_a_worker_that_was_not_asked_heals_from_the_log(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "rows 9,7")
    workers = workers_of(source, "round robin", 2)
    expected = source.expected()
    for epoch in range(4):
        workers.rows(epoch, 0)
    same_pairs(workers.run(4), expected[4])
    answer = workers.answer(4, 1)[1]
    assert answer.report["recovered"] and answer.report["replayed"] <= 4


@pytest.mark.parametrize("window", ["rows", "late"])
def test_a_worker_that_was_left_behind_by_what_expired_heals_from_what_is_left(
    tmp_path, workers_of, window
):
    """It has windows of its own, and the epochs right after them are no longer there."""
    text, options = WINDOWS[window]
    splits = in_splits(40, 44, [(5, 6)])
    source = Source(tmp_path, streams(), splits, text, **options)
    workers = workers_of(source, "round robin", 2)
    expected, last = source.expected(), len(splits) - 2
    same_pairs(workers.run(0), expected[0])
    for epoch in range(1, last):
        workers.rows(epoch, 0)
    workers.rest()
    assert not EpochLog(source.directory, source.options).has(1)
    same_pairs(workers.run(last), expected[last])
    assert workers.answer(last, 1)[1].report["replayed"] < last
    same_pairs(workers.run(last + 1), expected[last + 1])


def test_an_epoch_that_has_passed_is_refused(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    for epoch in range(3):
        workers.run(epoch)
    passed = f"epoch 1 of {source.directory} has passed: epoch 2 was begun"
    with pytest.raises(EpochError, match=exactly(passed)):
        workers.run(1)
    batches, answer = workers.answer(2, 0)  # nothing was spoilt
    same_pairs(pairs_of(batches), source.expected()[2])
    assert not answer.report["recovered"]
    workers.crash(0)
    with pytest.raises(EpochError, match=exactly(passed)):
        workers.run(1)
    same_pairs(workers.run(3), source.expected()[3])


def test_an_epoch_before_which_others_are_missing_is_refused(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    workers.run(0)
    gap = f"epoch 3 of {source.directory} cannot be run: the state of epoch 2 is not there"
    with pytest.raises(EpochError, match=exactly(gap)):
        workers.run(3)
    same_pairs(workers.run(1), source.expected()[1])


def test_a_join_that_changed_within_its_query_is_told_so(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers_of(source).run(0)
    other = Source(tmp_path, streams(), SPLITS, "rows 4", join="changed")
    gap = (
        f"epoch 1 of {other.directory} cannot be run: the state of epoch 0 is not there; "
        f"the join of the query in {source.directory} has another window, 'none' and not 'rows 4'"
    )
    with pytest.raises(EpochError, match=exactly(gap)):
        workers_of(other).run(1)


@pytest.mark.parametrize("window", ["rows", "late"])
def test_twins_on_two_machines_agree(tmp_path, workers_of, window):
    """Two daemons with one state: whoever is first, and whatever each was told."""
    text, options = WINDOWS[window]
    source = Source(tmp_path, streams(), SPLITS, text, **options)
    machines = [workers_of(source), workers_of(source)]
    for epoch, wanted in enumerate(source.expected()):
        for turn in ((0, 1), (1, 0), (0,), (1,))[epoch % 4]:
            source.run = f"told{turn}"
            same_pairs(machines[turn].run(epoch), wanted)


def test_a_twin_that_deletes_meanwhile_is_no_error(tmp_path, workers_of, monkeypatch):
    source = Source(tmp_path, streams(), [(9, 9)] * 4, "rows 9")
    first, second = workers_of(source), workers_of(source)
    for epoch in range(3):
        first.run(epoch)
    read = EpochLog.manifest

    def late(log, epoch):
        """What the second one was about to read is deleted by the first one."""
        if epoch == 1:
            monkeypatch.setattr(EpochLog, "manifest", read)
            first.run(3)
        return read(log, epoch)

    monkeypatch.setattr(EpochLog, "manifest", late)
    same_pairs(second.run(3), source.expected()[3])
    assert not (source.directory / "epochs" / "1.json").exists()


def test_what_an_epoch_is_made_of_is_fixed_by_the_first_command(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "rows 9,7")
    workers = workers_of(source, "round robin", 2)
    expected = source.expected()
    for epoch in range(3):
        first = workers.rows(epoch, 0)
        source.run = f"again{epoch}"  # a restarted driver with other partitions
        parts = source.parts(epoch, count=5)[::-1]
        same_pairs(first + workers.rows(epoch, 1, parts=parts), expected[epoch])


def still_seen(source, epoch):
    """The rows that came before an epoch and that a tuple in it may see, as (side, row)."""
    window, before = source.options.parsed_window, source.first(epoch)
    rows = [(side, row) for side in Side for row in range(before[side])]
    if isinstance(window, RowWindow):
        return [(side, row) for side, row in rows if row >= before[side] - window.rows(side)]
    times = source._times()
    newest = [max((t for t in times[side][: before[side]] if t is not None), default=None)
              for side in Side]
    if None in newest:
        return rows
    watermark = min(newest) - source.options.lateness_us
    # Of a later tuple of the other stream, the earliest that is not late.
    reach = {Side.LEFT: watermark - window.hi_us, Side.RIGHT: watermark + window.lo_us}
    return [(side, row) for side, row in rows
            if times[side][row] is not None and times[side][row] >= reach[side]]


@pytest.mark.parametrize(
    ("splits", "window"), [(SPLITS, "rows"), ([(3, 3)] * 13, "seven rows"), (SPLITS, "late")]
)
def test_files_go_when_nothing_needs_them_and_a_later_epoch_began(
    tmp_path, workers_of, splits, window
):
    text, options = (WINDOWS | {"seven rows": ("rows 7", {})})[window]
    source = Source(tmp_path, streams(), splits, text, **options)
    workers = workers_of(source)
    gone = 0
    for epoch in range(len(splits)):
        workers.run(epoch)
        workers.rest()
        kept = sorted(int(path.stem) for path in (source.directory / "epochs").iterdir())
        needed = [next(e for e in range(epoch) if row < source.first(e + 1)[side])
                  for side, row in still_seen(source, epoch)]
        assert kept == list(range(min(needed, default=epoch), epoch + 1))
        gone = kept[0]
        spooled = {int(path.name) for path in (source.directory / "spool").iterdir()}
        assert spooled <= set(kept)
    assert gone > 1


def test_discarded_rows_leave_only_the_last(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    for epoch in range(3):
        batches, answer = workers.answer(epoch, 0, discard=True)
        assert batches == [] and answer.report["tuples_right"] == SPLITS[epoch][1]
    workers.rest()
    assert [path.name for path in (source.directory / "spool").iterdir()] == ["2"]


# Files that are not what they were.


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-40])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


DAMAGED = "the state file {} is damaged: its bytes do not have their checksum"


@pytest.mark.parametrize(
    ("file", "damage", "sentence"),
    [
        ("spool/1/a-0.arrow", cut_off, DAMAGED),
        ("spool/1/a-1.arrow", flip_a_bit, DAMAGED),
        ("spool/1/a-0.arrow", lambda path: path.write_bytes(b""),
         "the state file {} is damaged: its bytes do not have their checksum"),
        ("spool/1/a-0.arrow", lambda path: path.unlink(),
         "the state file {} is missing: put it back"),
        ("spool/1/a-0.arrow", lambda path: path.write_bytes(
            path.with_name("a-1.arrow").read_bytes()),
         "the state file {} is not the one that epoch 1 was made of: put that back"),
        ("epochs/1.json", flip_a_bit, DAMAGED),
        ("epochs/1.json", lambda path: path.unlink(),
         "the state file {} is missing: put it back"),
        ("plan.json", flip_a_bit, DAMAGED),
    ],
)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, workers_of, file, damage, sentence):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    for epoch in range(3):
        workers.run(epoch)
    workers.crash(0)
    path = source.directory / file
    whole = path.read_bytes()
    damage(path)
    for _ in range(2):
        with pytest.raises(StateError, match=exactly(sentence.format(path))):
            workers.run(3)
    path.write_bytes(whole)
    same_pairs(workers.run(3), source.expected()[3])


def test_another_join_in_the_same_place_is_refused(tmp_path, workers_of):
    workers_of(Source(tmp_path, streams(), SPLITS, "rows 9,7")).run(0)
    other = Source(tmp_path, streams(), SPLITS, "rows 9,8")
    with pytest.raises(
        StateError,
        match=exactly(
            f"the join in {other.directory} has another window, 'rows 9,7' and not 'rows 9,8': "
            "give a changed join another state_dir"
        ),
    ):
        workers_of(other).run(0)


def test_another_join_that_looks_the_same_is_refused_unless_its_rows_are(tmp_path, workers_of):
    """Two calls of one query; what an earlier start of the query was told is its own affair."""
    tables = streams()
    source = Source(tmp_path, tables, SPLITS, "none")
    other = Source(tmp_path, [tables[0].slice(1), tables[1]], SPLITS, "none", run="b")
    first, second = workers_of(source), workers_of(other)
    same_pairs(first.rows(0, run="1"), source.expected()[0])
    sentence = (
        f"epoch 0 of {source.directory} was begun with other rows by a join that looks the same: "
        "give the functions in the inputs of the two different names"
    )
    for workers in (second, first):
        with pytest.raises(StateError, match=exactly(sentence)):
            workers.rows(0, run="1", parts=other.parts(0))
    same_pairs(second.rows(0, run="2"), source.expected()[0])
    source.run = "c"
    same_pairs(workers_of(source).rows(0, run="1"), source.expected()[0])


def test_an_engine_workers_and_routing_may_change_with_a_restart(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "rows 9,7")
    expected = source.expected()
    lives = [("round robin", 1, {}), ("hash", 3, {"backend": "opencl"}), ("random", 2, {})]
    for epoch, (routing, count, engine) in enumerate(lives):
        workers = workers_of(source, routing, count, engine)
        same_pairs(workers.run(epoch), expected[epoch])


@pytest.mark.parametrize(
    ("routing", "on", "sentence"),
    [
        ("robin", "l.a = r.b",
         "routing must be round robin, random, hash or contrand:<subgroups>, not 'robin'"),
        ("contrand", "l.a = r.b",
         "routing must be round robin, random, hash or contrand:<subgroups>, not 'contrand'"),
        ("contrand:4", "l.a = r.b", "routing 'contrand:4' must have from 1 to 3 subgroups, "
         "as many as there are workers"),
        ("hash", "l.a < r.b", "routing 'hash' needs an equality between the streams, and the "
         "condition 'l.a < r.b' has none: use round robin"),
    ],
)
def test_a_routing_that_cannot_be_is_refused(tmp_path, workers_of, routing, on, sentence):
    workers = workers_of(Source(tmp_path, streams(), SPLITS, "none", on=on), routing, 3)
    with pytest.raises(OptionError, match=exactly(sentence)):
        workers.run(0)


def test_a_failed_epoch_is_rolled_back(tmp_path, workers_of):
    source = Source(tmp_path, streams(), SPLITS, "none")
    workers = workers_of(source)
    workers.run(0)
    missing = Part("a-9", 1, 0, 200, "0" * 32)
    path = source.directory / "spool" / "1" / "a-9.arrow"
    gone = f"the state file {path} is missing: put it back"
    with pytest.raises(StateError, match=exactly(gone)):
        workers.rows(1, parts=(missing,))
    same_pairs(workers.run(1), source.expected()[1])
    assert workers.answer(1, 0)[1].report["recovered"]


@pytest.mark.parametrize(("said", "rows"), [({}, 65_536), ({"batch": 32}, 32)])
def test_rows_are_joined_at_once_as_the_job_says_or_else_the_daemon(tmp_path, said, rows):
    source = Source(tmp_path, streams(), SPLITS, "none", **said)
    join = HeldJoin(source.job(0), {"backend": "numpy", "batch": 65_536})
    assert join._options.batch == rows
    join.close()
