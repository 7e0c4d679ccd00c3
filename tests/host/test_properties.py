"""Random joins: the law again, whatever the condition, the arrivals, the pushes and the engine."""

import datetime
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hw.spec import reference
from hw.spec.tuples import Side
from hw.spec.windows import TimeWindow, parse_window
from tests.conftest import BACKENDS
from tests.helpers import (
    arrival_of,
    expected_pairs,
    join_of,
    pairs_of,
    push_all,
    run_join,
    same_pairs,
    share,
    stream,
)

SIGNS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Family:
    """Types that compare with each other, and how.

    values    of each type: many small ones, some at its ends
    unit      a distance of one, as SQL: {0} is the number
    add       a value and a number of units
    place     where a value stands in SQL's order
    minus     the difference of two values, or None where SQL has no number for it
    """

    values: dict
    unit: str = "{0}"
    add: Callable = lambda value, units: value + units
    place: Callable = lambda value: value
    minus: Callable | None = lambda a, b: a - b


def integers(kind):
    smallest = -(1 << (kind.bit_width - 1)) if pa.types.is_signed_integer(kind) else 0
    largest = smallest + (1 << kind.bit_width) - 1
    ends = st.sampled_from([smallest, smallest + 1, largest - 1, largest])
    return st.one_of(st.integers(max(smallest, -4), 4), ends)


def floats(kind):
    """A family of one: the arithmetic of SQL is that of the type."""
    scalar = kind.to_pandas_dtype()
    ends = [np.finfo(scalar).max, np.finfo(scalar).min, np.finfo(scalar).smallest_subnormal]
    values = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 3.0, math.nan, math.inf, -math.inf, *map(float, ends)]

    def minus(a, b):
        with np.errstate(all="ignore"):
            return float(scalar(a) - scalar(b))

    return Family(
        {kind: st.sampled_from(values)},
        add=lambda value, units: minus(value, -units),
        # NaN equals NaN and is larger than every number.
        place=lambda value: (math.isnan(value), 0.0 if math.isnan(value) else value),
        minus=minus,
    )


def since(start, **unit):
    return st.integers(-4, 4).map(lambda units: start + units * datetime.timedelta(**unit))


FAMILIES = {
    "integers": Family(
        {
            kind: integers(kind)
            for kind in (pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64())
        }
    ),
    "float32": floats(pa.float32()),
    "float64": floats(pa.float64()),
    "decimals": Family(
        {
            pa.decimal128(4, 1): st.integers(-40, 40).map(lambda n: Decimal(n).scaleb(-1)),
            pa.decimal128(9, 2): st.one_of(
                st.integers(-40, 40).map(lambda n: Decimal(10 * n).scaleb(-2)),
                st.sampled_from([Decimal("9999999.99"), Decimal("-9999999.99")]),
            ),
        }
    ),
    "dates": Family(
        {pa.date32(): since(datetime.date(2024, 2, 28), days=1)},
        unit="INTERVAL '{0}' DAY",
        add=lambda value, units: value + datetime.timedelta(days=units),
        minus=None,
    ),
    "times": Family(
        {pa.timestamp("us"): since(datetime.datetime(1969, 12, 31, 23, 59, 59), seconds=1)},
        unit="INTERVAL '{0}' SECOND",
        add=lambda value, units: value + datetime.timedelta(seconds=units),
        minus=None,
    ),
}


@dataclass(frozen=True)
class Condition:
    """SQL text and the same over plain values; `more` is of the columns c."""

    family: str
    text: str
    holds: Callable
    more: Callable | None = None

    def __call__(self, left, right):
        a, b, c, d = left["a"], right["b"], left["c"], right["c"]
        if a is None or b is None or not self.holds(a, b):
            return False
        return self.more is None or (c is not None and d is not None and self.more(c, d))


def shifted(name, offset, family):
    if not offset:
        return name
    return f"{name} {'+' if offset > 0 else '-'} {family.unit.format(abs(offset))}"


@st.composite
def comparisons(draw, family):
    sign, offset = draw(st.sampled_from(sorted(SIGNS))), draw(st.integers(-3, 3))
    test, place, add = SIGNS[sign], family.place, family.add
    there = shifted("r.b", offset, family)
    if draw(st.booleans()):
        return f"l.a {sign} {there}", lambda a, b: test(place(a), place(add(b, offset)))
    return f"{there} {sign} l.a", lambda a, b: test(place(add(b, offset)), place(a))


