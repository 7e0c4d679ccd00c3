"""Intervals of stored keys are exact: at the limits of integers, to the last bit of floats."""

import math
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.bounds import complement, linear_intervals, merged, packed, predicate_intervals
from host.condition import compile_condition
from hw.spec.predicates import Band, compare, empty_intervals
from hw.spec.tuples import Side, interval_dtype, key_dtype, key_limits
from tests.judges import by_evaluation, by_keys

KEYS = {
    bits: [key_limits(bits)[0], key_limits(bits)[0] + 1, -7, -2, -1, 0, 1, 2, 3, 7,
           key_limits(bits)[1] - 1, key_limits(bits)[1]]
    for bits in (32, 64)
}
BOUNDS = [None, -(2**65), -(2**63), -(2**31), -3, -1, 0, 1, 2, 5, 2**31, 2**63 - 1, 2**66]
FACTORS = [-(10**9), -100, -3, -1, 1, 2, 7, 10**6, 10**18]


def inside(intervals, stored):
    """How often each stored key is in a probe's intervals."""
    lo, hi = intervals["lo"][..., None], intervals["hi"][..., None]
    return ((lo <= stored) & (stored <= hi)).sum(axis=1)


@pytest.mark.parametrize("bits", [32, 64])
def test_linear_intervals_are_the_sums_in_the_bands(bits):
    rng = random.Random(bits)
    keys = np.array(KEYS[bits], key_dtype(bits))
    for _ in range(300):
        factors = rng.choice(FACTORS), rng.choice(FACTORS)
        band = Band(rng.choice(BOUNDS), rng.choice(BOUNDS))
        expected = np.array([[band.holds(factors[0] * x + factors[1] * y) for y in KEYS[bits]]
                             for x in KEYS[bits]])
        for side, wanted in ((Side.LEFT, expected), (Side.RIGHT, expected.T)):
            found = linear_intervals(side, keys, factors, (band,))
            assert found.dtype == interval_dtype(bits)
            assert (inside(found, keys) == wanted).all(), (side, factors, band)


def test_linear_intervals_of_no_band_match_nothing():
    found = linear_intervals(Side.LEFT, np.zeros(3, np.int32), (-1, 2), ())
    assert (found == empty_intervals(32, (3, 1))).all()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("offset", [0, 5, -5, 2**31, 2**63, 2**64, 2**66, -(2**66)])
def test_a_negated_predicate_is_complemented(bits, offset):
    keys = np.array(KEYS[bits], key_dtype(bits))
    predicate = compare("<>", offset)
    for side in Side:
        found = inside(predicate_intervals(predicate, side, keys), keys)
        expected = np.array([[predicate.holds(*((p, s) if side is Side.LEFT else (s, p)))
                              for s in KEYS[bits]] for p in KEYS[bits]])
        assert (found == expected).all()


def test_the_complement_of_everything_is_nothing():
    smallest, largest = key_limits(32)
    whole = np.array([(smallest, largest)], interval_dtype(32))
    assert not inside(complement(whole), np.array(KEYS[32])).any()


def test_merged_intervals_are_apart_and_have_the_same_keys():
    rng = np.random.default_rng(7)
    lo = rng.integers(-20, 20, (500, 5))
    hi = lo + rng.integers(-3, 8, (500, 5))
    new_lo, new_hi = merged(lo, hi)
    keys = np.arange(-25, 35)
    before = ((lo[..., None] <= keys) & (keys <= hi[..., None])).any(axis=1)
    after = ((new_lo[..., None] <= keys) & (keys <= new_hi[..., None])).sum(axis=1)
    assert (before == after).all()
    touching = (new_lo[:, 1:] == new_hi[:, :-1] + 1) & (new_lo[:, 1:] <= new_hi[:, 1:])
    assert not touching.any()


def test_packing_leaves_out_columns_that_are_empty_in_every_row():
    lo = np.array([[1, 1, 5], [1, 1, 1]])
    hi = np.array([[4, 0, 9], [0, 0, 3]])
    found = packed(lo, hi, 64)
    assert found.shape == (2, 2)
    assert found[0].tolist() == [(1, 4), (5, 9)]
    assert found[1].tolist() == [empty_intervals(64, 1)[0].item(), (1, 3)]
    assert packed(lo[:, 1:2], hi[:, 1:2], 32).tolist() == empty_intervals(32, (2, 1)).tolist()


