"""make report: the results and pictures as one HTML page that stands on its own.

    python -m bench.report [--results DIR] [--output FILE]
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from bench.suites import RESULTS, SUITES

__all__ = ["main", "render", "rows"]

#: What a figure has of the join, of what stands beside it, and the unit: the first that is there.
_BESIDE = (
    ("tuples_per_s", "peer_tuples_per_s", "tuples/s"),
    ("tuples_per_s", "one_match_tuples_per_s", "tuples/s"),
    ("seconds", "copy_seconds", "s"),
    ("seconds", "searchsorted_seconds", "s"),
    ("seconds", "peer_seconds", "s"),
    ("push_s", "engine_s", "s"),
    ("peak_bytes", "live_bytes", "bytes"),
)
#: What a group of figures is about; another is called by its name.
_TITLES = {
    "resort": "Beside re-sorting the window for each batch",
    "duckdb": "Beside a range join in DuckDB",
    "insertion": "Insertion beside a memory copy of the same array",
    "probe": "Probes beside numpy.searchsorted",
    "paper": "Beside the engine as in the paper",
    "matches": "Tuples with many matches beside tuples with one",
    "overhead": "A push beside the time of its engine",
    "growth": "Speed as the window grows",
    "memory": "Peak memory beside the bytes of the live tuples",
}


@dataclass(frozen=True)
class Row:
    """A figure as a line of a table."""

    group: str
    name: str
    ours: str
    theirs: str
    ratio: str
    asked: str
    holds: bool | None
    note: str


def rows(result: Any, group: str = "") -> Iterator[Row]:
    """Every figure of a result, wherever it stands: a figure is what has a ratio."""
    if isinstance(result, list):
        for one in result:
            yield from rows(one, group)
    elif isinstance(result, dict):
        if "ratio" in result or "overhead_ratio" in result:
            yield _row(result, group)
            return
        inner = str(result.get("name", group))
        for name, one in result.items():
            yield from rows(one, inner if name == "figures" else name)


def _row(figure: dict[str, Any], group: str) -> Row:
    name = figure.get("name") or f"{figure.get('rows', 0):,} rows a side"
    notes = []
    if figure.get("peer_scaled"):
        notes.append(f"scaled from {figure['peer_measured_tuples']:,} tuples")
    if figure.get("agrees"):
        notes.append("same matches")
    elif "agrees" in figure:
        notes.append("OTHER MATCHES")
    ours, theirs = _beside(figure)
    return Row(
        _TITLES.get(group, group), name, ours, theirs,
        _number(figure.get("ratio", figure.get("overhead_ratio", 0.0))), _asked(figure),
        figure.get("holds"), ", ".join(notes),
    )


def _asked(figure: dict[str, Any]) -> str:
    if "at_least" in figure:
        return f"≥ {figure['at_least']:g}"
    return f"≤ {figure['at_most']:g}" if "at_most" in figure else ""


def _beside(figure: dict[str, Any]) -> tuple[str, str]:
    for ours, theirs, unit in _BESIDE:
        if ours in figure and theirs in figure:
            return _quantity(figure[ours], unit), _quantity(figure[theirs], unit)
    return "", ""


def _quantity(value: float, unit: str) -> str:
    if unit == "s":
        return f"{_number(1e3 * value)} ms" if value < 1 else f"{_number(value)} s"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= size:
            return f"{value / size:.3g} {letter} {unit}"
    return f"{value:.3g} {unit}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def render(folder: Path) -> str:
    """The page of all suites' results in a folder; FileNotFoundError where there are none."""
    read = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    kept = [one for one in read if "suite" in one]  # place and route keeps its own beside them
    if not kept:
        raise FileNotFoundError(f"there are no results in {folder}: run make bench first")
    order = [*SUITES]
    kept.sort(key=lambda one: order.index(one["suite"]) if one["suite"] in order else len(order))
    suites = [
        {
            "name": one["suite"],
            "about": SUITES[one["suite"]].about if one["suite"] in SUITES else "",
            "machine": one["machine"],
            "groups": _grouped(one["result"]),
            "quick": one["result"].get("quick", False),
            "picture": _picture(folder / f"{one['suite']}.svg"),
            "json": json.dumps(one["result"], indent=2),
        }
        for one in kept
    ]
    page = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return page.from_string(_PAGE).render(suites=suites) + "\n"


def _grouped(result: dict[str, Any]) -> list[tuple[str, list[Row]]]:
    return [(name, list(group)) for name, group in groupby(rows(result), lambda row: row.group)]


def _picture(path: Path) -> Markup:
    """An SVG without what stands before it in a file of its own."""
    if not path.exists():
        return Markup("")
    text = path.read_text()
    return Markup(text[text.index("<svg") :])


