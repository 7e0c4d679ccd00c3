"""Keys order and equal as Spark's values do, and come back as the values they were."""

import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.keys import codec_of, decode_column, encode_column
from host.sqltypes import FLOAT, INT, UNSIGNED, decimal, type_of_arrow

INF, NAN = math.inf, math.nan
LARGEST_64, LARGEST_32 = 1.7976931348623157e308, 3.4028234663852886e38


#: Arrow type -> values in strictly ascending order, limits included, and the keys' width.
ASCENDING = [
    (pa.bool_(), [False, True], 32),
    (pa.int8(), [-128, -1, 0, 1, 127], 32),
    (pa.int16(), [-(2**15), -1, 0, 2**15 - 1], 32),
    (pa.int32(), [-(2**31), -1, 0, 1, 2**31 - 1], 32),
    (pa.int64(), [-(2**63), -(2**63) + 1, -1, 0, 1, 2**63 - 2, 2**63 - 1], 64),
    (pa.uint8(), [0, 1, 255], 32),
    (pa.uint16(), [0, 1, 2**16 - 1], 32),
    (pa.uint32(), [0, 1, 2**31, 2**32 - 1], 64),
    (pa.uint64(), [0, 1, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1], 64),
    (pa.float16(), [-INF, -1.5, 0.0, 1.5, INF, NAN], 32),
    (pa.float32(), [-INF, -LARGEST_32, -1e-45, 0.0, 1e-45, 1.0, LARGEST_32, INF, NAN], 32),
    (pa.float64(), [-INF, -LARGEST_64, -1.0, -5e-324, 0.0, 5e-324, LARGEST_64, INF, NAN], 64),
    (pa.decimal128(18, 2), [Decimal(x) for x in ("-9999999999999999.99", "-0.01", "0.00", "0.01",
                                                 "9999999999999999.99")], 64),
    (pa.decimal32(9, 3), [Decimal(x) for x in ("-999999.999", "0.000", "0.001")], 64),
    (pa.decimal64(18, 0), [Decimal(x) for x in ("-999999999999999999", "0", "7")], 64),
    (pa.decimal256(18, 1), [Decimal(x) for x in ("-0.1", "0.0", "99999999999999999.9")], 64),
    (pa.date32(), [-(2**31), -1, 0, 20000, 2**31 - 1], 32),
    (pa.timestamp("s"), [-(2**40), -1, 0, 2**40], 64),
    (pa.timestamp("ms"), [-(2**50), -1, 0, 2**50], 64),
    (pa.timestamp("us"), [-(2**63), -1, 0, 2**63 - 1], 64),
    (pa.timestamp("us", "Europe/Berlin"), [-(2**63), 0, 2**63 - 1], 64),
    (pa.timestamp("ns", "UTC"), [-(2**63), 0, 2**63 - 1], 64),
]
IDS = [str(arrow) for arrow, _, _ in ASCENDING]


def column(values, arrow):
    """Values as a column; dates and timestamps are given by their integers."""
    if pa.types.is_temporal(arrow):
        width = pa.int32() if arrow == pa.date32() else pa.int64()
        return pa.array(values, width).view(arrow)
    return pa.array(values, arrow)


@pytest.mark.parametrize(("arrow", "values", "bits"), ASCENDING, ids=IDS)
def test_keys_ascend_as_the_values_do(arrow, values, bits):
    keys, known = encode_column(column(values, arrow))
    assert known.all()
    assert keys.dtype == np.dtype(f"i{bits // 8}")
    assert all(a < b for a, b in zip(keys.tolist(), keys.tolist()[1:], strict=False))


@pytest.mark.parametrize(("arrow", "values", "bits"), ASCENDING, ids=IDS)
def test_keys_give_back_the_values(arrow, values, bits):
    before = column(values, arrow)
    after = decode_column(encode_column(before)[0], arrow)
    assert after.type == arrow
    # NaN, which comes last, does not equal itself for Arrow.
    nans = sum(value is NAN for value in values)
    kept = len(values) - nans
    assert after[:kept].equals(before[:kept])
    assert all(math.isnan(value) for value in after[kept:].to_pylist())


@pytest.mark.parametrize(("arrow", "values", "bits"), ASCENDING, ids=IDS)
def test_nulls_have_no_key(arrow, values, bits):
    plain, _ = encode_column(column(values, arrow))
    keys, known = encode_column(column([None, *values, None], arrow)[1:])
    assert known.tolist() == [True] * len(values) + [False]
    assert keys[:-1].tolist() == plain.tolist()


def test_both_zeros_and_all_nans_are_one_key():
    for width in ("4", "8"):
        bits = np.dtype(f"u{width}")
        quiet = np.array([math.nan], f"f{width}").view(bits)[0]
        nans = np.array([quiet, quiet | 1, quiet ^ (1 << (8 * int(width) - 1))], bits)
        keys, _ = encode_column(pa.array(nans.view(f"f{width}")))
        assert len(set(keys.tolist())) == 1
        zeros, _ = encode_column(pa.array(np.array([0.0, -0.0], f"f{width}")))
        assert zeros.tolist() == [0, 0]


