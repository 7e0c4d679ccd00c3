"""Predicates as closed intervals of stored keys."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.spec.predicates import (
    ALL,
    OPERATORS,
    Band,
    Predicate,
    compare,
    from_registers,
    registers,
)
from hw.spec.tuples import Side, key_dtype, key_limits
from tests.helpers import exactly, share

OPERATION = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
LIMIT = 1 << 65


def matches(predicate, side, probe, stored, key_bits):
    """Whether a stored key lies in the intervals of a probe key: what an engine does."""
    keys = np.array([probe], key_dtype(key_bits))
    inside = any(lo <= stored <= hi for lo, hi in predicate.intervals(side, keys)[0].tolist())
    return inside != predicate.negated


def keys(key_bits):
    """Keys of which many are small and many lie at the limits."""
    smallest, largest = key_limits(key_bits)
    return st.one_of(
        st.integers(-6, 6), st.integers(smallest, smallest + 3), st.integers(largest - 3, largest)
    )


offsets = st.one_of(
    st.none(), st.integers(-5, 5), st.sampled_from([1 << 31, 1 << 32, 1 << 63, 1 << 64, LIMIT]),
    st.sampled_from([-(1 << 31), -(1 << 32), 1 - (1 << 32), -(1 << 64), 1 - (1 << 64), -LIMIT]),
)
bands = st.lists(st.builds(Band, offsets, offsets), max_size=3)


@pytest.mark.parametrize("sign", OPERATORS)
@pytest.mark.parametrize("offset", [-3, 0, 2])
def test_a_comparison_is_that_of_the_numbers(sign, offset):
    predicate = compare(sign, offset)
    for left in range(-5, 6):
        for right in range(-5, 6):
            wanted = OPERATION[sign](left, right + offset)
            assert predicate.holds(left, right) == wanted
            assert matches(predicate, Side.LEFT, left, right, 32) == wanted
            assert matches(predicate, Side.RIGHT, right, left, 32) == wanted


def test_an_unknown_operator_is_refused():
    message = "operator must be one of = <> < <= > >=, not '!='"
    with pytest.raises(ValueError, match=exactly(message)):
        compare("!=")


def test_overlapping_and_touching_bands_become_one():
    assert Predicate((Band(4, 9), Band(0, 3))).bands == (Band(0, 9),)
    assert Predicate((Band(0, 9), Band(2, 3))).bands == (Band(0, 9),)
    assert Predicate((Band(5, None), Band(None, 4))).bands == (Band(None, None),)
    assert Predicate((Band(None, 0), Band(-3, 2))).bands == (Band(None, 2),)


def test_bands_that_leave_a_gap_stay_apart_in_order():
    assert Predicate((Band(5, 9), Band(0, 3))).bands == (Band(0, 3), Band(5, 9))


def test_an_empty_band_leaves_no_trace():
    assert Predicate((Band(3, 2), Band(7, 7))).bands == (Band(7, 7),)
    assert Predicate((Band(3, 2),)).bands == ()


def test_no_band_matches_nothing_and_all_matches_everything():
    nothing = Predicate(())
    assert not nothing.holds(0, 0)
    wanted = nothing.intervals(Side.LEFT, np.arange(3, dtype="<i4"))
    assert wanted.shape == (3, 1)
    assert (wanted["lo"] > wanted["hi"]).all()
    assert ALL.holds(*key_limits(64))


@pytest.mark.parametrize("bands", [(), (Band(0, 1), Band(5, 6))])
def test_only_one_band_can_be_negated(bands):
    message = f"a negated predicate has one band, not {len(bands)}"
    with pytest.raises(ValueError, match=exactly(message)):
        Predicate(bands, negated=True)


def test_the_other_side_sees_the_mirror_image():
    predicate = Predicate((Band(-1, 2), Band(5, None)))
    assert predicate.seen_from(Side.LEFT) == (Band(-1, 2), Band(5, None))
    assert predicate.seen_from(Side.RIGHT) == (Band(None, -5), Band(-2, 1))


@pytest.mark.parametrize("key_bits", [32, 64])
def test_bounds_beyond_the_type_saturate_or_leave_nothing(key_bits):
    smallest, largest = key_limits(key_bits)
    probes = np.array([smallest, largest], key_dtype(key_bits))
    near = Predicate((Band(-1, 1),)).intervals(Side.LEFT, probes)[:, 0].tolist()
    assert near == [(smallest, smallest + 1), (largest - 1, largest)]
    above = Predicate((Band(1, 5),)).intervals(Side.LEFT, probes)[1, 0]
    assert above["lo"] > above["hi"]
    below = Predicate((Band(-5, -1),)).intervals(Side.LEFT, probes)[0, 0]
    assert below["lo"] > below["hi"]


@pytest.mark.parametrize("key_bits", [32, 64])
def test_the_widest_difference_is_exact(key_bits):
    smallest, largest = key_limits(key_bits)
    widest = largest - smallest
    exact = Predicate((Band(widest, widest),))
    assert matches(exact, Side.LEFT, smallest, largest, key_bits)
    assert matches(exact, Side.RIGHT, largest, smallest, key_bits)
    assert not matches(exact, Side.LEFT, smallest, largest - 1, key_bits)
    assert not matches(exact, Side.LEFT, smallest + 1, largest, key_bits)


@share(10)
@given(st.data(), st.sampled_from([32, 64]), bands, st.sampled_from(Side), st.booleans())
def test_intervals_are_the_definition(data, key_bits, bands, side, negated):
    predicate = Predicate(tuple(bands))
    if negated and len(predicate.bands) == 1:
        predicate = Predicate(predicate.bands, negated=True)
    probe, stored = data.draw(keys(key_bits)), data.draw(keys(key_bits))
    left, right = (probe, stored) if side is Side.LEFT else (stored, probe)
    wanted = predicate.holds(left, right)
    assert wanted == (any(band.holds(right - left) for band in bands) != predicate.negated)
    assert matches(predicate, side, probe, stored, key_bits) == wanted


@share(10)
@given(st.data(), st.sampled_from([32, 64]), bands, st.sampled_from(Side))
def test_registers_say_the_same_of_every_two_keys(data, key_bits, bands, side):
    predicate = Predicate(tuple(bands))
    again = from_registers(registers(predicate, side, key_bits), side, False)
    left, right = data.draw(keys(key_bits)), data.draw(keys(key_bits))
    assert again.holds(left, right) == predicate.holds(left, right)


@share(10)
@given(st.data(), st.sampled_from([32, 64]), bands)
def test_no_stored_key_lies_in_two_intervals(data, key_bits, bands):
    probe = np.array([data.draw(keys(key_bits))], key_dtype(key_bits))
    stored = data.draw(keys(key_bits))
    found = Predicate(tuple(bands)).intervals(Side.LEFT, probe)[0].tolist()
    assert sum(lo <= stored <= hi for lo, hi in found) <= 1