@st.composite
def bands(draw, family):
    lo, hi = draw(st.integers(-4, 4)), draw(st.integers(-4, 4))
    negated = draw(st.booleans())
    ends = f"{shifted('r.b', lo, family)} AND {shifted('r.b', hi, family)}"
    place, add = family.place, family.add
    return (
        f"l.a {'NOT ' * negated}BETWEEN {ends}",
        lambda a, b: (place(add(b, lo)) <= place(a) <= place(add(b, hi))) != negated,
    )


@st.composite
def differences(draw, family):
    low, high = draw(st.sampled_from([">", ">="])), draw(st.sampled_from(["<", "<="]))
    lo, hi = draw(st.integers(-4, 4)), draw(st.integers(-4, 4))
    place, minus = family.place, family.minus

    def holds(a, b):
        apart = place(minus(b, a))
        return SIGNS[low](apart, place(lo)) and SIGNS[high](apart, place(hi))

    return f"r.b - l.a {low} {lo} AND r.b - l.a {high} {hi}", holds


@st.composite
def unions(draw, family):
    parts = draw(st.lists(st.one_of(bands(family), comparisons(family)), min_size=2, max_size=3))
    text = " OR ".join(text for text, _ in parts)
    return f"({text})", lambda a, b: any(holds(a, b) for _, holds in parts)


MORE = {
    "": None,
    " AND l.c = r.c": lambda c, d: c == d,
    " AND l.c < r.c": lambda c, d: c < d,
    " AND (l.c + r.c) % 2 = 0": lambda c, d: (c + d) % 2 == 0,
    " AND l.c > 0 AND r.c <> 1": lambda c, d: c > 0 and d != 1,
}


@st.composite
def conditions(draw):
    name = draw(st.sampled_from(list(FAMILIES)))
    family = FAMILIES[name]
    kinds = [comparisons(family), bands(family), unions(family)]
    if family.minus is not None:
        kinds.append(differences(family))
    text, holds = draw(st.one_of(kinds))
    more = draw(st.sampled_from(list(MORE)))
    return Condition(name, text + more, holds, MORE[more])


@st.composite
def keys(draw, family, count):
    """A column of a type of the family: many values are equal, some NULL, some extreme."""
    kind = draw(st.sampled_from(list(family.values)))
    one = st.one_of(family.values[kind], family.values[kind], st.none())
    return pa.array(draw(st.lists(one, min_size=count, max_size=count)), kind)


@st.composite
def times(draw, count):
    """Event times in seconds, mostly going on, sometimes unknown."""
    one = st.one_of(st.integers(-4, 8), st.none())
    steps = draw(st.lists(one, min_size=count, max_size=count))
    micros, now = [], 0
    for step in steps:
        now += step or 0
        micros.append(None if step is None else now * 1_000_000)
    return pa.array(micros, pa.timestamp("us"))


splits = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)


@st.composite
def windows(draw):
    """A window's text with the options that belong to it."""
    kind = draw(st.sampled_from(["rows", "time", "none"]))
    if kind == "none":
        return "none", {}
    if kind == "rows":
        rows = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
        return f"rows {rows[0]},{rows[1]}", {}
    ends = sorted(draw(st.tuples(st.integers(-6, 6), st.integers(-6, 6))))
    options = {"time": "t"}
    lateness = draw(st.one_of(st.none(), st.integers(0, 5)))
    if lateness is not None:
        options["lateness"] = f"{lateness} s"
    return f"{ends[0]} s..{ends[1]} s", options


engines = st.fixed_dictionaries(
    {
        "backend": st.sampled_from(BACKENDS),
        "batch": st.sampled_from([1, 2, 3, 7, 100]),
        "workers": st.sampled_from([1, 2, 5]),
        "subwindow": st.sampled_from([1, 2, 5, None]),
        "linger": st.sampled_from([0, 60]),
    }
)


