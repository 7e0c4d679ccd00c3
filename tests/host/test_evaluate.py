"""Expressions have Spark's values: three-valued logic, ANSI arithmetic, casts, texts, times."""

import itertools
import math
from datetime import date, datetime, timedelta
from decimal import Context, Decimal

import numpy as np
import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from host.errors import ConditionError, EvaluationError
from host.evaluate import Frame, evaluate
from host.sql.binding import Binder
from host.sqltypes import Kind
from hw.spec.tuples import Side
from tests.helpers import exactly

INF, NAN = math.inf, math.nan
WIDE = Context(prec=60)
NOTHING = pa.schema([])
I8, I32, I64, U64 = pa.int8(), pa.int32(), pa.int64(), pa.uint64()
F32, F64, TEXT = pa.float32(), pa.float64(), pa.string()


def money(precision, scale):
    return pa.decimal128(precision, scale)


def answers(sql, **columns):
    """The values of an expression over columns of the left stream, and its type's name.

    A column is a list of values and an Arrow type.
    """
    rows = pa.record_batch([pa.array(values, arrow) for values, arrow in columns.values()],
                           names=list(columns)) if columns else None
    binder = Binder(NOTHING if rows is None else rows.schema, NOTHING)
    node = binder.bind(sqlglot.parse_one(sql, read="spark"))
    count = 1 if rows is None else len(rows)
    value = evaluate(node, Frame(count, {Side.LEFT: rows}))
    known = value.known(count)
    assert len(value.data) == count
    found = [plain(value.data[i], node.type) if known[i] else None for i in range(count)]
    return found, str(node.type)


