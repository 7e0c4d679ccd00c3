"""The command line: watersmeet join | explain | devices | selftest | bench | flash | serve."""

import argparse
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from typing import Any, NoReturn

from host.errors import JoinError
from host.options import BACKENDS, EMITS, INDEXES, LATE, ORDERS
from hw.spec.windows import TimeWindow, parse_duration, parse_window

__all__ = ["main"]

_INTERRUPTED, _TERMINATED, _READER_GONE = 130, 143, 141
#: Options whose values may begin with a minus: '-5s..10s', '-l.a < r.b'.
_MAY_BE_NEGATIVE = ("--on", "--window", "--lateness")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever goes wrong is one line on stderr."""
    try:
        arguments = _parser().parse_args(_joined_values(sys.argv[1:] if argv is None else argv))
        if "window" in arguments:
            _check_together(arguments)
        return _run(arguments)
    except SystemExit as ended:  # argparse: --help, --version, bad use
        return ended.code if isinstance(ended.code, int) else 2


def _run(arguments: argparse.Namespace) -> int:
    try:
        with _Terminable() as ending:
            arguments.check_ending = ending.check
            code: int = import_module(f"host.commands.{arguments.module}").run(arguments)
            sys.stdout.flush()
            return code
    except JoinError as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        return _fail("interrupted, nothing was written", _INTERRUPTED)
    except BrokenPipeError:
        _leave_stdout()
        return _READER_GONE
    except OSError as error:
        _leave_stdout()
        return _fail(f"the system does not let it go on ({error}): free what it lacks")
    except MemoryError:
        return _fail("there is not enough memory: choose a smaller window or --batch")
    except Exception as error:
        if os.environ.get("WATERSMEET_TRACEBACK"):
            raise
        return _fail(
            f"this should not happen ({type(error).__name__}: {error}): "
            "please report it with what WATERSMEET_TRACEBACK=1 shows"
        )


def _leave_stdout() -> None:
    """What is still to be written goes nowhere: the interpreter must not fail on it at its end."""
    with contextlib.suppress(OSError, ValueError):  # a stdout without a file of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(sentence: str, code: int = 1) -> int:
    print(f"watersmeet: {' '.join(sentence.split())}", file=sys.stderr)
    return code


class _Terminable:
    """While it is entered, SIGTERM unwinds the stack, so that files under way are removed.

    An exception is lost where the signal comes while Python runs a callback of its own (an
    import's, a weak reference's): long work also calls `check` now and then.
    """

    def __enter__(self) -> "_Terminable":
        self._asked = False
        self._before: Any = None
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)

    def check(self) -> None:
        if self._asked:
            raise SystemExit(_TERMINATED)

    def _end(self, *_: object) -> None:
        self._asked = True
        self.check()


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more | {"allow_abbrev": False})

    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(f"{message} ({self.prog} --help shows how)", 2))


def _joined_values(argv: Sequence[str]) -> list[str]:
    """'--window', '-5s..5s' -> '--window=-5s..5s': argparse takes the bare value for an option."""
    joined: list[str] = []
    for word in argv:
        if joined and joined[-1] in _MAY_BE_NEGATIVE and "--" not in joined:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="watersmeet", description="Joins two streams over sliding windows, exactly."
    )
    version = f"watersmeet {metadata.version('watersmeet')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    join = commands.add_parser("join", help="join two files")
    _add_join_options(join)
    join.set_defaults(module="join")
    plan = commands.add_parser("explain", help="show the plan of a join, reading only schemas")
    _add_join_options(plan)
    plan.add_argument("--json", action="store_true", help="as a JSON object")
    plan.set_defaults(module="explain")
    devices = commands.add_parser("devices", help="list what a join can run on here")
    devices.set_defaults(module="devices")
    selftest = commands.add_parser("selftest", help="check the engine of this machine")
    _add_engine_options(selftest)
    selftest.set_defaults(module="selftest")
    bench = commands.add_parser("bench", help="run benchmarks; without a name list them")
    bench.add_argument("suite", nargs="*", metavar="SUITE", help="a suite, or all")
    bench.add_argument("--quick", action="store_true", help="small sizes: seconds, no figures")
    bench.add_argument(
        "--results", metavar="DIR", help="where results go (bench/results, quick ones build/bench)"
    )
    bench.set_defaults(module="bench")
    flash = commands.add_parser("flash", help="put a bitstream on a board")
    flash.add_argument("board", nargs="?", metavar="BOARD", help="ulx3s or ecpix5; else the one "
                       "that is connected")
    flash.add_argument("--permanent", action="store_true", help="into its flash, to stay")
    flash.set_defaults(module="flash")
    serve = commands.add_parser("serve", help="hold the windows of joins for other programs")
    _add_serve_options(serve)
    serve.set_defaults(module="serve")
    return parser


def _add_serve_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--backend", choices=BACKENDS, default="auto", help="engine")
    add("--device", metavar="D", help="which one of the backend's devices")
    add("--directory", metavar="DIR", help="private directory of the socket")
    add("--idle", type=_seconds, default=0.0, metavar="S",
        help="end when nobody has asked for so many seconds")
    add("--patience", type=_seconds, default=600.0, metavar="S",
        help="seconds that a client may take for one frame")
    add("--detach", action="store_true", help="return when it serves, and go on behind")


def _add_join_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("left", metavar="LEFT", help="Parquet, Arrow IPC or CSV file of the stream l")
    add("right", metavar="RIGHT", help="the same of the stream r")
    add("--on", required=True, metavar="COND", help="SQL condition over l. and r. columns")
    add("--window", required=True, metavar="SPEC", type=_checked(parse_window),
        help="'rows N', 'rows N,M', '10 minutes', '-5 minutes..10 minutes' or 'none'")
    add("--time", metavar="COL[,COL]", help="event-time columns, for a time window")
    add("--lateness", metavar="D", type=_checked(parse_duration),
        help="how late a tuple may come, e.g. '1 minute'")
    add("--late", choices=LATE, help="what becomes of late tuples (keep: see --late-output)")
    add("--late-output", metavar="FILE", help="write late tuples to this file")
    add("--arrival", metavar="COL[,COL]",
        help="columns that give the order of arrival; else row i of LEFT comes before row i "
        "of RIGHT")
    _add_engine_options(parser)
    add("--index", choices=INDEXES, default="auto", help="structure of a subwindow")
    add("--batch", type=_count, default=1 << 15, metavar="N", help="most tuples in a batch")
    add("--linger", type=_seconds, default=0.0, metavar="S",
        help="seconds that tuples may wait for a batch to fill")
    add("--subwindow", type=_count, metavar="N", help="rows of a subwindow")
    add("--order", choices=ORDERS, default="none", help="order of the result")
    add("--emit", choices=EMITS, default="pairs",
        help="one row a pair; or counts or aggregates of matches, one row a tuple")
    add("--select", metavar="COLS", help="columns of the result, e.g. l.id,r.id; all by default")
    add("--aggregates", metavar="AGGS",
        help="with --emit aggregate, e.g. 'n=count(*),total=sum(r.qty)'")
    add("--output", metavar="FILE", help="write the result to this file (by its ending)")
    parser.set_defaults(refuse=parser.error)


def _add_engine_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--backend", choices=BACKENDS, default="auto", help="engine")
    add("--device", metavar="D", help="which one of the backend's devices")
    add("--params", metavar="P", help="sizes of the engine, e.g. mergers=4 or mode=paper")
    add("--workers", type=_count, default=1, metavar="N", help="engines that share the window")


def _check_together(arguments: argparse.Namespace) -> None:
    """Refuse options that do not go together, and settle the one that follows from another."""
    timed = isinstance(parse_window(arguments.window), TimeWindow)
    if timed and not arguments.time:
        arguments.refuse(f"the window {arguments.window!r} is of time: add --time COL[,COL]")
    if arguments.lateness is not None and not timed:
        arguments.refuse(
            f"--lateness goes with a time window, and the window is {arguments.window!r}"
        )
    if arguments.lateness is not None and parse_duration(arguments.lateness) < 0:
        arguments.refuse(f"--lateness {arguments.lateness!r} is negative")
    if arguments.late == "keep" and not arguments.late_output:
        arguments.refuse("--late keep needs --late-output FILE")
    if arguments.late == "drop" and arguments.late_output:
        arguments.refuse("--late drop leaves nothing for --late-output")
    arguments.late = "keep" if arguments.late_output else "drop"


def _checked(parse: Callable[[str], object]) -> Callable[[str], str]:
    """The text itself, once it can be understood."""

    def check(text: str) -> str:
        try:
            parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return check


def _count(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 on")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
