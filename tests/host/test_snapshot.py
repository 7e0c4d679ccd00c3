"""A join on disk: resumed at any point, it goes on as if nothing had been."""

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import host
from host.errors import JoinError, OptionError, SnapshotError
from hw.spec.tuples import Side
from tests.helpers import exactly, in_splits, join_of, pairs_of, share, stream

NEAR = "l.a BETWEEN r.b - 1 AND r.b + 1"
RESIDUAL = f"{NEAR} AND l.s <> r.s"
SETTINGS = {
    "rows": ("rows 5,7", NEAR, {}),
    "residual": ("rows 6", RESIDUAL, {}),
    "time": ("3 s", NEAR, {"time": "t"}),
    "late": ("-2 s..3 s", NEAR, {"time": "t", "lateness": "2 s", "late": "keep"}),
    "none": ("none", NEAR, {"order": "strict"}),
    "counts": ("rows 4", NEAR, {"emit": "counts"}),
    "arrival": ("rows 5", NEAR, {"arrival": "place"}),
    "arrival times": ("rows 5", NEAR, {"arrival": "t2"}),
    "linger": ("rows 5", NEAR, {"linger": 3600, "batch": 4}),
}
ENGINES = [{}, {"workers": 3, "batch": 2}, {"subwindow": 1, "linger": 0.0}]