def plain(item, type):
    match type.kind:
        case Kind.DECIMAL:
            return Decimal(int(item)).scaleb(-type.scale, WIDE)
        case Kind.DATE:
            return date(1970, 1, 1) + timedelta(days=int(item))
        case Kind.TIMESTAMP:
            return datetime(1970, 1, 1) + timedelta(microseconds=int(item) * type.unit_ns // 1000)
        case Kind.INTERVAL:
            return timedelta(microseconds=int(item) * type.unit_ns // 1000)
        case Kind.STRING | Kind.BINARY:
            return item.as_py()
    return item if isinstance(item, int) else item.item()


def same(found, expected):
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        both_nan = isinstance(a, float) and isinstance(b, float) and a != a and b != b
        assert both_nan or (a == b and type(a) is type(b)), (found, expected)


TRUTHS = [True, False, None]


def kleene_and(a, b):
    return False if False in (a, b) else None if None in (a, b) else True


def kleene_or(a, b):
    return True if True in (a, b) else None if None in (a, b) else False


def test_truth_has_three_values():
    a, b = zip(*itertools.product(TRUTHS, TRUTHS), strict=True)
    pairs = {"a": (a, pa.bool_()), "b": (b, pa.bool_())}
    for sql, rule in [
        ("a AND b", kleene_and),
        ("a OR b", kleene_or),
        ("NOT (a AND b)", lambda x, y: {None: None}.get(kleene_and(x, y), not kleene_and(x, y))),
        ("NOT (a OR NOT b)", lambda x, y: kleene_and(None if x is None else not x, y)),
        ("a = b", lambda x, y: None if None in (x, y) else x == y),
        ("a <=> b", lambda x, y: x is y),
        ("a IS DISTINCT FROM b", lambda x, y: x is not y),
        ("a IS NULL AND b IS NOT NULL", lambda x, y: x is None and y is not None),
        ("a IS TRUE", lambda x, y: x is True),
        ("a IS NOT FALSE", lambda x, y: x is not False),
        ("a AND NULL", lambda x, y: False if x is False else None),
        ("a OR NULL", lambda x, y: True if x else None),
        ("a < b", lambda x, y: None if None in (x, y) else x < y),
    ]:
        assert answers(sql, **pairs)[0] == [rule(x, y) for x, y in zip(a, b, strict=True)], sql


FLOATS = [-INF, -1.5, -0.0, 0.0, 2.0, INF, NAN, None]


@pytest.mark.parametrize("arrow", [F32, F64], ids=str)
def test_nan_is_above_all_and_equal_to_itself(arrow):
    x, y = zip(*itertools.product(FLOATS, FLOATS), strict=True)

    def place(value):
        return (1, 0.0) if value != value else (0, value)

    for sql, holds in [("x = y", lambda a, b: a == b), ("x <> y", lambda a, b: a != b),
                       ("x < y", lambda a, b: a < b), ("x <= y", lambda a, b: a <= b),
                       ("NOT (x < y)", lambda a, b: a >= b), ("x >= y", lambda a, b: a >= b),
                       ("NOT (x = y)", lambda a, b: a != b), ("x > y", lambda a, b: a > b)]:
        expected = [None if None in (a, b) else holds(place(a), place(b))
                    for a, b in zip(x, y, strict=True)]
        assert answers(sql, x=(x, arrow), y=(y, arrow))[0] == expected, sql


def test_equality_that_knows_null_sees_floats_as_keys_do():
    x, y = zip(*itertools.product(FLOATS, FLOATS), strict=True)
    expected = [a == b or (a is not None and b is not None and a != a and b != b)
                for a, b in zip(x, y, strict=True)]
    assert answers("x <=> y", x=(x, F64), y=(y, F64))[0] == expected


#: SQL, type, expected values; columns are those of CALCULATED.
CALCULATED = {
    "i": ([7, -7, 0, None], I32), "j": ([2, 2, -3, 1], I32), "b": ([100, -100, 1, 1], I8),
    "k": ([2**40, -(2**40), 3, None], I64), "u": ([2**64 - 1, 0, 1, None], U64),
    "x": ([1.5, -1.5, NAN, None], F64), "y": ([0.1, INF, 2.0, 2.0], F64),
    "f": ([0.1, -2.5, 16777216.0, None], F32),
    "p": ([Decimal("1.25"), Decimal("-1.25"), Decimal("0.01"), None], money(10, 2)),
    "q": ([Decimal("3.0"), Decimal("0.7"), Decimal("-0.3"), Decimal("1.0")], money(5, 1)),
}
D = Decimal


@pytest.mark.parametrize(
    ("sql", "type", "expected"),
    [
        ("i + j", "INT", [9, -5, -3, None]),
        ("i - k", "BIGINT", [7 - 2**40, -7 + 2**40, -3, None]),
        ("b + 100", "INT", [200, 0, 101, 101]),
        ("i * j", "INT", [14, -14, 0, None]),
        ("-i", "INT", [-7, 7, 0, None]),
        ("ABS(i)", "INT", [7, 7, 0, None]),
        ("i / j", "DOUBLE", [3.5, -3.5, -0.0, None]),
        ("i % j", "INT", [1, -1, 0, None]),
        ("i DIV j", "BIGINT", [3, -3, 0, None]),
        ("MOD(j, 2)", "INT", [0, 0, -1, 1]),
        ("u + 1", "DECIMAL(21,0)", [D(2**64), D(1), D(2), None]),
        ("u DIV 2", "BIGINT", [2**63 - 1, 0, 0, None]),
        ("-u", "DECIMAL(20,0)", [D(1 - 2**64), D(0), D(-1), None]),
        ("k + 1.5", "DECIMAL(22,1)", [D(2**40) + D("1.5"), D("1.5") - 2**40, D("4.5"), None]),
        ("x + y", "DOUBLE", [1.6, INF, NAN, None]),
        ("x * y", "DOUBLE", [0.15000000000000002, -INF, NAN, None]),
        ("y - 0.05", "DOUBLE", [0.1 - 0.05, INF, 1.95, 1.95]),
        ("f + f", "FLOAT", [float(np.float32(0.1) + np.float32(0.1)), -5.0, 33554432.0, None]),
        ("f + 1", "DOUBLE", [float(np.float32(0.1)) + 1, -1.5, 16777217.0, None]),
        ("f * x", "DOUBLE", [float(np.float32(0.1)) * 1.5, 3.75, NAN, None]),
        ("x % y", "DOUBLE", [math.fmod(1.5, 0.1), -1.5, NAN, None]),
        ("ABS(x)", "DOUBLE", [1.5, 1.5, NAN, None]),
        ("p + q", "DECIMAL(11,2)", [D("4.25"), D("-0.55"), D("-0.29"), None]),
        ("p - q", "DECIMAL(11,2)", [D("-1.75"), D("-1.95"), D("0.31"), None]),
        ("p * q", "DECIMAL(16,3)", [D("3.750"), D("-0.875"), D("-0.003"), None]),
        ("p / q", "DECIMAL(17,8)",
         [D("0.41666667"), D("-1.78571429"), D("-0.03333333"), None]),
        ("p / 3", "DECIMAL(14,6)", [D("0.416667"), D("-0.416667"), D("0.003333"), None]),
        ("p % q", "DECIMAL(6,2)", [D("1.25"), D("-0.55"), D("0.01"), None]),
        ("p DIV q", "BIGINT", [0, -1, 0, None]),
        ("p * x", "DOUBLE", [1.875, 1.875, NAN, None]),
        ("FLOOR(p)", "DECIMAL(9,0)", [D(1), D(-2), D(0), None]),
        ("CEIL(p)", "DECIMAL(9,0)", [D(2), D(-1), D(1), None]),
        ("FLOOR(x)", "BIGINT", [1, -2, 0, None]),
        ("CEIL(f)", "BIGINT", [1, -2, 16777216, None]),
        ("FLOOR(i)", "BIGINT", [7, -7, 0, None]),
        ("SQRT(j + 2)", "DOUBLE", [2.0, 2.0, NAN, math.sqrt(3)]),
        ("POWER(j, 3)", "DOUBLE", [8.0, 8.0, -27.0, 1.0]),
        ("POW(1, x)", "DOUBLE", [1.0, 1.0, NAN, None]),
        ("SIGN(i)", "DOUBLE", [1.0, -1.0, 0.0, None]),
        ("ISNAN(x)", "BOOLEAN", [False, False, True, False]),
        ("LEAST(i, j, 1)", "INT", [1, -7, -3, 1]),
        ("GREATEST(i, p)", "DECIMAL(12,2)", [D("7.00"), D("-1.25"), D("0.01"), None]),
        ("LEAST(x, y)", "DOUBLE", [0.1, -1.5, 2.0, 2.0]),
        ("GREATEST(x, y)", "DOUBLE", [1.5, INF, NAN, 2.0]),
        ("COALESCE(i, k, j)", "BIGINT", [7, -7, 0, 1]),
        ("NVL(p, 0)", "DECIMAL(12,2)", [D("1.25"), D("-1.25"), D("0.01"), D("0.00")]),
        ("IF(i > 0, i, j)", "INT", [7, 2, -3, 1]),
        ("CASE WHEN i > 0 THEN 'p' WHEN i < 0 THEN 'n' END", "STRING", ["p", "n", None, None]),
        ("CASE j WHEN 2 THEN i WHEN 1 THEN 5 ELSE 1.5 END", "DECIMAL(11,1)",
         [D("7.0"), D("-7.0"), D("1.5"), D("5.0")]),
        ("i IN (7, j, NULL)", "BOOLEAN", [True, None, None, None]),
        ("i NOT IN (7, -7)", "BOOLEAN", [False, False, True, None]),
        ("i BETWEEN j AND 7", "BOOLEAN", [True, False, True, None]),
        ("i BETWEEN NULL AND 6", "BOOLEAN", [False, None, None, None]),
        ("i = NULL", "BOOLEAN", [None] * 4),
        ("NULL <=> i", "BOOLEAN", [False, False, False, True]),
        ("i + NULL", "INT", [None] * 4),
        ("u > k", "BOOLEAN", [True, True, False, None]),
        ("p < q AND p * 2 = 2.5", "BOOLEAN", [True, False, False, None]),
        ("p = x", "BOOLEAN", [False, False, False, None]),
        ("f = 0.1", "BOOLEAN", [False, False, False, None]),
        ("f = 0.1F", "BOOLEAN", [True, False, False, None]),
        ("i > 1e0", "BOOLEAN", [True, False, False, None]),
        ("1 / 2 = 0.5", "BOOLEAN", [True] * 4),
        ("1L + 2S = 3Y AND 1.5BD = 1.5D", "BOOLEAN", [True] * 4),
    ],
)
def test_numbers(sql, type, expected):
    found, name = answers(sql, **CALCULATED)
    if len(found) == 1:
        found = found * 4
    assert name == type
    same(found, expected)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("b + b", "`b + b` overflows TINYINT: cast to a wider type"),
        ("i * m", "`i * m` overflows INT: cast to a wider type"),
        ("-m", "`-m` overflows INT: cast to a wider type"),
        ("ABS(m)", "`ABS(m)` overflows INT: cast to a wider type"),
        ("n + n", "`n + n` overflows BIGINT: cast to a wider type"),
        ("n * n", "`n * n` overflows BIGINT: cast to a wider type"),
        ("n DIV -1", "`n DIV -1` overflows BIGINT: cast to a wider type"),
        ("CEIL(h)", "`CEIL(h)` overflows BIGINT: cast to a wider type"),
        ("FLOOR(-h)", "`FLOOR(-h)` overflows BIGINT: cast to a wider type"),
        ("i / z", "`i / z` divides by zero"),
        ("x / z", "`x / z` divides by zero"),
        ("i % z", "`i % z` divides by zero"),
        ("i DIV z", "`i DIV z` divides by zero"),
        ("p / z", "`p / z` divides by zero"),
        ("t - u", "`t - u` overflows INTERVAL: cast to a wider type"),
        ("CAST(i AS TINYINT)", "`CAST(i AS TINYINT)` meets a value that is no TINYINT"),
        ("CAST(x AS INT)", "`CAST(x AS INT)` meets a value that is no INT"),
        ("CAST(p AS DECIMAL(3, 2))", "`CAST(p AS DECIMAL(3, 2))` meets a value that is no "
         "DECIMAL(3,2)"),
        ("CAST(s AS INT)", "`CAST(s AS INT)` meets a value that is no INT"),
        ("CAST(s AS DATE)", "`CAST(s AS DATE)` meets a value that is no DATE"),
        ("CAST(s AS DECIMAL(5, 1))", "`CAST(s AS DECIMAL(5, 1))` meets a value that is no "
         "DECIMAL(5,1)"),
    ],
)
def test_what_spark_raises_is_raised(sql, message):
    columns = {
        "b": ([100, 1], I8), "i": ([1000, 1], I32), "m": ([-(2**31), 0], I32),
        "n": ([-(2**63), 1], I64), "h": ([1e19, 1.0], F64), "z": ([0, 1], I32),
        "x": ([NAN, 1.0], F64),
        "p": ([Decimal("10.00"), Decimal("1.00")], money(10, 2)), "s": (["one", "1"], TEXT),
        "t": ([2**62, 0], pa.timestamp("us")), "u": ([-(2**62), 0], pa.timestamp("us")),
    }
    with pytest.raises(EvaluationError, match=exactly(message)):
        answers(sql, **columns)