# What follows is about floats. Forms differ in where rounding happens; all have to be exact.
FORMS = [
    "l.x <= r.x + {c}",
    "l.x BETWEEN r.x - {c} AND r.x + {c}",
    "l.x NOT BETWEEN r.x - {c} AND r.x + {c}",
    "r.x - l.x BETWEEN -({c}) AND {c}",
    "ABS(l.x - r.x) <= {c}",
    "ABS(l.x - r.x) > {c}",
    "ABS(l.x - r.x) = {c}",
    "l.x - r.x >= {c}",
    "l.x + {c} > r.x AND l.x - {c} < r.x",
    "r.x - {c} <> l.x + {c}",
    "l.x BETWEEN r.x * 0.9D AND r.x * 1.1D",
    "l.x - 1 < r.x * -2 AND r.x / 3 <= l.x",
    "-l.x BETWEEN r.x AND r.x + {c}",
    "r.x - l.x BETWEEN 0 AND {c} OR r.x - l.x BETWEEN 7 AND 9",
    "l.x = r.x OR l.x = r.x + {c} OR l.x < r.x - 1000",
    "(l.x - r.x) * 2 - 1 <= {c} AND l.x >= r.x",
]
EDGES = [-math.inf, -1.7976931348623157e308, -1e300, -1.5, -0.05, -5e-324, -0.0, 0.0, 5e-324,
         0.05, 0.1, 0.15000000000000002, 0.3, 1.0, 1.05, 2.5, 1e15, 1e16, 1e300,
         1.7976931348623157e308, math.inf, math.nan, None]


def floats(values, width=64):
    return pa.record_batch([pa.array(values, pa.float64()).cast(
        pa.float64() if width == 64 else pa.float32(), safe=False)], names=["x"])


def judge(on, left, right):
    """Both probe directions agree with the evaluation of every pair."""
    condition = compile_condition(on, left.schema, right.schema)
    expected = by_evaluation(on, left, right)
    for side in Side:
        assert (by_keys(condition, left, right, side) == expected).all(), (on, side)
    return condition


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize("form", FORMS)
def test_float_intervals_at_the_edges(form, width):
    for c in ("0.05", "0", "1e16", "-1", "1.5e308"):
        judge(form.format(c=c), floats(EDGES, width), floats(EDGES[::-1], width))
    judge(form.format(c="0.1"), floats(EDGES, 32), floats(EDGES, 64))


@pytest.mark.parametrize("form", FORMS)
def test_no_float_form_is_left_to_the_residual(form):
    condition = judge(form.format(c="0.25"), floats(EDGES), floats(EDGES))
    assert condition.residual is None
    assert condition.intervals(Side.LEFT, np.zeros(1, np.int64)).shape[1] <= 4


@settings(max_examples=150)
@given(st.sampled_from(FORMS), st.floats(0, allow_infinity=False, allow_nan=False),
       st.lists(st.floats(), min_size=1, max_size=6), st.lists(st.floats(), min_size=1, max_size=6))
def test_any_floats(form, c, left, right):
    judge(form.format(c=f"{c!r}D"), floats(left), floats(right))


@settings(max_examples=150)
@given(st.sampled_from(FORMS), st.sampled_from(["0.05", "0.1", "1", "100.25"]),
       st.integers(-(2**40), 2**40), st.lists(st.integers(-40, 40), min_size=1, max_size=30))
def test_neighbours_of_the_bound(form, c, base, steps):
    """Stored floats a few bits away from where the truth changes."""
    probe = base * 0.05
    near = [probe, probe + float(c), probe - float(c), (probe - 1) / -2, probe / 0.9, probe * 3]
    stored = [math.nextafter(x, math.inf * (step or 1)) if abs(step) < 2 else
              x + step * math.ulp(x) for x in near for step in steps]
    judge(form.format(c=c), floats([probe]), floats(stored))
    judge(form.format(c=c), floats(stored), floats([probe]))


@pytest.mark.parametrize(
    "on",
    ["l.x * 1e300 - r.x * 1e300 BETWEEN -5 AND 5",
     "(l.x + 1.5e308) - (r.x - 1.5e308) >= 1",
     "l.x - r.x / 1e-300 <= 0"],
)
def test_sums_that_may_be_inf_minus_inf_are_left_to_the_residual(on):
    condition = judge(on, floats(EDGES), floats(EDGES))
    assert condition.residual is not None and condition.primary is None


def test_a_search_far_from_its_guess_ends_at_the_first_true_key():
    """fl(r.x + 0.05) >= 0.05 holds from a tiny negative number on, 2 ** 62 keys from the guess."""
    on = "l.x <= r.x + 0.05 AND l.x >= r.x - 1"
    half_ulp = math.ulp(0.05) / 2
    near = [half_ulp / 2, half_ulp / 4]
    stored = [-x for x in near] + [-math.nextafter(x, 1) for x in near] + [
        -math.nextafter(x, 0) for x in near]
    judge(on, floats([0.05]), floats(stored))
