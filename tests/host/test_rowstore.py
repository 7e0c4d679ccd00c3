"""Rows by their number."""

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.rowstore import RowStore
from tests.helpers import share

VALUES = {
    pa.int8(): lambda n: n % 100,
    pa.int64(): lambda n: n << 40,
    pa.float32(): lambda n: n / 2,
    pa.bool_(): lambda n: n % 3 == 0,
    pa.decimal128(12, 2): lambda n: Decimal(n).scaleb(-2),
    pa.date32(): lambda n: datetime.date(2024, 1, 1) + datetime.timedelta(n % 1000),
    pa.timestamp("us"): lambda n: datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=n),
    pa.string(): lambda n: "x" * (n % 5),
    pa.list_(pa.int32()): lambda n: list(range(n % 4)),
}
SCHEMA = pa.schema([(f"c{number}", kind) for number, kind in enumerate(VALUES)])


def value(kind, row):
    return None if row % 7 == 3 else VALUES[kind](row)


def rows(first, count):
    """Rows whose values follow from their numbers."""
    arrays = [
        pa.array([value(kind, row) for row in range(first, first + count)], kind) for kind in VALUES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def check(store, wanted):
    taken = store.take(np.array(wanted, np.int64))
    assert taken.schema == SCHEMA
    taken.validate(full=True)
    for name, kind in zip(SCHEMA.names, VALUES, strict=True):
        assert taken.column(name).to_pylist() == [value(kind, row) for row in wanted]


def test_rows_are_taken_by_number_in_any_order_and_again():
    store = RowStore(SCHEMA)
    store.append(rows(0, 10))
    store.append(rows(10, 5))
    assert (store.first, store.end) == (0, 15)
    check(store, [14, 0, 9, 10, 10, 3])
    check(store, [])


def test_slices_are_appended_as_what_they_show():
    store = RowStore(SCHEMA)
    store.append(rows(0, 50).slice(0, 13))
    store.append(rows(0, 50).slice(13, 20))
    check(store, [12, 13, 32, 17, 3])


def test_dropped_rows_make_room():
    store = RowStore(SCHEMA)
    for first in range(0, 400_000, 40_000):
        store.append(pa.RecordBatch.from_arrays(
            [pa.nulls(40_000, kind) for kind in VALUES], schema=SCHEMA))
        store.drop_before(first + 20_000)
    store.drop_before(399_990)
    store.append(rows(400_000, 20))
    assert store.first <= 399_990
    assert store.end == 400_020
    assert store.nbytes < 40_000_000
    check(store, [400_000, 400_019, 400_007])


def test_a_store_may_begin_anywhere():
    store = RowStore(SCHEMA)
    store.skip_to(1_000)
    store.append(rows(1_000, 5))
    check(store, [1_004, 1_000])


def test_without_columns_only_the_count_is_kept():
    store = RowStore(pa.schema([]))
    store.append(rows(0, 5))
    assert store.end == 5
    assert store.take(np.array([1, 2])).num_columns == 0
    assert store.nbytes == 0


def test_only_the_asked_columns_are_kept():
    store = RowStore(pa.schema([SCHEMA.field("c7")]))
    store.append(rows(0, 9))
    assert store.take(np.array([4, 2])).to_pydict() == {"c7": ["xxxx", "xx"]}


@pytest.mark.parametrize("first", [0, 777])
def test_chunks_hold_every_row_from_the_first_on(first):
    store = RowStore(SCHEMA)
    store.append(rows(0, 900))
    store.drop_before(first)
    table = pa.Table.from_batches(list(store.chunks()), SCHEMA)
    assert table.num_rows == 900 - store.first
    assert table.column("c1").to_pylist() == [value(pa.int64(), n) for n in range(store.first, 900)]


@share(5)
@given(
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 1_200)), min_size=1, max_size=8),
    st.data(),
)
def test_whatever_was_appended_and_dropped_the_rest_is_there(steps, data):
    schema = pa.schema([("n", pa.int64()), ("s", pa.string())])
    store, end, first = RowStore(schema), 0, 0
    for more, dropped in steps:
        numbers = list(range(end, end + more))
        store.append(
            pa.RecordBatch.from_pydict(
                {"n": [None if n % 5 == 0 else n for n in numbers], "s": [str(n) for n in numbers]},
                schema,
            )
        )
        end += more
        first = min(end, max(first, first + dropped))
        store.drop_before(first)
        if first < end:
            asked = data.draw(st.lists(st.integers(first, end - 1), max_size=4))
            found = store.take(np.array(asked, np.int64))
            assert found.column("n").to_pylist() == [None if n % 5 == 0 else n for n in asked]
            assert found.column("s").to_pylist() == [str(n) for n in asked]