@pytest.fixture(autouse=True, scope="module")
def without_waiting_for_the_disk():
    """What is on the disk after a power cut is not asked here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("host.snapshot.os.fsync", lambda number: None)
        yield


def streams(rows=(17, 19)):
    random = np.random.default_rng(7)
    sides = random.permutation([0] * rows[0] + [1] * rows[1])
    tables = []
    for side, name in zip(Side, "ab", strict=True):
        numbers = [None if n == 6 else int(n) for n in random.integers(0, 7, rows[side])]
        micros = (np.arange(rows[side]) // 2 + random.integers(-3, 1, rows[side])) * 1_000_000
        place = np.flatnonzero(sides == side)
        tables.append(
            stream(
                **{name: pa.array(numbers, pa.int32())},
                s=pa.array([None if n is None else "xyz"[n % 3] for n in numbers]),
                t=pa.array(micros, pa.timestamp("us")),
                place=pa.array(place, pa.int64()),
                t2=pa.array(place * 1_000_000, pa.timestamp("us")),
            )
        )
    return tables


def parts(left, right, splits):
    done = [0, 0]
    for split in splits:
        yield [t.slice(done[s], split[s]) for s, t in zip(Side, (left, right), strict=True)]
        done = [done[side] + split[side] for side in Side]


def state(join):
    """What a join has counted, without the times."""
    metrics = join.metrics
    return metrics.tuples, metrics.late, metrics.pairs


def late_rows(join):
    return [(side, number) for side, numbers, _ in join.take_late() for number in numbers.tolist()]


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("engine", ENGINES, ids=str)
def test_resumed_at_every_point_the_rest_is_the_same(tmp_path, setting, engine):
    window, on, options = SETTINGS[setting]
    left, right = streams()
    pushes = list(parts(left, right, in_splits(17, 19, [(4, 0), (4, 3), (0, 6)])))
    first = {"subwindow": 3, "batch": 5} | options
    with join_of(on, window, left, right, **first) as join:
        results = []
        for number, push in enumerate(pushes):
            join.snapshot(str(tmp_path / str(number)))
            results.append((pairs_of(join.push(*push)), late_rows(join)))
        join.snapshot(str(tmp_path / str(len(pushes))))
        results.append((pairs_of(join.finish()), late_rows(join)))
        wanted = state(join)
    for number in range(len(pushes) + 1):
        changed = {name: value for name, value in engine.items()
                   if not (setting == "linger" and name in ("linger", "batch"))}
        with host.StreamJoin.resume(str(tmp_path / str(number)), **changed) as join:
            again = []
            for push in pushes[number:]:
                again.append((pairs_of(join.push(*push)), late_rows(join)))
            again.append((pairs_of(join.finish()), late_rows(join)))
            assert state(join) == wanted
        if options.get("order") == "strict" or options.get("emit") == "counts":
            assert again == results[number:]
        # The same pairs with the same push, whatever the engine.
        tidy = [[(sorted(pairs), late) for pairs, late in some] for some in (again, results)]
        assert tidy[0] == tidy[1][number:]


@share(3)
@given(st.data())
def test_any_number_of_snapshots_changes_nothing(data):
    window, on, options = SETTINGS[data.draw(st.sampled_from(sorted(SETTINGS)))]
    left, right = streams((9, 8))
    sizes = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), min_size=1,
                               max_size=3))
    pushes = list(parts(left, right, in_splits(9, 8, [*sizes, (1, 0)])))
    with join_of(on, window, left, right, **options) as join:
        wanted = [pair for push in pushes for pair in pairs_of(join.push(*push))]
        wanted += pairs_of(join.finish())
    found, place = [], Path(tempfile.mkdtemp())
    try:
        join = join_of(on, window, left, right, subwindow=2, **options)
        for number, push in enumerate(pushes):
            found += pairs_of(join.push(*push))
            if data.draw(st.booleans(), label="snapshot"):
                with join:
                    join.snapshot(str(place / str(number)))
                workers = data.draw(st.sampled_from([1, 2]))
                join = host.StreamJoin.resume(str(place / str(number)), workers=workers)
        with join:
            found += pairs_of(join.finish())
    finally:
        shutil.rmtree(place)
    assert sorted(found) == sorted(wanted)


@pytest.fixture
def saved(tmp_path):
    """A snapshot of a join with rows in every place."""
    left, right = streams()
    target = tmp_path / "saved"
    with join_of(NEAR, "3 s", left, right, time="t", lateness="1 s", subwindow=4) as join:
        list(join.push(left.slice(0, 9), right.slice(0, 9)))
        join.snapshot(str(target))
    return target


def test_a_snapshot_holds_arrow_files_and_one_manifest(saved):
    endings = {path.suffix for path in saved.iterdir()}
    assert endings == {".arrow", ".json"}
    for path in saved.glob("*.arrow"):
        pa.ipc.open_file(pa.OSFile(str(path))).read_all()


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "empty"])
def test_a_damaged_file_is_refused_by_its_name(saved, damage):
    for path in sorted(saved.iterdir()):
        data = path.read_bytes()
        if damage == "flip":
            middle = len(data) // 2
            path.write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
        elif damage == "cut":
            path.write_bytes(data[:-3])
        elif damage == "empty":
            path.write_bytes(b"")
        else:
            path.unlink()
        with pytest.raises(SnapshotError, match=path.name):
            host.StreamJoin.resume(str(saved))
        path.write_bytes(data)
    host.StreamJoin.resume(str(saved)).close()


def test_another_version_is_refused(saved):
    path = saved / "manifest.json"
    _, _, body = path.read_text().partition("\n")
    manifest = json.loads(body)
    manifest["version"] += 1
    from host import snapshot

    body = json.dumps(manifest)
    seal = snapshot.hashlib.sha256(body.encode()).hexdigest()
    path.write_text(f"{seal}\n{body}\n")
    message = (
        f"the snapshot {saved} has version {snapshot.VERSION + 1}, "
        f"this is version {snapshot.VERSION}"
    )
    with pytest.raises(SnapshotError, match=exactly(message)):
        host.StreamJoin.resume(str(saved))


def test_what_is_no_snapshot_is_refused(tmp_path):
    message = f"{tmp_path} holds no snapshot: manifest.json cannot be read"
    with pytest.raises(SnapshotError, match=exactly(message)):
        host.StreamJoin.resume(str(tmp_path))
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe\x80\x04pickle")
    with pytest.raises(SnapshotError):
        host.StreamJoin.resume(str(tmp_path))


def test_what_a_join_means_cannot_be_changed(saved):
    message = (
        "a resumed join keeps its 'window': only backend, device, index, params, batch, linger, "
        "workers, late, subwindow can be changed"
    )
    with pytest.raises(SnapshotError, match=exactly(message)):
        host.StreamJoin.resume(str(saved), window="rows 5")


def test_an_unusable_engine_option_is_refused_on_resuming(saved):
    message = "workers must be a whole number from 1 on, not 0"
    with pytest.raises(OptionError, match=exactly(message)):
        host.StreamJoin.resume(str(saved), workers=0)


def test_a_snapshot_overwrites_nothing(saved):
    left, right = streams()
    before = {path.name: path.read_bytes() for path in saved.iterdir()}
    with join_of(NEAR, "none", left, right) as join:
        message = f"{saved} exists already: a snapshot needs a new directory"
        with pytest.raises(SnapshotError, match=exactly(message)):
            join.snapshot(str(saved))
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_a_snapshot_that_cannot_be_written_leaves_nothing(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    left, right = streams()
    with join_of(NEAR, "none", left, right) as join:
        list(join.push(left, right))
        with pytest.raises(SnapshotError, match="cannot be written: Not a directory"):
            join.snapshot(str(blocked / "saved"))
        assert [path.name for path in tmp_path.iterdir()] == ["file"]
        join.snapshot(str(tmp_path / "saved"))


def test_no_snapshot_of_a_join_that_is_being_read(tmp_path):
    left, right = stream(a=[1] * 2_000), stream(b=[1] * 2_000)
    with join_of("l.a = r.b", "none", left, right) as join:
        next(join.push(left, right))
        message = "read the results of the last push to their end before a snapshot"
        with pytest.raises(JoinError, match=exactly(message)):
            join.snapshot(str(tmp_path / "saved"))


def test_no_snapshot_of_a_finished_join(tmp_path):
    left, right = streams()
    with join_of(NEAR, "none", left, right) as join:
        list(join.finish())
        with pytest.raises(JoinError, match=exactly("this join is finished: begin another one")):
            join.snapshot(str(tmp_path / "saved"))


def test_watermarks_and_promises_survive(tmp_path):
    times = pa.array([10_000_000, 3_000_000], pa.timestamp("us"))
    left, right = stream(a=[1, 1], t=times), stream(b=[1, 1], t=times)
    with join_of("l.a = r.b", "5 s", left, right, time="t", lateness="2 s") as join:
        list(join.push(left=left.slice(0, 1)))
        join.advance(right=4_000_000)
        join.snapshot(str(tmp_path / "saved"))
    with host.StreamJoin.resume(str(tmp_path / "saved")) as join:
        assert pairs_of(join.push(left.slice(1), right)) == [(0, 0)]
        assert join.metrics.late == [1, 1]


def test_what_was_pushed_and_not_read_survives(tmp_path):
    left, right = streams()
    with join_of(NEAR, "rows 9", left, right, batch=4) as join:
        join.push(left, right)
        join.snapshot(str(tmp_path / "saved"))
        wanted = pairs_of(join.finish())
    with host.StreamJoin.resume(str(tmp_path / "saved")) as join:
        assert sorted(pairs_of(join.finish())) == sorted(wanted)
        assert join.metrics.tuples == [17, 19]


def test_late_tuples_that_were_not_taken_survive(tmp_path):
    left = stream(a=pa.array([1, 1, 1]), t=pa.array([9, 1, 9], pa.timestamp("s")))
    options = {"time": "t", "lateness": "2 s", "late": "keep"}
    with join_of("l.a = r.a", "3 s", left, left, **options) as join:
        list(join.push(left))
        join.snapshot(str(tmp_path / "here"))
    with host.StreamJoin.resume(str(tmp_path / "here")) as join:
        [(side, numbers, rows)] = join.take_late()
        assert (side, list(numbers), rows.column("id").to_pylist()) == ("l", [1], [1])
        assert join.take_late() == []


def test_aggregates_survive(tmp_path):
    left, right = (stream(a=pa.array([1, 2, 1]), v=pa.array([3, 4, 5])) for _ in range(2))
    options = {"emit": "aggregate", "aggregates": {"s": "sum(l.v)"}, "backend": "numpy"}
    with join_of("l.a = r.a", "none", left, right, **options) as join:
        list(join.push(left))
        join.snapshot(str(tmp_path / "here"))
    with host.StreamJoin.resume(str(tmp_path / "here")) as join:
        found = [row for batch in join.push(None, right) for row in batch.column("s").to_pylist()]
    assert found == [8, 4, 8]
