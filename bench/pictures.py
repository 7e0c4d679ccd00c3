"""One picture to a suite: log axes, the peers and the limit beside the join."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["PICTURES", "draw"]

_OURS, _PEER, _LIMIT, _BAD = "#1f6f8b", "#a8a29e", "#b45309", "#b91c1c"
#: Behind text that may stand on a line.
_PAPER = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
_STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.titlelocation": "left",
    "axes.titlesize": 10.5,
    "svg.hashsalt": "watersmeet",  # the same numbers give the same file
}
_BAR_INCH, _PANEL_INCH, _WIDTH_INCH = 0.33, 0.75, 9.0


def draw(suite: str, result: dict[str, Any], path: Path) -> None:
    """Write the picture of a suite's result, in the format that the path ends with."""
    with matplotlib.rc_context(_STYLE):
        figure = PICTURES[suite](result)
        if result.get("quick"):
            figure.suptitle("quick sizes: no figures", x=0.99, ha="right", color=_BAD, size=9)
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(path, metadata=metadata, dpi=120)


# peers


def _draw_peers(result: dict[str, Any]) -> Figure:
    """A panel to a setting, a bar to a peer."""
    settings = result["settings"]
    figure, panels = _stacked([len(setting["figures"]) + 1 for setting in settings])
    for panel, setting in zip(panels, settings, strict=True):
        ours = max(one["tuples_per_s"] for one in setting["figures"])
        bars = [("Watersmeet, whole pipeline", ours, _OURS, _count(ours))]
        for one in setting["figures"]:
            speed = one["peer_tuples_per_s"]
            scaled = "; scaled from a part of a batch" if one["peer_scaled"] else ""
            asked = f"asked {one['at_least']:,g}"
            text = f"{_count(speed)}, ratio {_ratio(one['ratio'])} ({asked}){scaled}"
            bars.append((one["name"], speed, _PEER, text))
        _bars(panel, bars)
        _limit(panel, setting["limit_tuples_per_s"])
        panel.set_title(setting["name"])
    panels[-1].set_xlabel("tuples a second, two threads each (log)")
    return figure


# engines


def _draw_engines(result: dict[str, Any]) -> Figure:
    """Growth with the window on the left, every ratio against its bound on the right."""
    figure = Figure(figsize=(11, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.25))
    _draw_growth(left, result)
    _draw_bounds(right, result)
    return figure


def _draw_growth(panel: Axes, result: dict[str, Any]) -> None:
    points, paper = result["growth"]["points"], result["paper"][0]
    rows = [point["rows"] for point in points]
    speeds = [point["tuples_per_s"] for point in points]
    panel.plot(rows, speeds, "o-", color=_OURS)
    for point in points:
        panel.annotate(
            _count(point["tuples_per_s"]), (point["rows"], point["tuples_per_s"]), (0, 7),
            textcoords="offset points", ha="center", color=_OURS, size=8.5,
        )
    limits = [point["limit_tuples_per_s"] for point in points]
    panel.plot(rows, limits, "--", color=_LIMIT)
    panel.annotate("memory limit", (rows[0], limits[0]), (4, 6), textcoords="offset points",
                   color=_LIMIT)
    panel.annotate(f"batch {points[0]['batch']:,}", (rows[0], speeds[0]), (4, -14),
                   textcoords="offset points", color=_OURS)
    for speed, colour, name in (
        (paper["tuples_per_s"], _OURS, ""), (paper["peer_tuples_per_s"], _PEER, ", as in the paper")
    ):
        panel.plot([paper["rows"]], [speed], "D", color=colour, markersize=5)
        panel.annotate(f"batch {paper['batch']:,}{name}", (paper["rows"], speed), (-8, -3),
                       textcoords="offset points", ha="right", color="#57534e", size=8.5)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(min([*speeds, paper["peer_tuples_per_s"]]) / 2, 3 * max(limits))
    panel.set_xlim(rows[0] / 1.5, rows[-1] * 1.7)
    panel.set_xticks(rows, [_count(value, 1024) for value in rows])
    panel.minorticks_off()
    panel.grid(axis="y", color="#e7e5e4")
    panel.set_xlabel("rows of the window, each side (log)")
    panel.set_ylabel("tuples a second, whole pipeline (log)")
    panel.set_title("Speed by the size of the window")