def test_what_could_raise_is_left_alone_where_it_is_not_needed():
    rows = {"a": ([10, 20, 30, None], I32), "b": ([0, 5, 0, 0], I32)}
    assert answers("b <> 0 AND a DIV b > 3", **rows)[0] == [False, True, False, False]
    assert answers("b = 0 OR a DIV b > 3", **rows)[0] == [True, True, True, True]
    assert answers("IF(b = 0, -1, a DIV b)", **rows)[0] == [-1, 4, -1, -1]
    assert answers("COALESCE(a, 1 DIV b)", a=([10, 20], I32), b=([0, 0], I32))[0] == [10, 20]
    assert answers("IF(b = 0, 'none', CAST(a DIV b AS STRING))", **rows)[0] == [
        "none", "4", "none", "none"]
    # A NULL divides nothing.
    assert answers("a DIV b", a=([None, 6], I32), b=([0, 2], I32))[0] == [None, 3]


def test_offsets_in_comparisons_do_not_overflow():
    rows = {"a": ([2**31 - 1, -(2**31)], I32), "n": ([2**63 - 1, -(2**63)], I64)}
    assert answers("a + 1 > a", **rows)[0] == [True, True]
    assert answers("n - 1 < n", **rows)[0] == [True, True]
    assert answers("n * 100 > 5", **rows)[0] == [True, False]
    assert answers("ABS(n) > 5", **rows)[0] == [True, True]
    assert answers("n + 9223372036854775807 > 1.5D", **rows)[0] == [True, False]


