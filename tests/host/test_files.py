"""host.files and host.csv_files: every format in, every format out, nothing half written."""

import gzip
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from host.errors import InputError, JoinError
from host.files import Sink, ascends, check_target, chunks, open_source

TABLE = pa.table(
    {
        "id": pa.array(range(1000), pa.int64()),
        "name": [f"n{i % 7}" for i in range(1000)],
        "ts": pa.array(np.arange(1000) * 500_000).cast(pa.timestamp("us")),
    }
)


def write(table, path, rows=64):
    """The table in a file of the path's format, in small pieces."""
    name = str(path)
    if name.endswith((".parquet", ".pq")):
        pq.write_table(table, name, row_group_size=rows)
    elif name.endswith(".csv"):
        csv.write_csv(table, name)
    elif name.endswith(".csv.gz"):
        with gzip.open(name, "wb") as file:
            csv.write_csv(table, file)
    else:
        new = pa.ipc.new_stream if name.endswith(".ipc") else pa.ipc.new_file
        with new(name, table.schema) as writer:
            writer.write_table(table, rows)
    return name


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.PQ", "a.arrow", "a.ipc", "a.feather", "a.csv", "a.csv.gz"]
)
def test_every_format_gives_the_same_rows_in_chunks_of_one_size(tmp_path, name):
    path = write(TABLE, tmp_path / name.lower())
    renamed = tmp_path / name
    os.rename(path, renamed)
    source = open_source(str(renamed))
    parts = list(chunks(source, 300))
    assert [part.num_rows for part in parts] == [300, 300, 300, 100]
    assert pa.concat_tables(parts) == TABLE
    assert source.schema == TABLE.schema
    assert source.rows in (1000, None)


@pytest.mark.parametrize("rows", [1, 64, 999, 1000, 1001])
def test_chunks_end_where_they_should_whatever_the_row_groups(tmp_path, rows):
    source = open_source(write(TABLE, tmp_path / "a.parquet"))
    sizes = [part.num_rows for part in chunks(source, rows)]
    assert sizes == [rows] * (1000 // rows) + ([1000 % rows] if 1000 % rows else [])


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.ipc", "a.csv"])
def test_a_file_without_rows_has_columns_and_no_chunks(tmp_path, name):
    source = open_source(write(TABLE.slice(0, 0), tmp_path / name))
    assert source.schema.names == ["id", "name", "ts"]
    assert list(chunks(source, 10)) == []


def test_one_column_can_be_read_alone(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.ipc", "a.csv"):
        source = open_source(write(TABLE, tmp_path / name))
        assert {tuple(batch.schema.names) for batch in source.batches(100, ["ts"])} == {("ts",)}


# CSV is read some blocks ahead: 40 MB whatever the file's size, which would take a larger file.
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.ipc"])
def test_a_file_is_never_in_memory_as_a_whole(tmp_path, name):
    rows = 1 << 20
    numbers = np.random.default_rng(1).integers(0, 1 << 60, (2, rows))
    whole = pa.table({"a": numbers[0], "b": numbers[1]})
    source = open_source(write(whole, tmp_path / name, rows=1 << 16))
    size, before = whole.nbytes, pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() - before for _ in chunks(source, 1 << 15))
    assert most < size / 2


def of_csv(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    return open_source(str(path))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "", "-3"], pa.int64()),
        (["1", "2.5"], pa.float64()),
        (["true", "false"], pa.bool_()),
        (["2013-01-31"], pa.date32()),
        (["2013-01-31", "2013-01-31 10:00:00"], pa.timestamp("us")),
        (["2013-01-31T10:00:00.25"], pa.timestamp("us")),
        (["2013-01-31T10:00:00.123456789"], pa.timestamp("ns")),
        (["2013-01-31T10:00:00Z", "2013-01-31T12:00:00+02:00"], pa.timestamp("us", "UTC")),
        (["1", "one"], pa.string()),
        (["", ""], pa.null()),
    ],
)
def test_a_csv_column_has_the_first_type_that_takes_all_its_values(tmp_path, values, kind):
    text = "id,v\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values))
    source = of_csv(tmp_path, text)
    assert source.schema == pa.schema([("id", pa.int64()), ("v", kind)])


