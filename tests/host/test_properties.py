"""Random joins: the law again, whatever the condition, the arrivals, the pushes and the engine."""

from dataclasses import dataclass

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

INTEGERS = {
    pa.int8(): (-(1 << 7), (1 << 7) - 1),
    pa.uint8(): (0, (1 << 8) - 1),
    pa.int16(): (-(1 << 15), (1 << 15) - 1),
    pa.int32(): (-(1 << 31), (1 << 31) - 1),
    pa.uint32(): (0, (1 << 32) - 1),
    pa.int64(): (-(1 << 63), (1 << 63) - 1),
}
SIGNS = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Condition:
    """SQL text and the same over plain values, NULL left out."""

    text: str
    holds: object

    def _repr_pretty_(self, printer, cycle):
        printer.text(self.text)

    def __call__(self, left, right):
        if left["a"] is None or right["b"] is None:
            return None
        return self.holds(left["a"], right["b"])


def shifted(name, offset):
    return name if not offset else f"{name} {'+' if offset > 0 else '-'} {abs(offset)}"


@st.composite
def comparisons(draw):
    sign, offset = draw(st.sampled_from(sorted(SIGNS))), draw(st.integers(-3, 3))
    test = SIGNS[sign]
    if draw(st.booleans()):
        return Condition(f"l.a {sign} {shifted('r.b', offset)}", lambda a, b: test(a, b + offset))
    return Condition(f"{shifted('r.b', offset)} {sign} l.a", lambda a, b: test(b + offset, a))


@st.composite
def bands(draw):
    lo, hi = draw(st.integers(-4, 4)), draw(st.integers(-4, 4))
    negated = draw(st.booleans())
    text = f"l.a {'NOT ' * negated}BETWEEN {shifted('r.b', lo)} AND {shifted('r.b', hi)}"
    return Condition(text, lambda a, b: (b + lo <= a <= b + hi) != negated)


@st.composite
def exclusive_bands(draw):
    low, high = draw(st.sampled_from([">", ">="])), draw(st.sampled_from(["<", "<="]))
    lo, hi = draw(st.integers(-4, 4)), draw(st.integers(-4, 4))
    text = f"r.b - l.a {low} {lo} AND r.b - l.a {high} {hi}"
    return Condition(text, lambda a, b: SIGNS[low](b - a, lo) and SIGNS[high](b - a, hi))


conditions = st.one_of(comparisons(), bands(), exclusive_bands())


@st.composite
def keys(draw, kind, count):
    """Values of which many are equal, some NULL and some at the ends of the type."""
    smallest, largest = INTEGERS[kind]
    one = st.one_of(
        st.integers(max(smallest, -4), 4),
        st.none(),
        st.sampled_from([smallest, smallest + 1, largest - 1, largest]),
    )
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
            + str(table.column(1).to_pylist())
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
    on, (window, options), pushed = draw(conditions), draw(windows()), draw(splits)
    tables = []
    for name, count in zip("ab", map(sum, zip(*pushed, strict=True)), strict=True):
        kind = draw(st.sampled_from(list(INTEGERS)))
        columns = {name: draw(keys(kind, count))}
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
