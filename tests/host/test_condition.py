"""Conditions: what runs where, what is refused and how, and that no pair is lost or added."""

import math
import random
from datetime import datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from host.bands import ExactBands
from host.condition import compile_condition
from host.errors import ConditionError, EvaluationError
from host.floatbands import FloatBands
from hw.spec.predicates import ALL, Band, Predicate
from hw.spec.tuples import Side, key_dtype
from tests.helpers import exactly
from tests.judges import by_duckdb, by_evaluation, by_keys

LEFT = pa.schema([
    ("a", pa.int32()), ("k", pa.int64()), ("u", pa.uint64()), ("x", pa.float64()),
    ("f", pa.float32()), ("p", pa.decimal128(10, 2)), ("d", pa.date32()),
    ("t", pa.timestamp("us")), ("z", pa.timestamp("us", "Europe/Berlin")), ("s", pa.string()),
    ("y", pa.binary()), ("flag", pa.bool_()), ("two words", pa.int32()), ("Case", pa.int32()),
    ("items", pa.list_(pa.int32())), ("big", pa.decimal128(20, 2)),
])
RIGHT = pa.schema([
    ("b", pa.int32()), ("k", pa.int64()), ("u", pa.uint64()), ("x", pa.float64()),
    ("f", pa.float32()), ("q", pa.decimal128(12, 4)), ("d", pa.date32()),
    ("t", pa.timestamp("us")), ("z", pa.timestamp("us", "Europe/Berlin")), ("s", pa.string()),
    ("y", pa.binary()), ("flag", pa.bool_()), ("same", pa.int32()), ("SAME", pa.int32()),
])


def compiled(on):
    return compile_condition(on, LEFT, RIGHT)


def bands(*limits):
    return Predicate(tuple(Band(*pair) for pair in limits))


@pytest.mark.parametrize(
    ("on", "predicate"),
    [
        ("l.a < r.b + 3", bands((-2, None))),
        ("r.b + 3 > l.a", bands((-2, None))),
        ("l.a - 3 < r.b", bands((-2, None))),
        ("l.a <= r.b + 2.5", bands((-2, None))),
        ("l.a < r.b + 2.5", bands((-2, None))),
        ("r.b - l.a <= 10", bands((None, 10))),
        ("-l.a < -r.b", bands((None, -1))),
        ("l.a BETWEEN r.b - 5 AND r.b + 7", bands((-7, 5))),
        ("l.a BETWEEN r.b + 5 AND r.b - 7", bands()),
        ("l.a BETWEEN SYMMETRIC r.b + 5 AND r.b - 7", bands((-5, 7))),
        ("r.b BETWEEN l.a AND l.a", bands((0, 0))),
        ("l.a NOT BETWEEN r.b - 5 AND r.b + 7", Predicate((Band(-7, 5),), negated=True)),
        ("NOT (l.a >= r.b - 5 AND l.a <= r.b + 7)", Predicate((Band(-7, 5),), negated=True)),
        ("NOT (l.a NOT BETWEEN r.b - 5 AND r.b + 7)", bands((-7, 5))),
        ("ABS(l.a - r.b) <= 2", bands((-2, 2))),
        ("2 > ABS(r.b - l.a)", bands((-1, 1))),
        ("ABS(l.a - r.b) <= -2", bands()),
        ("ABS(l.a - r.b) > -2", ALL),
        ("ABS(l.a - r.b + 1) = 2", bands((-1, -1), (3, 3))),
        ("ABS(l.a - r.b) = -2", bands()),
        ("ABS(l.a - r.b) >= 2", Predicate((Band(-1, 1),), negated=True)),
        ("l.a <> r.b", Predicate((Band(0, 0),), negated=True)),
        ("l.a <> r.b + 0.5", ALL),
        ("l.a = r.b + 0.5", bands()),
        ("l.a = r.b", bands((0, 0))),
        ("l.a == r.b + 2 * 3", bands((-6, -6))),
        ("l.a >= r.b - 5 AND l.a <= r.b + 7 AND l.a <> r.b", bands((-7, -1), (1, 5))),
        ("l.a >= r.b AND l.a <= r.b + 7 AND l.a > r.b + 2", bands((-7, -3))),
        ("l.a < r.b AND l.a > r.b", bands()),
        ("l.a = r.b OR l.a = r.b + 1 OR l.a BETWEEN r.b + 3 AND r.b + 5",
         bands((-5, -3), (-1, 0))),
        ("l.a IN (r.b, r.b + 10, r.b - 10)", bands((-10, -10), (0, 0), (10, 10))),
        ("l.k <= r.k + 9223372036854775807", bands((-(2**63) + 1, None))),
        ("l.k = r.k - 18446744073709551616", bands((2**64, 2**64))),
        # Unsigned keys lie 2 ** 63 lower than their values.
        ("l.u = r.u", bands((0, 0))),
        ("l.k = r.u", bands((-(2**63), -(2**63)))),
        ("l.u < r.k", bands((2**63 + 1, None))),
        # Factors of narrow types go into the keys.
        ("l.p = r.q", bands((0, 0))),
        ("l.p <= r.q + 0.5", bands((-5000, None))),
        ("l.p < r.q + 0.00005", bands((0, None))),
        ("2 * l.a <= 3 * r.b + 1", bands((-1, None))),
        ("l.a + r.b <= 10", bands((None, 10))),
        ("l.d = r.d + 3", bands((-3, -3))),
        ("DATE_SUB(l.d, 3) = r.d", bands((-3, -3))),
        ("l.d - r.d <= INTERVAL 3 DAYS", bands((-3, None))),
        ("l.d < r.d + INTERVAL '36' HOUR", bands((-1, None))),
        ("r.t - l.t <= INTERVAL '10' MINUTE", bands((None, 600_000_000))),
        ("r.t - l.t BETWEEN INTERVAL '-5' MINUTE AND INTERVAL 10 MINUTES",
         bands((-300_000_000, 600_000_000))),
        ("l.t <= r.t + INTERVAL '1 12:30:00.5' DAY TO SECOND", bands((-131_400_500_000, None))),
        ("l.t <= r.t - INTERVAL '1 day 2 hours'", bands((93_600_000_000, None))),
        ("l.t = r.t + INTERVAL 1 WEEK - INTERVAL 1 MILLISECOND", bands((-604_799_999_000,) * 2)),
        ("l.z <= r.z + INTERVAL '-1:30' MINUTE TO SECOND", bands((90_000_000, None))),
        ("CAST(l.z AS TIMESTAMP) = r.z", bands((0, 0))),
        ("CAST(l.a AS BIGINT) < r.k", bands((1, None))),
        ("CAST(l.a AS DECIMAL(12, 2)) = r.q", bands((0, 0))),
        ("l.flag = r.flag", bands((0, 0))),
        ("l.flag < r.flag", bands((1, None))),
        # Floats order as their keys do: plain comparisons need no rounding.
        ("l.x = r.x", bands((0, 0))),
        ("l.x <= r.x + 0.05", bands((0, None))),
        ("l.f < r.f", bands((1, None))),
        ("l.f >= r.x", bands((None, 0))),
        ("l.k <> r.x", Predicate((Band(0, 0),), negated=True)),
        ("SQRT(l.x) + l.a < r.x * r.f", bands((1, None))),
        ("YEAR(l.t) = YEAR(r.d) + 1", bands((-1, -1))),
        ("LENGTH(l.s) >= r.b", bands((None, 0))),
        ("l.a % 10 = r.b % 10", bands((0, 0))),
        # Nothing to search by.
        ("TRUE", ALL),
        ("1 = 1 AND l.a > 3", ALL),
        ("l.a <=> r.b", ALL),
        ("FALSE", bands()),
        ("l.a = r.b AND 1 > 2", bands()),
        ("l.a = NULL", bands()),
        ("l.a = r.b AND NULL", bands()),
    ],
)
def test_what_the_device_compares(on, predicate):
    assert compiled(on).predicate == predicate