@pytest.mark.parametrize(
    ("most", "last", "kind"),
    [
        ("1", "2.5", pa.float64()),
        ("1", "x", pa.string()),
        ("", "7", pa.int64()),
        ("", "2013-01-31 10:00:00", pa.timestamp("us")),
        ("2013-01-31 10:00:00", "2013-01-31 10:00:00.0000001", pa.timestamp("ns")),
        ("10:00:00", "noon", pa.string()),
    ],
)
def test_csv_types_come_from_the_whole_file(tmp_path, most, last, kind):
    rows = 400_000  # more than the block that is looked at first
    source = of_csv(tmp_path, "id,v\n" + f"1,{most}\n" * rows + f"1,{last}\n")
    assert source.schema.field("v").type == kind
    assert source.rows == rows + 1
    assert sum(batch.num_rows for batch in source.batches(1000)) == rows + 1


def test_a_csv_that_is_not_text_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n1,2\n1,\xff\xfe\n3\n")
    with pytest.raises(InputError) as error:
        open_source(str(path))
    assert str(error.value) == (
        f"'{path}' cannot be read as CSV (CSV parse error: Expected 2 columns, got 1: 3): "
        "it is damaged or of another format"
    )


def test_text_that_stops_being_text_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1,x\n" * 400_000 + b"1,\xff\xfe\n")
    with pytest.raises(InputError) as error:
        open_source(str(path))
    assert "cannot be read as CSV (In CSV column #1: " in str(error.value)


def test_an_ascending_column_is_recognised(tmp_path):
    for name in ("a.parquet", "a.arrow", "a.ipc", "a.csv"):
        assert ascends(open_source(write(TABLE, tmp_path / name)), "id")
        assert ascends(open_source(write(TABLE, tmp_path / name)), "ts")
        # The break is where two batches meet.
        swapped = pa.concat_tables([TABLE.slice(64), TABLE.slice(0, 64)])
        assert not ascends(open_source(write(swapped, tmp_path / name)), "id")


def test_equal_values_ascend_and_encoded_ones_too(tmp_path):
    column = pa.array([1, 1, 2, 2, 2]).dictionary_encode()
    assert ascends(open_source(write(pa.table({"a": column}), tmp_path / "a.arrow", 2)), "a")
    assert ascends(open_source(write(pa.table({"a": column[:0]}), tmp_path / "a.arrow")), "a")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "a.txt",
            "the ending of '{}' tells no format: use .parquet, .pq, .arrow, .ipc, .feather, .csv "
            "or .csv.gz",
        ),
        ("none.csv", "there is no file '{}': check its name"),
        ("folder.csv", "'{}' is a directory: name a file"),
        ("empty.parquet", "'{}' is empty, without so much as column names: write it again"),
        (
            "noise.parquet",
            "'{}' cannot be read as Parquet (Parquet magic bytes not found in footer. Either the "
            "file is corrupted or this is not a parquet file): it is damaged or of another format",
        ),
        (
            "noise.arrow",
            "'{}' cannot be read as Arrow IPC (Expected to read 1936289646 metadata bytes, but "
            "only read 496): it is damaged or of another format",
        ),
        (
            "noise.csv.gz",
            "'{}' cannot be read as CSV (zlib inflate failed: incorrect header check): "
            "it is damaged or of another format",
        ),
    ],
)
def test_what_cannot_be_read_is_named_in_one_sentence(tmp_path, name, sentence):
    path = tmp_path / name
    if name.startswith("folder"):
        path.mkdir()
    elif name.startswith(("empty", "noise")):
        path.write_bytes(b"noise" * 100 if name.startswith("noise") else b"")
    with pytest.raises(InputError) as error:
        open_source(str(path))
    assert str(error.value) == sentence.format(path)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.ipc", "a.csv.gz"])
