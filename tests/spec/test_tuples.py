"""Records that cross a layer."""

import numpy as np
import pytest

from hw.spec.tuples import (
    NOT,
    PAIR,
    RECORD,
    Side,
    interval_dtype,
    key_dtype,
    key_limits,
    tuple_dtype,
)
from tests.helpers import exactly


@pytest.mark.parametrize(
    ("dtype", "value", "data"),
    [
        (tuple_dtype(32), (-2, 7), "feffffff 07000000"),
        (tuple_dtype(64), (-2, 7), "feffffffffffffff 07000000"),
        (interval_dtype(32), (1, -1), "01000000 ffffffff"),
        (interval_dtype(64), (1, -1), "0100000000000000 ffffffffffffffff"),
        (RECORD, (3, 5 | 1 << 31), "03000000 05000080"),
        (PAIR, (1, 2), "0100000000000000 0200000000000000"),
    ],
)
def test_records_are_little_endian_without_padding(dtype, value, data):
    assert np.array(value, dtype).tobytes() == bytes.fromhex(data)


@pytest.mark.parametrize("bits", [32, 64])
def test_keys_reach_from_limit_to_limit(bits):
    smallest, largest = key_limits(bits)
    info = np.iinfo(key_dtype(bits))
    assert (info.min, info.max) == (smallest, largest)


@pytest.mark.parametrize("make", [key_dtype, tuple_dtype, interval_dtype])
def test_no_other_width_has_records(make):
    with pytest.raises(ValueError, match=exactly("key_bits must be 32 or 64, not 16")):
        make(16)


def test_not_is_the_highest_bit_of_an_end():
    assert NOT == 1 << 31
    assert np.iinfo(RECORD["end"]).bits == 32


def test_sides_are_each_others_other():
    assert Side.LEFT.other is Side.RIGHT
    assert Side.RIGHT.other is Side.LEFT
    assert [side.letter for side in Side] == ["l", "r"]
