"""JoinOptions: what a join is asked to do, checked before the first tuple."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches

import pyarrow as pa

from host.aggregates import Aggregate, Measure, parse_aggregates
from host.errors import OptionError
from hw.spec.params import JoinParams, parse_params
from hw.spec.tuples import Side
from hw.spec.windows import TimeWindow, Window, parse_duration, parse_window

__all__ = ["BACKENDS", "EMITS", "INDEXES", "ORDERS", "JoinOptions", "Selected"]

ORDERS = ("none", "outer", "strict")
BACKENDS = ("auto", "numpy", "opencl", "rtl", "board")
INDEXES = ("auto", "bisort", "rap", "wib", "chain", "im", "pim", "po", "btree", "hash", "loop")
EMITS = ("pairs", "counts", "aggregate")
LATE = ("drop", "keep")


@dataclass(frozen=True)
class Selected:
    """One column of the result: a column of one side under its result name."""

    side: Side
    column: str

    @property
    def name(self) -> str:
        return f"{self.side.letter}_{self.column}"


@dataclass(frozen=True, kw_only=True)
class JoinOptions:
    """Every option of a join, under the names of the command line.

    on        condition, SQL text over l. and r. columns
    window    'rows N', 'rows N,M', '10 minutes', '-5 minutes..10 minutes', 'none'
    left, right   schemas of the streams
    time      event-time column of each stream (one name serves both); time windows need it
    lateness  how far behind its stream's newest time a tuple may come, e.g. '1 minute'
    arrival   columns that give the one order of arrival
    backend, device, index   which engine, on what, with which subwindow structure
    params    sizes of the engine, {"mergers": 4} or 'mergers=4'; 'mode=paper' is PanJoin's own
    batch     most tuples of a stream in one batch (PanJoin's maximum tuple count)
    linger    seconds that tuples may wait for a batch to fill (its maximum collecting time)
    workers   engines that the subwindows are dealt to
    order     'none', 'outer' or 'strict'
    emit      'pairs', 'counts' or 'aggregate'
    aggregates  with emit='aggregate': {"n": "count(*)", "total": "sum(r.qty)"}, or the same as
              text, 'n=count(*),total=sum(r.qty)'
    select    columns of the result, e.g. ['l.id', 'r.id']; all by default
    late      'drop', or 'keep' for the side output
    subwindow rows of a subwindow; chosen from the window by default
    """

    on: str
    window: str
    left: pa.Schema
    right: pa.Schema
    time: str | Sequence[str] | None = None
    lateness: str | None = None
    arrival: str | Sequence[str] | None = None
    backend: str = "auto"
    device: str | None = None
    index: str = "auto"
    params: str | Mapping[str, int | str] | None = None
    batch: int = 1 << 15
    linger: float = 0.0
    workers: int = 1
    order: str = "none"
    emit: str = "pairs"
    select: str | Sequence[str] | None = None
    aggregates: str | Mapping[str, str] | None = None
    late: str = "drop"
    subwindow: int | None = None

    parsed_window: Window = field(init=False, repr=False, compare=False)
    lateness_us: int | None = field(init=False, repr=False, compare=False)
    time_columns: tuple[str, str] | None = field(init=False, repr=False, compare=False)
    arrival_columns: tuple[str, str] | None = field(init=False, repr=False, compare=False)
    selected: tuple[Selected, ...] = field(init=False, repr=False, compare=False)
    parsed_aggregates: tuple[Aggregate, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, allowed in (
            ("backend", BACKENDS), ("index", INDEXES), ("order", ORDERS), ("emit", EMITS),
            ("late", LATE),
        ):
            _one_of(name, getattr(self, name), allowed)
        if self.index not in ("auto", "bisort") and self.backend not in ("auto", "numpy"):
            raise OptionError(
                f"index {self.index!r} runs on the host, and the backend {self.backend!r} has only "
                "'bisort': use backend 'numpy' or leave it out"
            )
        for name in ("batch", "workers", "subwindow"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise OptionError(f"{name} must be a whole number from 1 on, not {value!r}")
        if not self.linger >= 0:
            raise OptionError(f"linger must be seconds from 0 on, not {self.linger!r}")
        for side in Side:
            _distinct_names(side, self.schema(side))
        put = object.__setattr__
        put(self, "parsed_window", _said("window", self.window, parse_window))
        put(self, "lateness_us", self._checked_lateness())
        put(self, "time_columns", self._columns("time", self.time))
        put(self, "arrival_columns", self._columns("arrival", self.arrival))
        put(self, "selected", self._checked_select())
        put(self, "parsed_aggregates", self._checked_aggregates())
        self._check_time()
        self.engine_params()

    def engine_params(self, key_bits: int = 32) -> JoinParams:
        """The sizes of the engine; those that follow from the join itself cannot be given."""
        fixed = {"key_bits": key_bits, "subwindow": JoinParams().subwindow}
        try:
            return parse_params(self.params, **fixed)
        except ValueError as error:
            raise OptionError(f"params: {error}") from None

    def schema(self, side: Side) -> pa.Schema:
        return (self.left, self.right)[side]

    def _checked_lateness(self) -> int | None:
        if self.lateness is None:
            return None
        lateness_us: int = _said("lateness", self.lateness, parse_duration)
        if lateness_us < 0:
            raise OptionError(f"lateness must not be negative, and {self.lateness!r} is")
        return lateness_us

    def _columns(self, option: str, value: str | Sequence[str] | None) -> tuple[str, str] | None:
        """A column of each side: one name serves both."""
        if value is None:
            return None
        names = [name.strip() for name in value.split(",")] if isinstance(value, str) else [*value]
        if len(names) not in (1, 2):
            raise OptionError(f"{option} takes one column or two, not {len(names)}")
        pair = (names[0], names[-1])
        for side in Side:
            if pair[side] not in self.schema(side).names:
                raise OptionError(_unknown(option, side, pair[side], self.schema(side)))
        return pair

    def _checked_select(self) -> tuple[Selected, ...]:
        if self.select is None:
            return tuple(
                Selected(side, name) for side in Side for name in self.schema(side).names
            )
        value = self.select
        wanted = value.split(",") if isinstance(value, str) else [*value]
        return tuple(self._selected(text.strip()) for text in wanted)

    def _checked_aggregates(self) -> tuple[Aggregate, ...]:
        if self.emit != "aggregate" and self.aggregates is not None:
            raise OptionError(f"aggregates go with emit='aggregate', not with {self.emit!r}")
        if self.emit != "aggregate":
            return ()
        if not self.aggregates:
            raise OptionError("emit='aggregate' needs aggregates, like {'n': 'count(*)'}")
        wanted = self.aggregates
        if isinstance(wanted, str):
            parts = [part.partition("=") for part in wanted.split(",")]
            wanted = {name.strip(): text for name, _, text in parts}
        return parse_aggregates(wanted, (self.left, self.right))

    def measures(self, side: Side) -> tuple[Measure, ...]:
        """What the tuples of a stream carry for the aggregates, each once."""
        every = [m for one in self.parsed_aggregates for m in one.measures if m.side is side]
        return tuple(dict.fromkeys(every))

    def _selected(self, text: str) -> Selected:
        letter, dot, name = text.partition(".")
        if letter not in ("l", "r") or not dot:
            raise OptionError(f"select takes columns like l.id and r.id, not {text!r}")
        side = Side("lr".index(letter))
        if name not in self.schema(side).names:
            raise OptionError(_unknown("select", side, name, self.schema(side)))
        return Selected(side, name)

    def _check_time(self) -> None:
        timed = isinstance(self.parsed_window, TimeWindow)
        if self.lateness is not None and not timed:
            raise OptionError(
                f"lateness goes with a time window, and the window is {self.window!r}: leave it out"
            )
        if not timed:
            return
        if self.time_columns is None:
            raise OptionError(
                f"the window {self.window!r} is of time: name the event-time column with time"
            )
        zones = [
            _is_zoned(side, self.time_columns[side], self.schema(side)) for side in Side
        ]
        if zones[0] != zones[1]:
            raise OptionError(
                f"time columns l.{self.time_columns[0]} and r.{self.time_columns[1]} must both "
                "have a time zone or both have none: cast one of them"
            )


def _is_zoned(side: Side, name: str, schema: pa.Schema) -> bool:
    kind = schema.field(name).type
    if not pa.types.is_timestamp(kind) and not pa.types.is_date(kind):
        raise OptionError(
            f"time column {side.letter}.{name} is {kind}, not a timestamp or a date: cast it"
        )
    return pa.types.is_timestamp(kind) and kind.tz is not None


def _one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise OptionError(f"{option} must be one of {', '.join(allowed)}, not {value!r}")


def _said(option: str, text: str, parse):  # type: ignore[no-untyped-def]
    """What a parser makes of an option's text, its complaint as an OptionError."""
    if not isinstance(text, str):
        raise OptionError(f"{option} must be text, not {text!r}")
    try:
        return parse(text)
    except ValueError as error:
        raise OptionError(f"{option}: {error}") from None


def _distinct_names(side: Side, schema: pa.Schema) -> None:
    if not isinstance(schema, pa.Schema):
        raise OptionError(f"{side.name.lower()} must be a pyarrow schema, not {schema!r}")
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise OptionError(f"{side.name.lower()} has more than one column {twice[0]!r}: rename one")


def _unknown(option: str, side: Side, name: str, schema: pa.Schema) -> str:
    near = get_close_matches(name, schema.names, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(schema.names)}"
    return f"{option}: {side.name.lower()} has no column {name!r}, {hint}"