_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Watersmeet: what was measured</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #1c1917; margin: 0 auto; padding: 2rem 1rem;
       max-width: 66rem; }
h1 { margin-bottom: 0; }
h2 { margin-top: 3rem; border-top: 1px solid #d6d3d1; padding-top: 1.5rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; margin: 1rem 0; }
th, td { text-align: left; padding: 0.3rem 0.6rem; border-bottom: 1px solid #e7e5e4; }
th.number, td.number { text-align: right; white-space: nowrap; }
.wide { overflow-x: auto; }
.yes { color: #166534; }
.no, .quick { color: #b91c1c; font-weight: 600; }
.quiet { color: #57534e; font-size: 0.88rem; }
svg { max-width: 100%; height: auto; }
pre { background: #f5f5f4; padding: 1rem; overflow: auto; max-height: 30rem; font-size: 0.8rem; }
</style>
</head>
<body>
<h1>Watersmeet: what was measured</h1>
<p>Watersmeet joins two streams over sliding windows on any theta predicate: here, tuples whose
integer keys lie within a band of each other. Every ratio on this page was measured side by side in
one run, both sides on two threads, each the best of several rounds taken in turn. Times of the
join are of its whole pipeline: it sorts a batch of each stream, probes the other's window, inserts
and expires. The peers do the join only.</p>
<table>
<tr><th>Suite</th><th>What it is about</th><th class="number">Figures that hold</th></tr>
{% for suite in suites %}
{% set bounded = suite.groups | map("last") | sum(start=[]) | rejectattr("holds", "none") | list %}
<tr><td><a href="#{{ suite.name }}">{{ suite.name }}</a></td><td>{{ suite.about }}</td>
<td class="number">
{% if suite.quick %}quick run
{% elif bounded %}{{ bounded | selectattr("holds") | list | length }} of {{ bounded | length }}
{% else %}none asked{% endif %}
</td></tr>
{% endfor %}
</table>
{% for suite in suites %}
<section id="{{ suite.name }}">
<h2>{{ suite.name }}</h2>
<p>{{ suite.about[:1] | upper }}{{ suite.about[1:] }}.</p>
{% if suite.quick %}
<p class="quick">Run with quick sizes: this shows that the suite works, and no figure.</p>
{% endif %}
{% if suite.picture %}
<figure aria-label="picture of the suite {{ suite.name }}">{{ suite.picture }}</figure>
{% endif %}
<div class="wide"><table>
<tr><th></th><th class="number">Watersmeet</th><th class="number">beside it</th>
<th class="number">ratio</th><th class="number">asked</th><th></th><th></th></tr>
{% for group, figures in suite.groups %}
<tr><th colspan="7">{{ group }}</th></tr>
{% for row in figures %}
<tr><td>{{ row.name }}</td><td class="number">{{ row.ours }}</td>
<td class="number">{{ row.theirs }}</td><td class="number">{{ row.ratio }}</td>
<td class="number">{{ row.asked }}</td>
<td>{% if row.holds is none or suite.quick %}{% elif row.holds %}<span class="yes">holds</span>
{% else %}<span class="no">missed</span>{% endif %}</td>
<td class="quiet">{{ row.note }}</td></tr>
{% endfor %}
{% endfor %}
</table></div>
<p class="quiet">Measured on {{ suite.machine.date }}: {{ suite.machine.processor }},
{{ suite.machine.cores }} cores, {{ suite.machine.memory_gib }} GiB, {{ suite.machine.system }},
{% if suite.machine.device %}OpenCL device {{ suite.machine.device }}, {% endif %}
Python {{ suite.machine.python }},
{% for name, version in suite.machine.packages.items() %}
{{ name }} {{ version }}{{ "." if loop.last else "," }}
{% endfor %}
</p>
<details><summary>All numbers</summary><pre>{{ suite.json }}</pre></details>
</section>
{% endfor %}
<h2>How to read it</h2>
<p>A <em>round</em> of the join pushes as many tuples as a subwindow of its window holds, so that
it has its share of what does not happen in each push: merging the insertion tier, completing and
expiring a subwindow. The <em>memory limit</em> is the speed of a memory copy in the same run over
the bytes that the design cannot help moving for a tuple: one cache line of each subwindow of
the other stream, and its share of moving half a subwindow for each full insertion tier.
<em>Same matches</em>: asked with one batch, the peer found as many matches as the join.</p>
</body>
</html>
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Write the page; 1 where there is nothing to write of."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="DIR")
    parser.add_argument("--output", type=Path, metavar="FILE", help="DIR/report.html by default")
    arguments = parser.parse_args(argv)
    path = arguments.output or arguments.results / "report.html"
    try:
        path.write_text(render(arguments.results))
    except FileNotFoundError as error:
        print(f"report: {error}", file=sys.stderr)
        return 1
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