@pytest.mark.parametrize(
    ("sql", "type", "expected"),
    [
        ("CAST(x AS INT)", "INT", [2, -2, 0, None]),
        ("CAST(x AS BIGINT)", "BIGINT", [2, -2, 0, None]),
        ("CAST(x AS FLOAT)", "FLOAT", [2.5, -2.5, float(np.float32(0.1)), None]),
        ("CAST(x AS DECIMAL(5, 1))", "DECIMAL(5,1)", [D("2.5"), D("-2.5"), D("0.1"), None]),
        ("CAST(x AS DECIMAL(5))", "DECIMAL(5,0)", [D(3), D(-3), D(0), None]),
        ("CAST(i AS DOUBLE)", "DOUBLE", [300.0, -1.0, 0.0, None]),
        ("CAST(i AS BOOLEAN)", "BOOLEAN", [True, True, False, None]),
        ("CAST(o AS INT)", "INT", [1, 0, None, 1]),
        ("CAST(i AS STRING)", "STRING", ["300", "-1", "0", None]),
        ("CAST(o AS STRING)", "STRING", ["true", "false", None, "true"]),
        ("CAST(p AS STRING)", "STRING", ["1.25", "-0.05", "1.00", None]),
        ("CAST(p AS INT)", "INT", [1, 0, 1, None]),
        ("CAST(p AS DECIMAL(10, 1))", "DECIMAL(10,1)", [D("1.3"), D("-0.1"), D("1.0"), None]),
        ("CAST(p AS DOUBLE)", "DOUBLE", [1.25, -0.05, 1.0, None]),
        ("CAST(s AS INT)", "INT", [12, -3, 0, None]),
        ("CAST(s AS DOUBLE)", "DOUBLE", [12.0, -3.0, 0.0, None]),
        ("CAST(s AS DECIMAL(6, 2))", "DECIMAL(6,2)", [D("12.00"), D("-3.00"), D("0.00"), None]),
        ("CAST(s AS BINARY)", "BINARY", [b" 12", b"-3", b"0", None]),
        ("CAST(CAST(s AS BINARY) AS STRING)", "STRING", [" 12", "-3", "0", None]),
        ("TRY_CAST(i AS TINYINT)", "TINYINT", [None, -1, 0, None]),
        ("TRY_CAST(w AS INT)", "INT", [5, None, None, None]),
        ("TRY_CAST(w AS DECIMAL(3, 1))", "DECIMAL(3,1)", [D("5.0"), None, D("1.3"), None]),
        ("TRY_CAST(w AS DOUBLE)", "DOUBLE", [5.0, None, 1.25, None]),
        ("TRY_CAST(w AS BOOLEAN)", "BOOLEAN", [None, None, None, None]),
        ("CAST(NULL AS INT)", "INT", [None] * 4),
        ("CAST('NaN' AS DOUBLE)", "DOUBLE", [NAN] * 4),
        ("CAST('2024-02-29' AS DATE)", "DATE", [date(2024, 2, 29)] * 4),
        ("CAST(l.t AS DATE)", "DATE", [date(2024, 2, 29), date(1969, 12, 31), date(1970, 1, 1),
                                       None]),
        ("CAST(d AS TIMESTAMP_NTZ)", "TIMESTAMP_NTZ",
         [datetime(2024, 2, 29), datetime(1969, 12, 31), datetime(1970, 1, 1), None]),
        ("CAST(l.t AS BIGINT)", "BIGINT", [1709251199, -1, 0, None]),
        ("CAST(l.t AS DOUBLE)", "DOUBLE", [1709251199.5, -0.000001, 0.0, None]),
        ("CAST(d AS STRING)", "STRING", ["2024-02-29", "1969-12-31", "1970-01-01", None]),
        ("CAST(w AS STRING)", "STRING", ["5", "five", "1.25", None]),
        ("INT(x)", "INT", [2, -2, 0, None]),
        ("x::int", "INT", [2, -2, 0, None]),
    ],
)
def test_casts(sql, type, expected):
    found, name = answers(
        sql, x=([2.5, -2.5, 0.1, None], F64), i=([300, -1, 0, None], I32),
        o=([True, False, None, True], pa.bool_()), s=([" 12", "-3", "0", None], TEXT),
        w=(["5", "five", "1.25", None], TEXT),
        p=([Decimal("1.25"), Decimal("-0.05"), Decimal("1.00"), None], money(10, 2)),
        t=([datetime(2024, 2, 29, 23, 59, 59, 500000), datetime(1969, 12, 31, 23, 59, 59, 999999),
            datetime(1970, 1, 1), None], pa.timestamp("us")),
        d=([date(2024, 2, 29), date(1969, 12, 31), date(1970, 1, 1), None], pa.date32()))
    assert name == type
    same(found, expected)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPPER(s)", ["ABC", "ÄÖ%", "", None]),
        ("LOWER(s)", ["abc", "äö%", "", None]),
        ("LENGTH(s)", [3, 3, 0, None]),
        ("LENGTH(y)", [2, 0, 1, None]),
        ("s || '-' || s", ["abc-abc", "äÖ%-äÖ%", "-", None]),
        ("CONCAT(s, 'x')", ["abcx", "äÖ%x", "x", None]),
        ("SUBSTRING(s, 2)", ["bc", "Ö%", "", None]),
        ("SUBSTRING(s, 2, 1)", ["b", "Ö", "", None]),
        ("SUBSTRING(s, 0, 2)", ["ab", "äÖ", "", None]),
        ("SUBSTRING(s, -2)", ["bc", "Ö%", "", None]),
        ("SUBSTRING(s, -2, 1)", ["b", "Ö", "", None]),
        ("SUBSTRING(s, -5, 3)", ["a", "ä", "", None]),
        ("SUBSTRING(s, -2, 9)", ["bc", "Ö%", "", None]),
        ("SUBSTRING(s, 2, 0)", ["", "", "", None]),
        ("SUBSTRING(s, 2, -1)", ["", "", "", None]),
        ("TRIM(CONCAT('  ', s, ' '))", ["abc", "äÖ%", "", None]),
        ("LTRIM('a', s)", ["bc", "äÖ%", "", None]),
        ("RTRIM(CONCAT(s, '  '))", ["abc", "äÖ%", "", None]),
        ("TRIM(BOTH 'ac' FROM s)", ["b", "äÖ%", "", None]),
        ("s LIKE 'a%'", [True, False, False, None]),
        ("s LIKE '_b_'", [True, False, False, None]),
        ("s LIKE '__\\\\%'", [False, True, False, None]),
        ("s LIKE '__/%' ESCAPE '/'", [False, True, False, None]),
        ("s LIKE '%'", [True, True, True, None]),
        ("s NOT LIKE 'a%'", [False, True, True, None]),
        ("s ILIKE 'ABC'", [True, False, False, None]),
        ("s LIKE 'a.c'", [False, False, False, None]),
        ("s RLIKE 'a.c'", [True, False, False, None]),
        ("s RLIKE '^$'", [False, False, True, None]),
        ("s < 'b'", [True, False, True, None]),
        ("s = 'abc'", [True, False, False, None]),
        ("s <=> NULL", [False, False, False, True]),
        ("y = X'0102'", [True, False, False, None]),
        ("COALESCE(s, 'none')", ["abc", "äÖ%", "", "none"]),
        ("IF(s = 'abc', s, UPPER(s))", ["abc", "ÄÖ%", "", None]),
        ("s IN ('abc', '')", [True, False, True, None]),
        ("'it\\'s' = \"it's\"", [True] * 4),
        ("'a' 'b' = 'ab'", [True] * 4),
    ],
)
def test_texts(sql, expected):
    found, _ = answers(sql, s=(["abc", "äÖ%", "", None], TEXT),
                       y=([b"\x01\x02", b"", b"\xff", None], pa.binary()))
    same(found, expected)