def test_a_file_that_is_cut_off_is_an_input_error(tmp_path, name):
    path = tmp_path / name
    write(TABLE, path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="damaged or of another format"):
        for _ in open_source(str(path)).batches(100):
            pass


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.csv", "o.csv.gz"])
def test_what_is_written_can_be_read_back(tmp_path, name):
    path = tmp_path / name
    with Sink(str(path), TABLE.schema) as sink:
        for batch in TABLE.to_batches(max_chunksize=300):
            sink.write(batch)
        assert not path.exists()
    assert pa.concat_tables(chunks(open_source(str(path)), 400)) == TABLE
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.csv"])
def test_an_empty_result_is_a_file_with_columns(tmp_path, name):
    with Sink(str(tmp_path / name), TABLE.schema):
        pass
    assert open_source(str(tmp_path / name)).schema.names == ["id", "name", "ts"]


@pytest.mark.parametrize("name", ["o.parquet", "o.arrow", "o.csv", "o.csv.gz"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, JoinError])
def test_an_error_leaves_what_was_there_before(tmp_path, name, error):
    path = tmp_path / name
    path.write_text("before")
    with pytest.raises(error), Sink(str(path), TABLE.schema) as sink:
        sink.write(TABLE.to_batches()[0])
        raise error
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == [name]


def test_a_link_is_followed_and_stays(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "o.csv"
    link.symlink_to(tmp_path / "real" / "o.csv")
    with Sink(str(link), TABLE.schema):
        pass
    assert link.is_symlink()
    assert (tmp_path / "real" / "o.csv").read_text() == '"id","name","ts"\n'


def test_columns_that_a_format_cannot_hold_are_refused_at_once(tmp_path):
    schema = pa.schema([("tags", pa.list_(pa.int64()))])
    with pytest.raises(JoinError) as error:
        Sink(str(tmp_path / "o.csv"), schema)
    assert str(error.value) == (
        f"'{tmp_path}/o.csv' cannot hold these columns (Unsupported Type:list<item: int64>): "
        "write an .arrow file, or choose columns with --select"
    )
    schema = pa.schema([("d", pa.month_day_nano_interval())])
    with pytest.raises(JoinError) as error:
        Sink(str(tmp_path / "o.parquet"), schema)
    assert str(error.value) == (
        f"'{tmp_path}/o.parquet' cannot hold these columns (Unhandled type for Arrow to Parquet "
        "schema conversion: month_day_nano_interval): "
        "write an .arrow file, or choose columns with --select"
    )
    assert os.listdir(tmp_path) == []


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    class FullDisk:
        def write_batch(self, batch):
            raise OSError(28, "No space left on device")

        def close(self):
            raise OSError(28, "No space left on device")

    with pytest.raises(JoinError) as error, Sink(str(tmp_path / "o.arrow"), TABLE.schema) as sink:
        monkeypatch.setattr(sink, "_writer", FullDisk())
        sink.write(TABLE.to_batches()[0])
    assert str(error.value) == (
        f"'{tmp_path}/o.arrow' cannot be written ([Errno 28] No space left on device): "
        "free some space or choose another place"
    )
    assert os.listdir(tmp_path) == []


def test_targets_that_cannot_be_written_are_refused_before_any_work(tmp_path):
    def refusal(path, others=()):
        with pytest.raises(JoinError) as error:
            check_target(str(path), "--output", dict(others))
        return str(error.value)

    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "in.csv").write_text("a\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "in.csv")
    assert refusal(tmp_path / "o.xls").startswith(f"the ending of '{tmp_path}/o.xls' tells no")
    assert refusal(tmp_path / "folder.csv") == (
        f"--output '{tmp_path}/folder.csv' is a directory: name a file"
    )
    assert refusal(tmp_path / "no" / "o.csv") == (
        f"--output '{tmp_path}/no/o.csv' is in a directory that does not exist: make it first"
    )
    assert refusal(tmp_path / "link.csv", {"LEFT": str(tmp_path / "in.csv")}.items()) == (
        f"--output '{tmp_path}/link.csv' is the same file as LEFT: choose another name"
    )


def test_permissions_are_checked(tmp_path, monkeypatch):
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n")
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may do everything
    with pytest.raises(InputError) as error:
        open_source(str(secret))
    assert str(error.value) == f"'{secret}' may not be read: check its permissions"
    with pytest.raises(JoinError) as refused:
        check_target(str(tmp_path / "o.csv"), "--output", {})
    assert str(refused.value) == (
        f"--output '{tmp_path}/o.csv' is in a directory that may not be written: choose another"
    )