@pytest.mark.parametrize(
    ("on", "rank"),
    [
        ("l.t = r.d", "EQUALITY"),
        ("l.d BETWEEN r.t AND r.t + INTERVAL 1 DAY", "BAND"),
        ("3 * l.k <= 2 * r.k", "INEQUALITY"),
        ("l.k * 2 <> r.k * 3", "EXCLUSION"),
        ("l.x BETWEEN r.x - 1 AND r.x + 1", "BAND"),
        ("r.x - l.x = 0.5", "BAND"),
        ("l.x - r.x < 1", "INEQUALITY"),
        ("l.x BETWEEN r.x - 1 AND r.x + 1 OR l.x BETWEEN r.x + 8 AND r.x + 9", "BANDS"),
        ("l.x NOT BETWEEN r.x - 1 AND r.x + 1", "EXCLUSION"),
    ],
)
def test_what_the_host_works_out_for_the_device(on, rank):
    condition = compiled(on)
    assert condition.predicate is None
    assert condition.residual is None
    assert condition.primary.rank.name == rank


@pytest.mark.parametrize(
    ("on", "bits"),
    [
        ("l.a = r.b", 32), ("l.a = r.k", 64), ("l.d < r.d", 32), ("l.f < r.f", 32),
        ("l.f < r.x", 64), ("l.f BETWEEN r.f - 0.5 AND r.f + 0.5", 32), ("l.p < r.q", 64),
        ("l.t < r.t", 64), ("l.flag = r.flag", 32), ("l.s = r.s", 64), ("TRUE", 32),
        ("l.a = r.b AND l.d = r.d", 64), ("2 * l.a = r.b", 64),
    ],
)
def test_key_widths(on, bits):
    condition = compiled(on)
    assert condition.key_bits == bits
    empty = pa.RecordBatch.from_arrays([pa.nulls(0, f.type) for f in LEFT], schema=LEFT)
    assert condition.encode(Side.LEFT, empty)[0].dtype == key_dtype(bits)


