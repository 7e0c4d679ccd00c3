"""Parts on disk: whole or not there, and the first one stays."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from host.errors import OptionError, StateError
from host.options import JoinOptions
from host.options_json import from_plain, to_plain
from host.spool import Part, messages_of, read_part, write_part
from hw.spec.tuples import Side
from tests.helpers import exactly
from tests.service.micro_batches import streams


def batches(left, right):
    """Both streams in turn, a few rows at a time."""
    for start in range(0, 60, 7):
        for side, table in zip(Side, (left, right), strict=True):
            for batch in table.slice(start, 7).combine_chunks().to_batches():
                yield side, batch


def test_rows_come_back_as_they_were_and_unmoved(tmp_path):
    tables = streams()
    part = write_part(tmp_path, 3, "a-0", batches(*tables))
    assert part.rows == (40, 44)
    assert part.bytes == (tmp_path / "spool" / "3" / "a-0.arrow").stat().st_size
    before = pa.total_allocated_bytes()
    sides = read_part(tmp_path, 3, part)
    assert pa.total_allocated_bytes() == before  # mapped, not copied
    for table, side in zip(tables, sides, strict=True):
        assert pa.Table.from_batches(side) == table
        for column in side[0].columns:
            assert all(b is None or b.address % 8 == 0 for b in column.buffers())
    assert Part.from_json(part.to_json()) == part


def test_an_attempt_that_finds_a_part_leaves_it_alone(tmp_path):
    tables = streams()
    first = write_part(tmp_path, 0, "a-0", batches(*tables))
    path = tmp_path / "spool" / "0" / "a-0.arrow"
    bytes_of_first = path.read_bytes()
    again = write_part(tmp_path, 0, "a-0", batches(*reversed(tables)))
    assert again == first and path.read_bytes() == bytes_of_first
    path.write_bytes(bytes_of_first[:-1])
    sentence = f"the state file {path} is damaged: its bytes do not have their checksum"
    with pytest.raises(StateError, match=exactly(sentence)):
        write_part(tmp_path, 0, "a-0", batches(*tables))


def test_twins_that_write_at_once_agree(tmp_path):
    tables = streams()

    def slowly():
        """While this one writes, its twin finishes."""
        yield from batches(*tables)
        twin.append(write_part(tmp_path, 0, "a-0", batches(*reversed(tables))))

    twin = []
    assert write_part(tmp_path, 0, "a-0", slowly()) == twin[0]
    assert [path.name for path in (tmp_path / "spool" / "0").iterdir()] == ["a-0.arrow"]


def test_a_writer_that_dies_leaves_no_part(tmp_path):
    code = """
import os, signal, sys, pyarrow as pa
from host.spool import write_part
from hw.spec.tuples import Side
def rows():
    yield Side.LEFT, pa.record_batch({"a": [1, 2]})
    os.kill(os.getpid(), signal.SIGKILL)
write_part(sys.argv[1], 0, "a-0", rows())
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "spool" / "0" / "a-0.arrow").exists()
    part = write_part(tmp_path, 0, "a-0", batches(*streams()))
    assert sum(map(len, read_part(tmp_path, 0, part)[0])) == 40


def test_a_part_of_no_rows_has_no_file(tmp_path):
    empty = [(Side.LEFT, streams()[0].slice(0, 0).combine_chunks().to_batches())]
    part = write_part(tmp_path, 0, "a-0", [(side, b) for side, bs in empty for b in bs])
    assert part == Part("a-0", 0, 0, 0, "")
    assert read_part(tmp_path, 0, part) == ([], [])
    assert os.listdir(tmp_path / "spool" / "0") == []


def test_a_part_has_one_schema_for_each_stream(tmp_path):
    rows = [(Side.LEFT, pa.record_batch({"a": [1]})), (Side.LEFT, pa.record_batch({"b": [1]}))]
    sentence = "a part has left batches of several schemas: write one schema"
    with pytest.raises(StateError, match=exactly(sentence)):
        write_part(tmp_path, 0, "a-0", rows)
    assert os.listdir(tmp_path / "spool" / "0") == []


# Options on the way to a daemon.


def options():
    left, right = (table.schema for table in streams())
    return JoinOptions(on="l.a = r.b", window="3 s", left=left, right=right, time=("t", "t"),
                       select=["l.id", "r.id"], lateness="1 s", workers=3)


def test_options_survive_as_plain_values():
    made = options()
    assert from_plain(to_plain(made)) == replace(made, time=["t", "t"])
    assert from_plain(to_plain(made), workers=1).workers == 1


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"color": 1}, "'color' is not an option of a join"),
        ({"left": "??"}, "left is not an Arrow schema in base64"),
        ({"right": 7}, "right is not an Arrow schema in base64"),
        ({"left": "aGVsbG8gd29ybGQ="}, "left is not an Arrow schema in base64"),
    ],
)
def test_plain_values_that_are_no_options_are_refused(changed, sentence):
    with pytest.raises(OptionError, match=exactly(sentence)):
        from_plain(to_plain(options()) | changed)


def test_a_missing_option_is_named():
    plain = to_plain(options())
    del plain["window"]
    sentence = "the option 'window' of the join is missing"
    with pytest.raises(OptionError, match=exactly(sentence)):
        from_plain(plain)


@pytest.mark.parametrize(("told_rows", "heard"), [(8, [4, 3]), (100, [])])
def test_whoever_reads_along_hears_of_every_message_or_of_none(tmp_path, told_rows, heard):
    """The last ones before the file is on the disk; a part that is small is not worth it."""
    rows = [(Side.LEFT, pa.record_batch({"x": [1, 2]}))] * 7
    messages = []
    part = write_part(
        tmp_path, 0, "a", rows, lambda name, some: messages.append(some), told_rows
    )
    assert [len(some) for some in messages] == heard
    if heard:
        told = [one for some in messages for one in some]
        assert told == messages_of(tmp_path, 0, part)[1]


def test_whoever_reads_along_hears_of_a_stream_that_has_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("host.spool._STREAM_ROWS", 4)
    left, right = ((side, pa.record_batch({"x": [1, 2]})) for side in Side)
    messages = []
    write_part(tmp_path, 0, "a", [left, right, right, left, left, right],
               lambda name, some: messages.append([side for side, *_ in some]))
    assert messages == [[0, 1, 1], [0, 0], [1]]