@pytest.mark.parametrize(("arrow", "number"), [(pa.int32(), 7), (pa.float64(), 7.5)], ids=str)
def test_what_lies_under_a_null_does_not_show(arrow, number):
    """Arrow leaves anything there; the same rows have the same keys."""
    numbers = np.array([number, 5], arrow.to_pandas_dtype())
    buffers = [pa.py_buffer(bytes([0b10])), pa.py_buffer(numbers)]
    keys, known = encode_column(pa.Array.from_buffers(arrow, 2, buffers))
    assert known.tolist() == [False, True]
    assert keys[0] == 0


def test_a_dictionary_has_the_keys_of_its_values():
    plain = pa.array([5, None, -7, 5], pa.int32())
    keys, known = encode_column(plain.dictionary_encode())
    assert keys[known].tolist() == [5, -7, 5]
    assert known.tolist() == [True, False, True, True]


def test_date64_counts_days():
    keys, _ = encode_column(pa.array([0, -86_400_000], pa.int64()).cast(pa.date64()))
    assert keys.tolist() == [0, -1]


@settings(max_examples=200)
@given(st.floats(), st.floats())
def test_order_of_doubles(a, b):
    key_a, key_b = encode_column(pa.array([a, b]))[0].tolist()
    assert (key_a == key_b) == (a == b or (a != a and b != b))
    assert (key_a < key_b) == (a < b or (a == a and b != b))


@settings(max_examples=200)
@given(st.floats(width=32), st.floats(width=32))
def test_order_of_floats(a, b):
    key_a, key_b = encode_column(pa.array([a, b], pa.float32()))[0].tolist()
    assert (key_a == key_b) == (a == b or (a != a and b != b))
    assert (key_a < key_b) == (a < b or (a == a and b != b))


@settings(max_examples=200)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_order_of_unsigned_integers(a, b):
    key_a, key_b = encode_column(pa.array([a, b], pa.uint64()))[0].tolist()
    assert (key_a < key_b, key_a == key_b) == (a < b, a == b)
    codec = codec_of(UNSIGNED)
    assert codec is not None and key_a + codec.bias == a


def test_multiples_of_keys_stay_within_64_bits():
    cents = codec_of(decimal(10, 2))
    assert cents is not None
    tenfold, turned = cents.scaled(100), cents.scaled(-1)
    assert tenfold is not None and tenfold.encode(np.array([-3, 7])).tolist() == [-300, 700]
    assert turned is not None and turned.encode(np.array([-3, 7])).tolist() == [3, -7]
    assert tenfold.decode(np.array([-300, 700])).tolist() == [-3, 7]
    assert cents.scaled(10**9) is None
    whole = codec_of(INT)
    assert whole is not None
    doubled = whole.scaled(2)
    assert doubled is not None and doubled.bits == 64
    unsigned, floating = codec_of(UNSIGNED), codec_of(FLOAT)
    assert unsigned is not None and unsigned.scaled(2) is None
    assert floating is not None and floating.scaled(-1) is None


@pytest.mark.parametrize("arrow", [pa.string(), pa.binary(), pa.list_(pa.int8()),
                                   pa.decimal128(19, 0)], ids=str)
def test_what_has_no_order_has_no_key(arrow):
    message = f"a column of {arrow} has no order-preserving key"
    with pytest.raises(TypeError) as caught:
        encode_column(pa.nulls(1, arrow))
    assert str(caught.value) == message
    with pytest.raises(TypeError) as caught:
        decode_column(np.zeros(1, np.int64), arrow)
    assert str(caught.value) == message


def test_decimals_beyond_64_bits_have_no_key():
    assert codec_of(decimal(19, 0)) is None


@pytest.mark.parametrize(
    ("arrow", "name"),
    [(pa.uint8(), "SMALLINT"), (pa.uint16(), "INT"), (pa.uint32(), "BIGINT"),
     (pa.uint64(), "UNSIGNED BIGINT"), (pa.int8(), "TINYINT"), (pa.float16(), "FLOAT"),
     (pa.decimal128(7, 3), "DECIMAL(7,3)"), (pa.timestamp("ns"), "TIMESTAMP_NTZ"),
     (pa.timestamp("s", "UTC"), "TIMESTAMP"), (pa.dictionary(pa.int8(), pa.string()), "STRING"),
     (pa.binary(4), "BINARY"), (pa.duration("us"), "None"), (pa.decimal128(5, -2), "None")],
    ids=str,
)
def test_types_of_columns(arrow, name):
    assert str(type_of_arrow(arrow)) == name