def parts(on):
    """Label -> text of explain, without what there is not and the reason."""
    rows = dict(compiled(on).explain())
    return {label: text for label, text in rows.items()
            if text != "none" and label not in ("why", "key width")}


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("l.a = r.b AND l.x BETWEEN r.x - 1 AND r.x + 1 AND l.a > 46 AND r.b IS NOT NULL",
         {"equality keys": "l.a = r.b", "on the device": "l.a = r.b",
          "second predicate": "l.x BETWEEN r.x - 1 AND r.x + 1",
          "one-sided filters": "l.a > 46 AND NOT (r.b IS NULL)",
          "residual": "l.x BETWEEN r.x - 1 AND r.x + 1"}),
        ("l.a = r.b AND l.s = r.s",
         {"equality keys": "l.a = r.b, l.s = r.s",
          "on the device": "l.a = r.b AND l.s = r.s (as a hash)",
          "residual": "l.a = r.b AND l.s = r.s"}),
        ("l.a >= r.b AND l.a <= r.b",
         {"equality keys": "l.a >= r.b AND l.a <= r.b",
          "on the device": "l.a >= r.b AND l.a <= r.b"}),
        ("l.y = r.y",
         {"equality keys": "l.y = r.y", "on the device": "l.y = r.y (as a hash)",
          "residual": "l.y = r.y"}),
        ("l.a < r.b AND l.t BETWEEN r.t AND r.t + INTERVAL '1' DAY",
         {"on the device": "l.t BETWEEN r.t AND r.t + INTERVAL '1' DAY",
          "second predicate": "l.a < r.b", "residual": "l.a < r.b"}),
        ("l.a <> r.b AND l.x < r.x",
         {"on the device": "l.x < r.x", "second predicate": "l.a <> r.b",
          "residual": "l.a <> r.b"}),
        ("l.a BETWEEN r.b AND 100",
         {"on the device": "l.a >= r.b", "one-sided filters": "l.a <= 100"}),
        ("(l.a = r.b AND l.k > 1) OR (l.a = r.b AND r.k > 2)",
         {"equality keys": "l.a = r.b", "on the device": "l.a = r.b",
          "residual": "l.k > 1 OR r.k > 2"}),
        ("l.a = r.b OR l.k = r.k",
         {"on the device": "every pair", "residual": "l.a = r.b OR l.k = r.k"}),
        ("l.a IN (r.b, r.b + 2, r.b + 4, r.b + 6, r.b + 8)",
         {"on the device": "every pair", "residual": "l.a = r.b OR l.a = r.b + 2 OR l.a = r.b + 4 "
          "OR l.a = r.b + 6 OR l.a = r.b + 8"}),
        ("l.a * r.b > 5 AND l.s LIKE 'x%'",
         {"on the device": "every pair", "one-sided filters": "l.s LIKE 'x%'",
          "residual": "l.a * r.b > 5"}),
        ("l.a > 1", {"on the device": "every pair", "one-sided filters": "l.a > 1"}),
        ("FALSE", {"on the device": "no pair"}),
        ("l.s <> r.s", {"on the device": "every pair", "residual": "l.s <> r.s"}),
    ],
)
def test_what_is_done_where(on, expected):
    assert parts(on) == expected


def test_explain_gives_width_and_reason():
    assert compiled("l.a < r.b").explain()[-2:] == [
        ("key width", "32 bits"), ("why", "an inequality bounds the search from one side")]
    reasons = {
        "l.a = r.b": "an equality is the narrowest search",
        "l.a = r.b AND l.k = r.k": "several equalities are searched at once by a hash",
        "l.s = r.s": "texts are searched by a hash",
        "ABS(l.a - r.b) < 3": "a band bounds the search from both sides",
        "l.a IN (r.b, r.b + 2)": "several bands bound the search",
        "l.a <> r.b": "nothing bounds the search but what is left out",
        "l.a * r.b = 2": "no part can be searched: every pair is checked",
        "l.a = 2": "no part is about both streams: every pair that the filters leave is wanted",
        "l.a = NULL": "the condition is never true",
    }
    assert {on: dict(compiled(on).explain())["why"] for on in reasons} == reasons


def test_structured_parts():
    condition = compiled("l.a = r.b AND l.x BETWEEN r.x - 1 AND r.x + 1 AND l.k < r.k + l.a")
    assert [equality.part.text for equality in condition.equalities] == ["l.a = r.b"]
    assert isinstance(condition.primary, ExactBands) and condition.primary.left.text == "l.a"
    assert isinstance(condition.second, FloatBands) and condition.second.right.text == "r.x"
    assert condition.columns == (frozenset({"x", "k", "a"}), frozenset({"x", "k"}))
    assert compiled("l.a = r.b").columns == (frozenset(), frozenset())


@pytest.mark.parametrize(
    ("on", "name"),
    [("l.`two words` = 1", "two words"), ("`l`.`CASE` = 1", "Case"), ("L.case = 1", "Case"),
     ("a = 1", "a"), ("A = 1", "a"), ("r.SAME = 1", "SAME"), ("r.same = 1", "same")],
)
def test_columns_are_found_as_spark_finds_them(on, name):
    (parts,) = [side for side in compiled(on).plan.filters if side]
    assert parts[0].terms[0][1].name == name