def _draw_bounds(panel: Axes, result: dict[str, Any]) -> None:
    """How many times better than asked; what may not exceed its bound is turned round."""
    named = [
        *[(f"insert {one['name']}, of a copy's speed", one) for one in result["insertion"]],
        *[(f"{one['name']}, of searchsorted's speed", one) for one in result["probe"]],
        *[(f"speed over the paper's mode, subwindows of {_count(one['subwindow'], 1024)}", one)
          for one in result["paper"]],
        *[(f"{one['matches']:,.0f} matches, {one['name']}", one) for one in result["matches"]],
        *[(f"push over kernels, {one['name']}", one) for one in result["overhead"]],
        (result["growth"]["name"], result["growth"]),
    ]
    _bars(panel, _bound_bars(named, bool(result.get("quick"))), room=8)
    panel.axvline(1, color=_LIMIT, linestyle="--", zorder=1)
    panel.set_xlabel("times better than asked (log)")
    panel.set_title("Each figure against its bound (dashed)")


def _bound_bars(
    named: Sequence[tuple[str, dict[str, Any]]], quick: bool
) -> list[tuple[str, float, str, str]]:
    """Bars that are as long as a ratio is better than its bound."""
    bars = []
    for name, one in named:
        at_most = "at_most" in one
        bound = one["at_most"] if at_most else one["at_least"]
        better = bound / one["ratio"] if at_most else one["ratio"] / bound
        text = f"{one['ratio']:.3g} (asked {'≤' if at_most else '≥'} {bound:g})"
        text += f"; {one['paper']}" if "paper" in one else ""
        colour = _PEER if quick else _OURS if one["holds"] else _BAD
        bars.append((name, better, colour, text))
    return bars


# foundation


def _draw_foundation(result: dict[str, Any]) -> Figure:
    """The numpy backend beside re-sorting and DuckDB."""
    compared = [("re-sorting the window", one) for one in result["resort"]]
    compared.append(("DuckDB range join", result["duckdb"]))
    figure, panels = _stacked([2] * len(compared))
    for panel, (name, one) in zip(panels, compared, strict=True):
        speed, theirs = one["tuples_per_s"], one["tuples_per_s"] / one["ratio"]
        text = f"{_count(theirs)}, ratio {_ratio(one['ratio'])}"
        _bars(panel, [
            ("Watersmeet, numpy backend", speed, _OURS, _count(speed)),
            (name, theirs, _PEER, text),
        ])
        panel.set_title(f"{one['rows']:,} rows a side, batch {result['batch']:,}")
    panels[-1].set_xlabel("tuples a second (log)")
    return figure


# structures


def _draw_structures(result: dict[str, Any]) -> Figure:
    """The papers' claims and the chooser against their bounds; two predicates as speeds."""
    figures = result["two_predicates"]["figures"]
    claims = [
        *result["subwindows"]["convergence"], *result["subwindows"]["figures"],
        *result["window_joins"]["figures"],
    ]
    chosen = result["choices"]["figures"]
    figure, panels = _stacked([8, len(claims), len(chosen), *[2] * len(figures)])
    _draw_convergence(panels[0], result["subwindows"]["convergence"])
    for panel, ones, title, room in (
        (panels[1], claims, "The papers' claims, bounds dashed", 4000),
        (panels[2], chosen, "auto beside the best structure", 60),
    ):
        named = [(one["name"].replace(" over that of the last", ""), one) for one in ones]
        _bars(panel, _bound_bars(named, bool(result.get("quick"))), room=room)
        panel.axvline(1, color=_LIMIT, linestyle="--", zorder=1)
        panel.set_xlabel("times better than asked (log)")
        panel.set_title(title)
    for panel, one in zip(panels[3:], figures, strict=True):
        title, _, beside = one["name"].partition(": ")
        name, _, peer = beside.partition(" beside ")
        asked = f"ratio {one['ratio']:,.4g} (asked {one['at_least']:,g})"
        _bars(panel, [
            (f"Watersmeet, {name}", one["tuples_per_s"], _OURS, _count(one["tuples_per_s"])),
            (peer, one["peer_tuples_per_s"], _PEER, f"{_count(one['peer_tuples_per_s'])}, {asked}"),
        ])
        panel.set_title(title)
    panels[-1].set_xlabel("tuples a second, two threads each (log)")
    return figure