@dataclass(frozen=True)
class Case:
    """A join and what the reference says of it."""

    on: Condition
    window: str
    options: dict
    left: pa.Table
    right: pa.Table
    splits: list

    def _repr_pretty_(self, printer, cycle):
        """One line to a thing, as a reader of a failure wants it."""
        said = [
            f"{letter}.{table.schema.field(1).name}: {table.schema.field(1).type} "
            + str(list(map(str, table.column(1).to_pylist())))
            + (f" with c {table.column('c').to_pylist()}" if self.on.more else "")
            + (f" at seconds {self._seconds(table)}" if self.options else "")
            for letter, table in zip("lr", (self.left, self.right), strict=True)
        ]
        said += [self.on.text, f"window {self.window} {self.options}", f"pushed {self.splits}"]
        printer.text("\n    ".join(["", *said]))

    @staticmethod
    def _seconds(table):
        micros = table.column("t").cast(pa.int64()).to_pylist()
        return [None if time is None else time // 1_000_000 for time in micros]

    @property
    def arrival(self):
        return arrival_of(self.splits)

    @property
    def wanted(self):
        return expected_pairs(
            self.on, self.window, self.left, self.right, self.arrival, **self.options
        )

    def run(self, **engine):
        return run_join(
            self.on.text, self.window, self.left, self.right, self.splits,
            **self.options, **engine,
        )  # fmt: skip


@st.composite
def cases(draw):
    on, (window, options), pushed = draw(conditions()), draw(windows()), draw(splits)
    tables = []
    for name, count in zip("ab", map(sum, zip(*pushed, strict=True)), strict=True):
        small = st.one_of(st.integers(0, 2), st.none())
        more = draw(st.lists(small, min_size=count, max_size=count)) if on.more else [None] * count
        columns = {name: draw(keys(FAMILIES[on.family], count)), "c": pa.array(more, pa.int32())}
        if options:
            columns["t"] = draw(times(count))
        tables.append(stream(**columns))
    return Case(on, window, options, *tables, pushed)


@share(50)
@given(cases(), engines)
def test_every_join_is_the_references(case, engine):
    same_pairs(case.run(**engine), case.wanted)


@share(15)
@given(cases(), engines)
def test_counts_are_of_the_tuple_that_came_later(case, engine):
    with join_of(
        case.on.text, case.window, case.left, case.right, emit="counts", **case.options, **engine
    ) as join:
        found = pairs_of(push_all(join, case.left, case.right, case.splits))
        tuples, pairs = sum(join.metrics.tuples), join.metrics.pairs
    assert found == reference.match_counts(case.arrival, case.wanted)
    assert (tuples, pairs) == (len(case.arrival), len(case.wanted))


@share(15)
@given(cases(), engines, st.sampled_from(["outer", "strict"]))
def test_ordered_results_follow_the_arrivals(case, engine, order):
    found, wanted = case.run(order=order, **engine), case.wanted
    place = {who: position for position, who in enumerate(case.arrival)}

    def later(pair):
        return max(place[Side.LEFT, pair[0]], place[Side.RIGHT, pair[1]])

    assert [later(pair) for pair in found] == [later(pair) for pair in wanted]
    same_pairs(found, wanted)
    if order == "strict":
        assert found == wanted


@share(20)
@given(cases(), engines, st.data())
def test_the_order_of_pushing_does_not_matter(case, engine, data):
    """With arrival columns the same tuples may be pushed in any parts."""
    place = {who: position for position, who in enumerate(case.arrival)}
    tables = [
        table.append_column("at", pa.array([place[side, row] for row in range(table.num_rows)],
                                           pa.int64()))
        for side, table in zip(Side, (case.left, case.right), strict=True)
    ]
    rest, parts = [table.num_rows for table in tables], []
    while any(rest):
        part = [data.draw(st.integers(0, count), label="part") for count in rest]
        if not any(part):
            part = rest
        parts.append(tuple(part))
        rest = [rest[side] - part[side] for side in Side]
    found = run_join(
        case.on.text, case.window, *tables, parts, arrival="at", **case.options, **engine
    )
    same_pairs(found, case.wanted)


@share(5)
@given(cases(), engines)
def test_state_does_not_outgrow_its_window(case, engine):
    """Rows that no later tuple can see are gone once a subwindow of them has filled."""
    subwindow = engine["subwindow"]
    window = parse_window(case.window)
    with join_of(
        case.on.text, case.window, case.left, case.right, **case.options, **engine
    ) as join:
        for _ in push_all(join, case.left, case.right, case.splits):
            pass
        held = [sum(part.rows for part in chain) for chain in join.manager.chains]
    for side, table in zip(Side, (case.left, case.right), strict=True):
        if isinstance(window, TimeWindow) or window == parse_window("none"):
            assert held[side] <= table.num_rows
        elif subwindow is not None:
            assert held[side] <= window.rows(side) + subwindow - 1
