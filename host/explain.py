"""The plan of a join in words: what runs where, how it is cut up, what is kept."""

from collections.abc import Sequence

from host.backends.choice import BackendOpener, backend_opener, condition_of
from host.chain import subwindow_rows
from host.chooser import Chooser
from host.options import JoinOptions
from hw.spec.tuples import Side
from hw.spec.windows import NoWindow, RowWindow, TimeWindow

__all__ = ["Line", "as_json", "as_text", "duration", "explain"]

#: What is decided, and the decision.
Line = tuple[str, str]


def explain(options: JoinOptions) -> list[Line]:
    """The plan, in the order in which tuples meet it; raises what the join itself would raise."""
    condition = condition_of(options)
    opener = backend_opener(options, condition.key_bits, condition.plan.both)
    engine = opener.name
    return [
        *condition.explain(),
        ("window", _window(options)),
        ("subwindows", _subwindows(options, engine)),
        ("state", _state(options)),
        ("batches", _batches(options)),
        ("workers", _workers(options)),
        ("backend", _backend(options, engine)),
        ("index", _index(options, opener, condition.plan.both)),
        ("result", _result(options)),
    ]


def as_text(lines: Sequence[Line]) -> str:
    width = max(len(label) for label, _ in lines)
    return "\n".join(f"{label.ljust(width)}  {text}" for label, text in lines)


def as_json(lines: Sequence[Line]) -> dict[str, str | list[str]]:
    """Label -> text; a label that comes more than once has a list of its texts."""
    grouped: dict[str, list[str]] = {}
    for label, text in lines:
        grouped.setdefault(label, []).append(text)
    return {label: texts if len(texts) > 1 else texts[0] for label, texts in grouped.items()}


def duration(microseconds: int) -> str:
    """600000000 -> '10 minutes': a whole number of the largest unit that allows one."""
    units = (
        ("day", 86_400_000_000), ("hour", 3_600_000_000), ("minute", 60_000_000),
        ("second", 1_000_000), ("millisecond", 1_000), ("microsecond", 1),
    )
    for unit, size in units:
        if microseconds and microseconds % size == 0:
            count = microseconds // size
            return f"{count:,} {unit}{'s' if abs(count) != 1 else ''}"
    return "0 seconds"


def _window(options: JoinOptions) -> str:
    match options.parsed_window:
        case RowWindow() as window:
            return f"the last {window.left:,} left and {window.right:,} right rows"
        case TimeWindow() as window:
            assert options.time_columns is not None
            left, right = options.time_columns
            lo, hi = duration(window.lo_us), duration(window.hi_us)
            return f"{lo} <= r.{right} - l.{left} <= {hi}"
        case NoWindow():
            return "none: every tuple meets the other stream's whole history"


def _subwindows(options: JoinOptions, engine: str) -> str:
    sides = [_subwindows_of(options, side, engine) for side in Side]
    if sides[0] == sides[1]:
        return f"each side: {sides[0]}"
    return f"left: {sides[0]}; right: {sides[1]}"


def _subwindows_of(options: JoinOptions, side: Side, engine: str) -> str:
    window = options.parsed_window
    rows = options.subwindow or subwindow_rows(window, side, engine)
    if isinstance(window, RowWindow):
        # The window's rows seldom end where a subwindow does.
        most = -(-window.rows(side) // rows) + 1
        return f"{rows:,} rows, at most {most:,} at a time"
    if isinstance(window, TimeWindow):
        return f"{rows:,} rows, fewer where these span much of the window; as many as state needs"
    return f"{rows:,} rows, growing with the history; none ever expires"


def _state(options: JoinOptions) -> str:
    match options.parsed_window:
        case RowWindow():
            return "the window's rows are kept; the oldest subwindow expires whole"
        case NoWindow():
            return "full history is kept"
        case TimeWindow():
            if options.lateness_us is None:
                return "without a lateness all state is kept and no tuple is late"
            late = "dropped and counted" if options.late == "drop" else "kept for the side output"
            return (
                "freed by the watermarks: newest time of each stream minus "
                f"{duration(options.lateness_us)}; late tuples are {late}"
            )


def _batches(options: JoinOptions) -> str:
    wait = f", or after {options.linger:g} s" if options.linger else ""
    return f"{options.batch:,} tuples of a stream at most{wait}"


def _workers(options: JoinOptions) -> str:
    if options.workers == 1:
        return "1, which holds every subwindow"
    return f"{options.workers}, to which subwindows are dealt in turn (round robin)"


def _backend(options: JoinOptions, engine: str) -> str:
    sizes = f", with {_params(options)}" if options.params else ""
    if options.backend == "auto":
        return f"{engine}, the best of this version that is here (auto){sizes}"
    return f"{engine}, as asked for" + (f", on {options.device}" if options.device else "") + sizes


def _params(options: JoinOptions) -> str:
    given = options.params or {}
    if isinstance(given, str):
        return given
    return ",".join(f"{name}={value}" for name, value in given.items())


def _index(options: JoinOptions, engine: BackendOpener, both: bool) -> str:
    if options.index != "auto":
        return f"{options.index}, as asked for"
    if both:
        return "po, which searches both predicates at once (auto)"
    if engine.batch is None:
        return f"bisort, which {engine.name} has (auto)"
    rows = options.subwindow or subwindow_rows(
        options.parsed_window, Side.RIGHT, engine.name
    )
    choice = Chooser(engine.batch, engine.name).decide(Side.RIGHT, rows)
    return f"{choice.structure} at first: {choice.why}; decided again with each subwindow (auto)"


def _result(options: JoinOptions) -> str:
    order = {
        "none": "in no particular order",
        "outer": "in the order of the tuples that complete them",
        "strict": "in order of arrival of both partners",
    }[options.order]
    if options.emit == "counts":
        return "counts: one row for each tuple, in order of arrival: side, row, matches"
    if options.emit == "aggregate":
        names = ", ".join(aggregate.name for aggregate in options.parsed_aggregates)
        return f"aggregates: one row for each tuple, in order of arrival: side, row, {names}"
    return f"pairs {order}: {', '.join(column.name for column in options.selected)}"