EMPTY = "the condition is empty: write a comparison such as l.a = r.a"


@pytest.mark.parametrize(
    ("on", "message"),
    [
        ("", EMPTY),
        ("  \n", EMPTY),
        (";", EMPTY),
        ("l.a = r.b; SELECT 1", "the condition has 2 statements instead of one"),
        ("l.a = r.b)", "the condition cannot be read near `)`, column 10"),
        ("l.a =", "the condition cannot be read near `=`, column 5"),
        ("l.s = 'x", "the condition cannot be read: a quote is left open"),
        ("l.s = 'it''s'", "`'it''s'` doubles a quote: write \\' or other quotes around it"),
        ("l.kk = r.k", "there is no column `l.kk`: did you mean `l.k`?"),
        ("L.FLG = 3", "there is no column `L.FLG`: did you mean `l.flag`?"),
        ("r.nowhere = 3", "there is no column `r.nowhere`: there is `r.b`, `r.k`, `r.u`, `r.x`, "
         "`r.f`, `r.q`, `r.d`, `r.t`, `r.z`, `r.s`, `r.y`, `r.flag`, `r.same`, `r.SAME`"),
        ("two_words = 3",
         "there is no column `two_words` in either stream: did you mean `l.two words`?"),
        ("k = 3", "`k` is in both streams: write l.k or r.k"),
        ("r.Same = 3", "`r.Same` is ambiguous: the right stream has `same` and `SAME`"),
        ("x.a = 3", "`x.a` names no stream: a column is l.name or r.name"),
        ("l.a.b = 3", "`l.a.b` has too many parts: a column is l.name or r.name"),
        ("l.* = 3", "`l.*` is not supported in a condition"),
        ("l.items = 3", "`l.items` is list<item: int32>, which a condition cannot use"),
        ("l.big = 3", "`l.big` is decimal128(20, 2), and a decimal has at most 18 digits"),
        ("1 + 1", "`1 + 1` is INT where TRUE or FALSE is needed"),
        ("l.a", "`l.a` is INT where TRUE or FALSE is needed"),
        ("l.a = r.b AND l.k", "`l.k` is BIGINT where TRUE or FALSE is needed"),
        ("NOT l.s", "`l.s` is STRING where TRUE or FALSE is needed"),
        ("INTERVAL '1' DAY", "`INTERVAL '1' DAY` is INTERVAL where TRUE or FALSE is needed"),
        ("l.s = r.b", "`l.s = r.b` mixes STRING and INT: cast one of them"),
        ("l.s = r.y", "`l.s = r.y` mixes STRING and BINARY: cast one of them"),
        ("l.s IN ('a', r.b)", "`l.s = r.b` mixes STRING and INT: cast one of them"),
        ("l.flag < r.b", "`l.flag < r.b` mixes BOOLEAN and INT: cast one of them"),
        ("l.t < r.z", "`l.t < r.z` mixes TIMESTAMP_NTZ and TIMESTAMP: cast one of them"),
        ("l.t - r.z < INTERVAL 1 DAY",
         "`l.t - r.z` mixes TIMESTAMP_NTZ and TIMESTAMP: cast one of them"),
        ("l.d < r.z", "`l.d < r.z` mixes DATE and TIMESTAMP: cast one of them"),
        ("l.t < TIMESTAMP '2020-01-01 00:00:00Z'", "`l.t < CAST('2020-01-01 00:00:00Z' AS "
         "TIMESTAMP)` mixes TIMESTAMP_NTZ and TIMESTAMP: cast one of them"),
        ("r.t - l.t <= 10", "`r.t - l.t <= 10` mixes INTERVAL and INT: write an INTERVAL, such as "
         "INTERVAL '10' SECOND"),
        ("r.d - l.d <= 10", "`r.d - l.d <= 10` mixes INTERVAL and INT: write an INTERVAL, such as "
         "INTERVAL '10' DAY"),
        ("l.t + 5 < r.t", "`l.t + 5` mixes TIMESTAMP_NTZ and INT: write an INTERVAL, such as "
         "INTERVAL '10' SECOND"),
        ("l.d + 1.5 = r.d", "`l.d + 1.5` mixes DATE and DECIMAL(2,1): cast one of them"),
        ("l.s + 1 = 2", "`l.s + 1` mixes STRING and INT: cast one of them"),
        ("l.s < r.s", "`l.s < r.s` orders STRING, which joins only in equalities"),
        ("l.y BETWEEN r.y AND r.y", "`l.y BETWEEN r.y AND r.y` orders BINARY, which joins only in "
         "equalities"),
        ("SUM(l.a) = 3", "`SUM(l.a)` is an aggregate, and a condition sees one pair at a time"),
        ("ROW_NUMBER() OVER (ORDER BY l.a) = 1", "`ROW_NUMBER() OVER (ORDER BY l.a)` is a window "
         "function, and a condition sees one pair at a time"),
        ("l.a IN (SELECT 1)",
         "`l.a IN (SELECT 1)` is a subquery, and a condition sees one pair at a time"),
        ("EXISTS(SELECT 1)",
         "`EXISTS(SELECT 1)` is a subquery, and a condition sees one pair at a time"),
        ("SELECT 1", "`SELECT 1` is a subquery, and a condition sees one pair at a time"),
        ("nearby(l.a, r.b)", "`NEARBY(l.a, r.b)` calls NEARBY, which is no function here"),
        ("ROUND(l.x) = 3", "`ROUND(l.x)` is not supported in a condition"),
        ("FLOOR(l.x, 2) = 3", "`FLOOR(l.x, 2)` is not supported in a condition"),
        ("RAND() < 0.5", "`RAND()` is not supported in a condition"),
        ("l.a & 3 = 1", "`l.a & 3` is not supported in a condition"),
        ("l.a = ?", "`?` is not supported in a condition"),
        ("l.a IN ()", "`l.a IN ()` is not supported in a condition"),
        ("(l.a, l.k) = (r.b, r.k)", "`(l.a, l.k)` is not supported in a condition"),
        ("EXTRACT(WEEK FROM l.t) = 2", "`EXTRACT(WEEK FROM l.t)` is not supported in a condition"),
        ("l.s LIKE r.s", "`l.s LIKE r.s` needs a constant pattern"),
        ("l.s RLIKE '('", "`l.s RLIKE '('` has a pattern that cannot be read"),
        ("SUBSTRING(l.s, r.b) = 'x'", "`SUBSTRING(l.s, r.b)` needs `r.b` to be constant"),
        ("UPPER(l.a) = 'X'", "`UPPER(l.a)` cannot be computed of INT"),
        ("CONCAT(l.s, l.a) = 'x'", "`CONCAT(l.s, l.a)` cannot be computed of STRING and INT"),
        ("HOUR(l.d) = 2", "`HOUR(l.d)` cannot be computed of DATE"),
        ("ABS(l.s) = 2", "`ABS(l.s)` cannot be computed of STRING"),
        ("FLOOR(l.s) = 2", "`FLOOR(l.s)` cannot be computed of STRING"),
        ("SQRT(l.s) = 2", "`SQRT(l.s)` cannot be computed of STRING"),
        ("LEAST(l.s, r.s) = 'a'", "`LEAST(l.s, r.s)` cannot be computed of STRING and STRING"),
        ("DATE_ADD(l.t, 3) = r.d", "`DATE_ADD(l.t, 3)` cannot be computed of TIMESTAMP_NTZ"),
        ("IF(l.a > 1, 'x', 2) = 'x'",
         "`IF(l.a > 1, 'x', 2)` mixes STRING and INT: cast one of them"),
        ("CASE WHEN l.a THEN 1 END = 1", "`l.a` is INT where TRUE or FALSE is needed"),
        ("CAST(l.x AS STRING) = r.s", "`CAST(l.x AS STRING)` cannot cast DOUBLE to STRING"),
        ("CAST(l.d AS INT) = r.b", "`CAST(l.d AS INT)` cannot cast DATE to INT"),
        ("CAST(l.a AS ARRAY<INT>) = r.b",
         "`CAST(l.a AS ARRAY<INT>)` names a type that a condition cannot use"),
        ("CAST('x' AS INT) = r.b", "`CAST('x' AS INT)` meets a value that is no INT"),
        ("l.d <= '2020-13-01'", "`'2020-13-01'` is not a date such as DATE '2026-01-31'"),
        ("l.t <= 'noon'", "`'noon'` is not a timestamp such as TIMESTAMP '2026-01-31 23:59:59.5'"),
        ("l.t < r.t + INTERVAL 1 MONTH", "`INTERVAL '1' MONTH` has no fixed length: use days"),
        ("l.t < r.t + INTERVAL '1-2' YEAR TO MONTH",
         "`INTERVAL '1-2' YEAR TO MONTH` has no fixed length: use days"),
        ("l.t < r.t + INTERVAL '5' FORTNIGHT", "`INTERVAL '5' FORTNIGHT` is not an interval of "
         "days, hours, minutes or seconds"),
        ("l.t < r.t + INTERVAL '1 day soon'", "`INTERVAL '1 day soon'` is not an interval of "
         "days, hours, minutes or seconds"),
        ("l.t < r.t + INTERVAL '- 5 minutes'", "`INTERVAL '- 5 minutes'` is not an interval of "
         "days, hours, minutes or seconds"),
        ("l.t < r.t + INTERVAL '5'", "`INTERVAL '5'` is not an interval of days, hours, minutes "
         "or seconds"),
        ("l.t < r.t + INTERVAL 'x' DAY", "`INTERVAL 'x'` is not an interval of days, hours, "
         "minutes or seconds"),
        ("l.t < r.t + INTERVAL '1:2' DAY TO SECOND",
         "`INTERVAL '1:2' DAY TO SECOND` does not have the form DAY TO SECOND"),
        ("l.t < r.t + INTERVAL l.a MINUTE",
         "`INTERVAL l.a MINUTE` is not constant: an interval has a fixed length"),
        ("l.t < r.t + INTERVAL '0.0000000001' SECOND",
         "`INTERVAL '0.0000000001' SECOND` is finer than a nanosecond"),
        ("l.a = 123456789012345678901234567890123456789",
         "`123456789012345678901234567890123456789` has more than 38 digits"),
        ("l.a = 2147483647 + 1", "`2147483647 + 1` overflows INT: cast to a wider type"),
        ("l.a = 1 / 0", "`1 / 0` divides by zero"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_sentence(on, message):
    with pytest.raises(ConditionError, match=exactly(message)):
        compiled(on)


def test_keys_of_another_width_are_refused():
    with pytest.raises(TypeError, match=exactly("keys must be int32, not int64")):
        compiled("l.a = r.b").intervals(Side.LEFT, np.zeros(1, np.int64))


def batch(schema, **columns):
    count = len(next(iter(columns.values())))
    return pa.RecordBatch.from_arrays(
        [pa.array(columns[field.name], field.type) if field.name in columns
         else pa.nulls(count, field.type) for field in schema], schema=schema)


def test_rows_that_cannot_match_keep_their_place():
    condition = compiled("l.a = r.b AND l.k > 2 AND l.s LIKE 'x%'")
    rows = batch(LEFT, a=[1, 2, None, 4, 5], k=[3, 2, 3, None, 9], s=["x", "x", "x", "x", None])
    keys, matchable = condition.encode(Side.LEFT, rows)
    assert len(keys) == 5
    assert matchable.tolist() == [True, False, False, False, False]
    assert keys[0] == 1
    right = batch(RIGHT, b=[7, None])
    assert condition.encode(Side.RIGHT, right)[1].tolist() == [True, False]


def test_a_null_in_any_of_several_equalities_matches_nothing():
    condition = compiled("l.a = r.b AND l.s = r.s AND l.x = r.x")
    rows = batch(LEFT, a=[1, None, 1, 1], s=["x", "x", None, "x"], x=[1.0, 1.0, 1.0, None])
    assert condition.encode(Side.LEFT, rows)[1].tolist() == [True, False, False, False]


def test_a_key_is_not_computed_where_a_filter_fails():
    condition = compiled("l.a <> 0 AND l.k DIV l.a = r.k")
    keys, matchable = condition.encode(Side.LEFT, batch(LEFT, a=[0, 3, None], k=[7, 7, 7]))
    assert matchable.tolist() == [False, True, False]
    assert keys[1] == 2
    with pytest.raises(EvaluationError, match=exactly("`l.k DIV l.a` divides by zero")):
        compiled("l.k DIV l.a = r.k").encode(Side.LEFT, batch(LEFT, a=[0], k=[7]))


def test_nulls_that_the_residual_wants_stay_matchable():
    condition = compiled("l.a <=> r.b")
    left, right = batch(LEFT, a=[1, None]), batch(RIGHT, b=[None, 1])
    assert by_keys(condition, left, right, Side.LEFT).tolist() == [[False, True], [True, False]]


def test_a_dictionary_is_read_as_its_values():
    schema = pa.schema([("s", pa.dictionary(pa.int8(), pa.string())),
                        ("n", pa.dictionary(pa.int8(), pa.int64()))])
    rows = pa.RecordBatch.from_arrays(
        [pa.array(["b", "a", None, "b"]).dictionary_encode(),
         pa.array([5, None, 7, 5], pa.int64()).dictionary_encode()], names=["s", "n"])
    on = "l.s = r.s AND l.n = r.n"
    found = by_keys(compile_condition(on, schema, schema), rows, rows, Side.RIGHT)
    assert np.argwhere(found).tolist() == [[0, 0], [0, 3], [3, 0], [3, 3]]


# From here on: every pair, by keys from both sides, by evaluation, and by DuckDB.
TEXTS = ["", "a", "b", "ab", "A", "x" * 300, "x" * 299 + "y", "é", None]
EDGES = {
    "i8": ([-128, -1, 0, 1, 5, 127, None], pa.int8()),
    "i32": ([-(2**31), -5, -1, 0, 1, 2, 3, 7, 100, 2**31 - 1, None], pa.int32()),
    "i64": ([-(2**63), -(2**63) + 1, -5, -1, 0, 1, 2, 3, 2**62, 2**63 - 1, None], pa.int64()),
    "u8": ([0, 1, 5, 255, None], pa.uint8()),
    "u32": ([0, 1, 5, 2**32 - 1, None], pa.uint32()),
    "u64": ([0, 1, 5, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, None], pa.uint64()),
    "f64": ([-math.inf, -1.7976931348623157e308, -1.5, -0.05, -5e-324, -0.0, 0.0, 0.05, 0.1, 0.3,
             1.05, 2.5, 1e15, 1e16, 1.7976931348623157e308, math.inf, math.nan, None],
            pa.float64()),
    "f32": ([-math.inf, -1.5, -0.05, -0.0, 0.0, 0.05, 0.1, 0.3, 1.05, 2.5, 16777217.0, math.inf,
             math.nan, None], pa.float32()),
    "d2": ([None if x is None else Decimal(x) for x in (
        "-9999999999999999.99", "-1.50", "-0.01", "0.00", "0.01", "0.50", "2.50",
        "9999999999999999.99", None)], pa.decimal128(18, 2)),
    "d4": ([None if x is None else Decimal(x) for x in (
        "-99999999999999.9999", "-1.5000", "-0.0001", "0.0000", "0.0100", "0.4999", "0.5000",
        "99999999999999.9999", None)], pa.decimal128(18, 4)),
    "day": ([-700000, -1, 0, 1, 2, 18000, None], pa.date32()),
    "us": ([-(2**60), -1, 0, 1, 599_999_999, 600_000_000, 86_400_000_000, 2**60, None],
           pa.timestamp("us")),
    "ms": ([-(2**50), -1, 0, 1, 599_999, 600_000, 86_400_000, 2**50, None], pa.timestamp("ms")),
    "s": (TEXTS, pa.string()),
    "b": ([True, False, None], pa.bool_()),
}
ROWS = max(len(values) for values, _ in EDGES.values())


def edges(turned):
    return pa.record_batch(
        [pa.array([values[::-1 if turned else 1][i % len(values)] for i in range(ROWS)], arrow)
         for values, arrow in EDGES.values()], names=list(EDGES))


LEFT_EDGES, RIGHT_EDGES = edges(False), edges(True)


def agree(on, duckdb=True):
    """All ways give the same pairs."""
    condition = compile_condition(on, LEFT_EDGES.schema, RIGHT_EDGES.schema)
    expected = by_evaluation(on, LEFT_EDGES, RIGHT_EDGES)
    for side in Side:
        found = by_keys(condition, LEFT_EDGES, RIGHT_EDGES, side)
        assert (found == expected).all(), (on, side, condition.explain())
    if duckdb:
        judged = by_duckdb(on, LEFT_EDGES, RIGHT_EDGES)
        assert (judged == expected).all(), (on, np.argwhere(judged != expected)[:5])
    return condition


@pytest.mark.parametrize(
    "on",
    [
        "l.s = r.s",
        "l.s = r.s AND l.i32 = r.i32",
        "l.i32 = r.i64 AND l.d2 = r.d4 AND l.f64 = r.f32",
        "l.u64 = r.i64 AND l.day = r.day",
        "l.us = r.ms AND l.i8 = r.i8",
        "l.b = r.b AND l.i32 < r.i32 + 3",
        "UPPER(l.s) = UPPER(r.s) AND l.i64 >= r.i64",
        "l.i32 = r.i32 + 2 AND l.i64 <= r.i64",
        "l.s = r.s OR l.i32 = r.i32",
        "l.s <> r.s AND l.i32 BETWEEN r.i32 AND r.i32 + 3",
        "l.i32 IS NULL OR l.i32 < r.i32",
        "l.i32 > 1 AND r.i32 < 5 AND l.f64 <> r.f64",
        "l.i32 = r.i32 OR (l.i32 IS NULL AND r.i32 IS NULL)",
        "COALESCE(l.i32, r.i32, 0) = 2",
        "CASE WHEN l.b THEN l.i32 ELSE r.i32 END > 1",
        "l.i32 NOT IN (1, 2) AND NOT (l.s = r.s)",
        "NOT (l.i32 = r.i32 AND l.s = r.s)",
        "LEAST(l.f64, r.f64) = l.f64",
        "NOT (l.f64 < r.f64 OR l.f64 > r.f64)",
        "l.day <= r.us AND l.ms < r.day + INTERVAL 1 DAY",
        "l.d2 + l.d4 < r.d2",
        "l.i8 + l.u8 = r.i32",
        "TRUE",
        "l.b AND r.b",
        "l.b AND NOT r.b OR l.i8 = r.i8",
    ],
)
def test_chosen_conditions(on):
    agree(on)


def test_null_safe_equality():
    agree("l.i32 <=> r.i32 AND l.s <=> r.s", duckdb=False)
    agree("l.f64 IS DISTINCT FROM r.f64")


def test_chains_of_bands():
    condition = agree("l.i32 IN (r.i32, r.i32 + 2, r.i32 + 4, r.i32 - 2)")
    assert condition.residual is None
    condition = agree("l.i32 IN (r.i32, r.i32 + 2, r.i32 + 4, r.i32 - 2, r.i32 - 4)")
    assert condition.residual is not None


def test_bands_that_would_be_too_many_stay_in_the_residual():
    holes = ", ".join(f"r.i32 + {place}" for place in (1, 3, 5, 7, 9, 11))
    condition = agree(f"l.i32 BETWEEN r.i32 - 100 AND r.i32 + 100 AND l.i32 NOT IN ({holes})")
    assert condition.intervals(Side.LEFT, np.zeros(1, np.int32)).shape[1] <= 4
    holes = ", ".join(f"r.f64 + {place}" for place in (1, 3, 5, 7, 9, 11))
    condition = agree(f"l.f64 BETWEEN r.f64 - 100 AND r.f64 + 100 AND l.f64 NOT IN ({holes})")
    assert condition.intervals(Side.LEFT, np.zeros(1, np.int64)).shape[1] <= 4


def jumps(hours):
    """Times around the days on which Berlin's clocks jump."""
    days = [datetime(2024, 3, 30), datetime(2024, 10, 26)]
    times = [day + timedelta(hours=hour) for day in days for hour in hours]
    return pa.record_batch([pa.array([*times, None], pa.timestamp("us", "Europe/Berlin"))],
                           names=["z"])


@pytest.mark.parametrize(
    ("on", "device", "residual"),
    [
        ("l.z <= r.z + INTERVAL 1 DAY", "INEQUALITY", False),
        ("l.z = r.z + INTERVAL 1 DAY", "EQUALITY", False),
        ("l.z <> r.z + INTERVAL 25 HOURS", "EXCLUSION", False),
        ("NOT (l.z < r.z + INTERVAL 1 DAY)", "INEQUALITY", False),
        ("l.z - r.z BETWEEN INTERVAL 0 DAYS AND INTERVAL 23 HOURS", "BAND", False),
        ("l.z BETWEEN r.z - INTERVAL 10 MINUTES AND r.z + INTERVAL 10 HOURS", "BAND", False),
        # Days by the clock are no band of instants: a wider one is searched, then checked.
        ("l.z BETWEEN r.z - INTERVAL 1 DAY AND r.z + INTERVAL 2 DAYS", "BAND", True),
        ("r.z - INTERVAL 47 HOURS < l.z AND l.z < r.z", "BAND", True),
    ],
)
def test_clocks_that_jump(on, device, residual):
    left, right = jumps(np.arange(0, 60, 2.5)), jumps(np.arange(0, 60, 1.5))
    condition = compile_condition(on, left.schema, right.schema)
    assert condition.primary.rank.name == device
    assert (condition.residual is not None) == residual
    expected = by_evaluation(on, left, right)
    assert 0 < expected.sum() < expected.size
    for side in Side:
        assert (by_keys(condition, left, right, side) == expected).all()


NUMBERS = ["i8", "i32", "i64", "u8", "u32", "u64", "d2", "d4", "f64", "f32"]
OFFSETS = ["0", "1", "5", "-3", "2.5", "0.05", "127", "9223372036854775807",
           "-9223372036854775808", "18446744073709551616"]
TIMES = ["us", "ms", "day"]
LENGTHS = ["INTERVAL 10 MINUTES", "INTERVAL '-5' SECOND", "INTERVAL 1 DAY", "INTERVAL '0' SECOND",
           "INTERVAL '1' MICROSECOND"]
OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


def comparison(rng, x, y, offsets):
    """One comparison of two columns with constant offsets, in one of its many forms."""
    def moved(column):
        return rng.choice([column, f"{column} + {rng.choice(offsets)}",
                           f"{column} - {rng.choice(offsets)}"])

    if rng.random() < 0.5:
        x, y = y, x
    op = rng.choice(OPERATORS)
    form = rng.randrange(5)
    if form == 0:
        return f"{moved(x)} {op} {moved(y)}"
    if form == 1:
        return f"{moved(x)} {rng.choice(['', 'NOT '])}BETWEEN {moved(y)} AND {moved(y)}"
    if form == 2 and offsets is OFFSETS:
        return f"ABS({x} - {y}) {op} {rng.choice(offsets)}"
    if form == 3 and offsets is OFFSETS:
        return f"{x} - {y} BETWEEN {rng.choice(offsets)} AND {rng.choice(offsets)}"
    if offsets is OFFSETS and rng.random() < 0.3:
        return f"{x} * {rng.choice(['2', '-1', '3', '100'])} {op} {moved(y)}"
    return f"{x} {op} {moved(y)}" if offsets is LENGTHS else f"{x} - {y} {op} {rng.choice(offsets)}"


def random_condition(rng):
    """ANDs, ORs and NOTs of comparisons over one pair of columns."""
    names, offsets = rng.choice([(NUMBERS, OFFSETS), (NUMBERS, OFFSETS), (TIMES, LENGTHS)])
    x, y = f"l.{rng.choice(names)}", f"r.{rng.choice(names)}"
    on = comparison(rng, x, y, offsets)
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        more = comparison(rng, x, y, offsets)
        more = f"NOT ({more})" if rng.random() < 0.25 else more
        on = f"({on}) {rng.choice(['AND', 'OR'])} {more}"
    return on


@pytest.mark.parametrize("seed", range(10))
def test_random_conditions(seed):
    rng = random.Random(seed)
    for _ in range(20):
        agree(random_condition(rng))


@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_probes_of_both_sides_agree(rng):
    """Left-probe, right-probe and evaluation, for all key types at their limits."""
    on = random_condition(rng)
    agree(on, duckdb=False)