def _draw_convergence(panel: Axes, found: list[dict[str, Any]]) -> None:
    """PanJoin's figure 10f."""
    for one in found:
        name = one["name"].partition(", ")[2].partition(":")[0]
        panel.plot(range(1, len(one["errors"]) + 1), one["errors"], "o-", label=name)
    panel.set_xlabel("subwindow; splitters are adjusted between two")
    panel.set_ylabel("normalised mean\nabsolute error")
    panel.set_title("Sizes of RaP-Table's partitions (PanJoin, figure 10f)")
    panel.legend(frameon=False)


# spark


def _draw_spark(result: dict[str, Any]) -> Figure:
    """Every ratio against its bound on the left, recovery by the size of the window right."""
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
    groups = ("buckets", "inequalities", "empty", "latency", "batch")
    named = [(f"{group}: {one['name']}", one) for group in groups for one in result[group]]
    _bars(left, _bound_bars(named, bool(result.get("quick"))), room=8)
    left.axvline(1, color=_LIMIT, linestyle="--", zorder=1)
    left.set_xlabel("times better than asked (log)")
    points = result["recovery"]["points"]
    right.plot([p["rows"] for p in points], [p["seconds"] for p in points], "o-", color=_OURS)
    right.axhline(result["recovery"]["at_most"], color=_LIMIT, linestyle="--")
    right.set_xscale("log", base=2)
    right.set_ylim(0)
    right.set_xlabel("rows of the window, each side (log)")
    right.set_ylabel("seconds from a dead daemon to its next answer")
    right.set_title("Recovery from the log (bound dashed)")
    return figure


# rtl


def _draw_rtl(result: dict[str, Any]) -> Figure:
    """Every figure against its bound; below, the two ways to insert beside each other."""
    bounded = [one for one in [*result["figures"], result["library"]] if one["holds"] is not None]
    designs = {
        name: one for name, one in result.get("insertion_designs", {}).items()
        if "tuples_a_second" in one
    }
    figure, panels = _stacked([len(bounded), *[len(designs)] * bool(designs)])
    named = [(one["name"], one) for one in bounded]
    _bars(panels[0], _bound_bars(named, bool(result.get("quick"))), room=8)
    panels[0].axvline(1, color=_LIMIT, linestyle="--", zorder=1)
    panels[0].set_xlabel("times better than asked (log)")
    panels[0].set_title("The gateware's figures against their bounds (dashed)")
    if designs:
        _bars(panels[1], [
            (name, one["tuples_a_second"], _OURS,
             f"{_count(one['tuples_a_second'])}: {one['tuples_a_cycle']:.3g} a cycle, "
             f"{one['mhz']} MHz, {one['luts']:,} LUTs")
            for name, one in designs.items()
        ])
        panels[1].set_xlabel("tuples merged a second at the routed clock (log)")
        panels[1].set_title("Two insertion engines over memory words of as many tuples")
    return figure


# board


def _draw_board(result: dict[str, Any]) -> Figure:
    """Latency of the trees, cores that one BI-Sort core replaces, and every bound."""
    bounded = [one for one in result["figures"] if one["holds"] is not None]
    figure = Figure(figsize=(12, 4.2 + _BAR_INCH * len(bounded)), layout="constrained")
    heights = (3.6, 0.8 + _BAR_INCH * len(bounded))
    above, below = figure.subfigures(2, 1, height_ratios=heights, squeeze=False)[:, 0]
    left, right = above.subplots(1, 2)
    _draw_latency(left, result["latency"])
    _draw_replaced(right, result)
    panel = below.subplots()
    named = [(one["name"], one) for one in bounded]
    _bars(panel, _bound_bars(named, bool(result.get("quick"))), room=8)
    panel.axvline(1, color=_LIMIT, linestyle="--", zorder=1)
    panel.set_xlabel("times better than asked (log)")
    panel.set_title("Trees, engines, link and bitstreams against their bounds (dashed)")
    return figure