@pytest.mark.parametrize("arrow", [pa.large_string(), pa.string_view(),
                                   pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_texts_of_other_layouts(arrow):
    column = pa.array(["abc", None, "x"]).cast(arrow)
    rows = pa.record_batch([column], names=["s"])
    node = Binder(rows.schema, NOTHING).bind(sqlglot.parse_one("s LIKE '%b%'", read="spark"))
    value = evaluate(node, Frame(3, {Side.LEFT: rows}))
    assert value.data.tolist() == [True, False, False]
    assert value.known(3).tolist() == [True, False, True]


MOMENT = datetime(2024, 2, 29, 23, 30, 15, 250000)
#: In Berlin 30 minutes past midnight, on the day after.
BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("YEAR(t)", 2024), ("MONTH(t)", 2), ("DAY(t)", 29), ("DAYOFMONTH(d)", 29),
        ("HOUR(t)", 23), ("MINUTE(t)", 30), ("SECOND(t)", 15), ("EXTRACT(HOUR FROM t)", 23),
        ("MONTH(d)", 2), ("YEAR(e)", 1969), ("HOUR(e)", 23), ("SECOND(e)", 59),
        ("DAY(z)", 1), ("HOUR(z)", 0), ("MONTH(z)", 3), ("CAST(z AS DATE)", date(2024, 3, 1)),
        ("CAST(z AS TIMESTAMP_NTZ)", datetime(2024, 3, 1, 0, 30, 15, 250000)),
        ("CAST(CAST(z AS TIMESTAMP_NTZ) AS TIMESTAMP) = z", True),
        ("t + INTERVAL '1' DAY", datetime(2024, 3, 1, 23, 30, 15, 250000)),
        ("t - INTERVAL 90 MINUTES", datetime(2024, 2, 29, 22, 0, 15, 250000)),
        ("INTERVAL '0.5' SECOND + t", datetime(2024, 2, 29, 23, 30, 15, 750000)),
        ("d + 1", date(2024, 3, 1)), ("d - 29", date(2024, 1, 31)),
        ("DATE_ADD(d, 1)", date(2024, 3, 1)), ("DATE_SUB(d, 1)", date(2024, 2, 28)),
        ("d + INTERVAL '1' DAY", date(2024, 3, 1)),
        ("d + INTERVAL '12' HOUR", datetime(2024, 2, 29, 12)),
        ("t - d", timedelta(hours=23, minutes=30, seconds=15.25)),
        ("t - e", MOMENT - datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("d - DATE '2024-02-01'", timedelta(days=28)),
        ("t - d > INTERVAL '23:30' HOUR TO MINUTE", True),
        ("ABS(e - t) > INTERVAL 54 DAYS", True),
        ("-(t - d) < INTERVAL 0 DAYS", True),
        ("INTERVAL '5' DAY * 2 = INTERVAL 10 DAYS", True),
        ("t > TIMESTAMP '2024-02-29 23:30:15.249999'", True),
        ("t > '2024-02-29 23:30:15.25'", False),
        ("d = '2024-02-29'", True),
        ("t > d", True),
        ("z = TIMESTAMP '2024-03-01 00:30:15.25'", True),
        ("z = TIMESTAMP '2024-02-29 23:30:15.25Z'", True),
        ("z >= DATE '2024-03-01'", True),
        ("z - TIMESTAMP '2024-03-01 00:30:15' = INTERVAL '0.25' SECOND", True),
        ("LEAST(t, d)", datetime(2024, 2, 29)),
        ("m = t", False), ("m + INTERVAL 250 MILLISECONDS = t", True),
        ("CAST('2024-02-29 23:30:15.25' AS TIMESTAMP_NTZ) = t", True),
        ("CAST(v AS TIMESTAMP_NTZ) = t", True), ("CAST(v AS DATE) = d", True),
        ("CAST(CONCAT(v, 'Z') AS TIMESTAMP) = z", True),
        ("CAST(v AS TIMESTAMP) = z - INTERVAL 1 HOUR", True),
        ("TRY_CAST(CONCAT('x', v) AS DATE) IS NULL", True),
    ],
)
def test_times(sql, expected):
    columns = {
        "t": ([MOMENT], pa.timestamp("us")), "d": ([MOMENT.date()], pa.date32()),
        "e": ([datetime(1969, 12, 31, 23, 59, 59, 999999)], pa.timestamp("us")),
        "m": ([MOMENT.replace(microsecond=0)], pa.timestamp("ms")), "z": ([MOMENT], BERLIN),
        "v": (["2024-02-29 23:30:15.250000"], TEXT),
    }
    same(answers(sql, **columns)[0], [expected])


@pytest.mark.parametrize(
    ("sql", "moment", "expected"),
    [
        # On 31 March 2024 Berlin's clocks went from 2 to 3, on 27 October from 3 to 2: a day there
        # may have 23 or 25 hours. These are Spark's answers, as instants.
        ("z + INTERVAL 1 DAY", (3, 30, 11), (3, 31, 10)),
        ("z + INTERVAL 24 HOURS", (3, 30, 11), (3, 31, 10)),
        ("z + INTERVAL 23 HOURS", (3, 30, 11), (3, 31, 10)),
        ("z + INTERVAL 1 DAY", (3, 30, 1, 30), (3, 31, 1, 30)),
        ("z + INTERVAL '1 01:00' DAY TO MINUTE", (3, 30, 1, 30), (3, 31, 2, 30)),
        ("z + INTERVAL 1 DAY", (10, 26, 0, 30), (10, 27, 0, 30)),
        ("z - INTERVAL 1 DAY", (10, 28, 1, 30), (10, 27, 1, 30)),
        ("INTERVAL -1 DAY + z", (10, 28, 1, 30), (10, 27, 1, 30)),
        ("z - INTERVAL 47 HOURS", (3, 31, 10), (3, 29, 12)),
        ("z + (z - z)", (3, 31, 10), (3, 31, 10)),
        ("CAST(CAST(z AS TIMESTAMP_NTZ) + INTERVAL 1 DAY AS TIMESTAMP)", (3, 30, 1, 30),
         (3, 31, 1, 30)),
        ("CAST(CAST(z AS TIMESTAMP_NTZ) AS TIMESTAMP)", (10, 27, 0, 30), (10, 27, 0, 30)),
        ("CAST(CAST(z AS TIMESTAMP_NTZ) AS TIMESTAMP)", (10, 27, 1, 30), (10, 27, 0, 30)),
    ],
)
def test_days_of_a_zone_are_by_its_clock(sql, moment, expected):
    found, _ = answers(sql, z=([datetime(2024, *moment)], BERLIN))
    assert found == [datetime(2024, *expected)]


def test_differences_of_a_zone_are_by_its_clock():
    rows = {"z": ([datetime(2024, 3, 31, 10)], BERLIN), "o": ([datetime(2024, 3, 30, 11)], BERLIN)}
    assert answers("z - o", **rows)[0] == [timedelta(days=1)]
    assert answers("z - TIMESTAMP '2024-03-30 12:00:00'", **rows)[0] == [timedelta(days=1)]
    utc = {name: (values, pa.timestamp("us", "UTC")) for name, (values, _) in rows.items()}
    assert answers("z - o", **utc)[0] == [timedelta(hours=23)]
    assert answers("o + INTERVAL 1 DAY", **utc)[0] == [datetime(2024, 3, 31, 11)]


def test_a_wall_clock_needs_a_zone_that_the_columns_share():
    """With two zones, times without one are read in UTC."""
    rows = {"z": ([MOMENT], BERLIN), "o": ([MOMENT], pa.timestamp("us", "America/New_York")),
            "t": ([MOMENT], pa.timestamp("us"))}
    assert answers("CAST(t AS TIMESTAMP) = z", **rows)[0] == [True]
    del rows["o"]
    assert answers("CAST(t AS TIMESTAMP) < z", **rows)[0] == [True]


def test_a_decimal_becomes_the_nearest_double():
    """Not by way of the double that is nearest to its digits."""
    digits = Decimal("237396884642372.18")
    assert float(23739688464237218) / 100.0 != float(digits)
    assert answers("CAST(p AS DOUBLE)", p=([digits], money(18, 2)))[0] == [float(digits)]


def test_what_lies_under_a_null_is_not_looked_at():
    """Arrow leaves anything there, also what would overflow."""
    numbers = np.array([2**31 - 1, 5], np.int32)
    validity = pa.py_buffer(bytes([0b10]))
    column = pa.Array.from_buffers(I32, 2, [validity, pa.py_buffer(numbers)])
    rows = pa.record_batch([column], names=["a"])
    node = Binder(rows.schema, NOTHING).bind(sqlglot.parse_one("100 DIV (a + a)", read="spark"))
    value = evaluate(node, Frame(2, {Side.LEFT: rows}))
    assert value.known(2).tolist() == [False, True]
    assert value.data[1] == 10


def test_constants_are_folded_and_their_errors_come_first():
    with pytest.raises(ConditionError, match=exactly("`5 DIV 0` divides by zero")):
        answers("5 DIV 0")
    with pytest.raises(ConditionError, match=exactly("`CAST('x' AS INT)` meets a value that is no "
                                                     "INT")):
        answers("CAST('x' AS INT)")
    assert answers("2 * 3 + 4 % 3")[0] == [7]
    assert answers("CONCAT(UPPER('a'), 'b')")[0] == ["Ab"]
    assert answers("CASE WHEN 1 > 2 THEN 'x' END") == ([None], "STRING")


DIGITS = st.decimals(-(10**15), 10**15, places=2, allow_nan=False)


@settings(max_examples=150)
@given(st.lists(st.tuples(DIGITS, DIGITS), min_size=1, max_size=8))
def test_decimal_arithmetic_is_exact(rows):
    a, b = zip(*rows, strict=True)
    columns = {"a": (a, money(18, 2)), "b": (b, money(18, 2))}
    assert answers("a + b", **columns)[0] == [WIDE.add(x, y) for x, y in rows]
    assert answers("a - b", **columns)[0] == [WIDE.subtract(x, y) for x, y in rows]
    assert answers("a * b", **columns)[0] == [WIDE.multiply(x, y) for x, y in rows]
    assert answers("a * 2 < b + 0.005", **columns)[0] == [
        WIDE.multiply(x, 2) < WIDE.add(y, Decimal("0.005")) for x, y in rows]
    assert answers("CAST(a AS DOUBLE)", **columns)[0] == [float(x) for x in a]


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)),
                min_size=1, max_size=6))
def test_integer_division_is_towards_zero(rows):
    rows = [(a, b) for a, b in rows if b and (a, b) != (-(2**63), -1)] or [(1, 1)]
    a, b = zip(*rows, strict=True)
    columns = {"a": (a, I64), "b": (b, I64)}
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in rows]
    assert answers("a DIV b", **columns)[0] == quotients
    assert answers("a % b", **columns)[0] == [
        x - y * q for (x, y), q in zip(rows, quotients, strict=True)]