def _draw_latency(panel: Axes, latency: list[dict[str, Any]]) -> None:
    """Cycles there and back by the number of cores; a chain of neighbours has one a core."""
    for fan_out in sorted({one["fan_out"] for one in latency}):
        ones = [one for one in latency if one["fan_out"] == fan_out]
        leaves = [one["leaves"] for one in ones]
        (line,) = panel.plot(leaves, [one["root_to_core"] for one in ones], "o-",
                             label=f"fan-out {fan_out}, root to core")
        panel.plot(leaves, [one["core_to_root"] for one in ones], "s--", color=line.get_color(),
                   markersize=4, label=f"fan-out {fan_out}, core to root")
    leaves = sorted({one["leaves"] for one in latency})
    panel.plot(leaves, leaves, ":", color=_PEER, label="handshake join, O(k)")
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    panel.set_xticks(leaves, [str(count) for count in leaves])
    panel.set_xlabel("join cores k (log)")
    panel.set_ylabel("cycles (log)")
    panel.set_title("Latency of SplitJoin's trees, O(log k)")
    panel.grid(axis="y", color="#e7e5e4")
    panel.legend(frameon=False, fontsize=7.5)


def _draw_replaced(panel: Axes, result: dict[str, Any]) -> None:
    windows = [one["window"] for one in result["replaced"]]
    cores = [one["cores"] for one in result["replaced"]]
    panel.plot(windows, cores, "o-", color=_OURS)
    for window, count in zip(windows, cores, strict=True):
        panel.annotate(f"{count:,.0f}", (window, count), (0, 7), textcoords="offset points",
                       ha="center", color=_OURS, size=8.5)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(min(cores) / 2, 3 * max(cores))
    panel.set_xticks(windows, [_count(window, 1024) for window in windows])
    panel.minorticks_off()
    panel.grid(axis="y", color="#e7e5e4")
    panel.set_xlabel("rows of the window (log)")
    panel.set_ylabel("nested-loop cores (log)")
    panel.set_title("What one BI-Sort core replaces: cores of one comparison a cycle")


#: Suite -> what draws its result.
PICTURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "foundation": _draw_foundation,
    "engines": _draw_engines,
    "peers": _draw_peers,
    "structures": _draw_structures,
    "rtl": _draw_rtl,
    "board": _draw_board,
    "spark": _draw_spark,
}


# What the pictures are made of.


def _stacked(bars: Sequence[int]) -> tuple[Figure, list[Axes]]:
    """Panels above each other, each with room for its bars."""
    heights = [_PANEL_INCH + _BAR_INCH * count for count in bars]
    figure = Figure(figsize=(_WIDTH_INCH, sum(heights)), layout="constrained")
    panels = figure.subplots(len(bars), 1, height_ratios=heights, squeeze=False)[:, 0]
    return figure, list(panels)


def _bars(panel: Axes, bars: Sequence[tuple[str, float, str, str]], room: float = 40) -> None:
    """(name, value, colour, text) from the top; `room` times the largest stays for the text."""
    names, values, colours, texts = zip(*bars, strict=True)
    places = range(len(bars))
    panel.barh(places, values, color=colours, height=0.68)
    for place, value, text in zip(places, values, texts, strict=True):
        panel.annotate(text, (value, place), (4, 0), textcoords="offset points",
                       va="center", size=8.5, bbox=_PAPER)
    panel.set_yticks(places, names)
    panel.invert_yaxis()
    panel.set_xscale("log")
    panel.set_xlim(min(values) / 3, room * max(values))
    panel.grid(axis="x", color="#e7e5e4")
    panel.tick_params(axis="y", length=0)


def _limit(panel: Axes, speed: float) -> None:
    panel.axvline(speed, color=_LIMIT, linestyle="--", zorder=1)
    panel.annotate(f"memory limit {_count(speed)}", (speed, 1), (4, -2), color=_LIMIT, size=8.5,
                   xycoords=("data", "axes fraction"), textcoords="offset points", va="top")
    lowest, highest = panel.get_xlim()
    panel.set_xlim(lowest, max(highest, 6 * speed))


def _ratio(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _count(value: float, base: int = 1000) -> str:
    """1.5M, 64K."""
    for exponent, letter in ((3, "G"), (2, "M"), (1, "K")):
        if value >= base**exponent:
            return f"{value / base**exponent:.3g}{letter}"
    return f"{value:.3g}"
