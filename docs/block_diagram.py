"""Draws docs/join_core.svg from the elaborated gateware: python docs/block_diagram.py [FILE].

Boxes are the components that elaboration finds inside each other, arrows the streams between
neighbours. Equal neighbours (prober_0, prober_1 ...) are one box.
"""

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from amaranth.hdl import Fragment, Signal, Value
from amaranth.lib import wiring

from hw.spec import JoinParams
from sim.simulated_core import SimulatedCore

#: What does not look at a payload is left out of the picture.
PLUMBING = {"Buffer", "ShortQueue", "Fork", "Join", "Arbiter", "Memory", "BurstCounter"}
DEEPEST = 3
BOX = 148, 40
GAP_X, GAP_Y, EDGE, TITLE = 28, 22, 18, 20
INK, LINE, FILLS = "#24313d", "#0b7a75", ("#ffffff", "#eef3f5", "#d8ebe9", "#ffffff")


@dataclass
class Block:
    """A component, what is inside it, and the streams between the insides."""

    name: str
    kind: str
    count: int = 1
    inside: dict = field(default_factory=dict)
    streams: set = field(default_factory=set)
    at: tuple = (0, 0)
    size: tuple = BOX


def block_of(fragment, name, depth=0):
    """The block of an elaborated component."""
    component = fragment.origins[0]
    block = Block(name, type(component).__name__)
    if depth == DEEPEST:
        return block
    owners = {}
    numbers = Counter()
    for part, part_name, _ in fragment.subfragments:
        inner = (part.origins or [part])[0]
        if type(inner).__name__ in PLUMBING:
            continue
        group = re.sub(r"_\d+$", "", part_name)
        numbers[group] += 1
        if group not in block.inside:
            block.inside[group] = block_of(part, group, depth + 1)
        owners |= dict.fromkeys(_payloads(inner), group)
    for group, number in numbers.items():
        block.inside[group].count = number
    for source, target in _assigned(statement for domain in fragment.statements.values()
                                    for statement in domain):
        if source in owners and target in owners and owners[source] != owners[target]:
            block.streams.add((owners[source], owners[target]))
    return block


def _payloads(component):
    """Identities of the signals that carry a component's payloads."""
    if not isinstance(component, wiring.Component):
        return
    for path, _, value in component.signature.flatten(component):
        signal = Value.cast(value)
        if path[-1] == "payload" and isinstance(signal, Signal):
            yield id(signal)


def _assigned(statements):
    """(from, to) of the signals in each assignment, also under conditions."""
    for statement in statements:
        if hasattr(statement, "lhs"):
            for target in statement.lhs._lhs_signals():
                for source in statement.rhs._rhs_signals():
                    yield id(source), id(target)
        elif hasattr(statement, "cases"):
            for case in statement.cases:
                yield from _assigned(case[1])


def place(block):
    """Columns from source to target; where some are large, these below a row of the others."""
    for inner in block.inside.values():
        place(inner)
    if not block.inside:
        return
    rows = [_columns(block)]
    if any(inner.inside for inner in block.inside.values()):
        small = [[inner] for inner in block.inside.values() if not inner.inside]
        rows = [small, *([[inner]] for inner in block.inside.values() if inner.inside)]
    width, y = 0, TITLE + EDGE
    for row in rows:
        x, lowest = EDGE, y
        for column in row:
            bottom = y
            for inner in column:
                inner.at = (x, bottom)
                bottom += inner.size[1] + GAP_Y
            x += max(inner.size[0] for inner in column) + GAP_X
            lowest = max(lowest, bottom)
        width, y = max(width, x - GAP_X + EDGE), lowest + GAP_Y
    block.size = (width, y - 2 * GAP_Y + EDGE)


def _columns(block):
    columns = {}
    for name, inner in block.inside.items():
        columns.setdefault(_rank(block, name, ()), []).append(inner)
    return [columns[rank] for rank in sorted(columns)]


def _rank(block, name, seen):
    before = [source for source, target in block.streams
              if target == name and source not in seen and (name, source) not in block.streams]
    return max((1 + _rank(block, source, (*seen, name)) for source in before), default=0)


def svg_of(block, depth=0):
    """The block and its insides as SVG elements, in coordinates of the block around it."""
    x, y = block.at
    width, height = block.size
    many = f"{block.count} x " if block.count > 1 else ""
    yield f'<g transform="translate({x},{y})">'
    yield (f'<rect width="{width}" height="{height}" rx="6" fill="{FILLS[depth]}" '
           f'stroke="{INK}" stroke-width="1"/>')
    place_at = (12, 18, "start") if block.inside else (width / 2, 17, "middle")
    yield (f'<text x="{place_at[0]}" y="{place_at[1]}" text-anchor="{place_at[2]}" '
           f'font-weight="600">{many}{block.name}</text>')
    second = (width - 12, 18, "end") if block.inside else (width / 2, 32, "middle")
    yield (f'<text x="{second[0]}" y="{second[1]}" text-anchor="{second[2]}" '
           f'fill="#57534e" font-size="11">{block.kind}</text>')
    for inner in block.inside.values():
        yield from svg_of(inner, depth + 1)
    for source, target in sorted(block.streams):
        if (target, source) in block.streams and source > target:
            continue  # there and back is one line with two heads
        yield _line(block, source, target)
    yield "</g>"


def _line(block, source, target):
    """An arrow from the source's side to the target's; with two heads if both send."""
    one, other = block.inside[source], block.inside[target]
    above = one.at[1] + one.size[1] <= other.at[1]
    beside = one.at[0] + one.size[0] <= other.at[0] or other.at[0] + other.size[0] <= one.at[0]
    if not beside:
        narrow = min(one, other, key=lambda inner: inner.size[0])
        x = narrow.at[0] + narrow.size[0] / 2
        heights = (one.at[1] + one.size[1], other.at[1])
        if not above:
            heights = (one.at[1], other.at[1] + other.size[1])
        path = f"M{x},{heights[0]} L{x},{heights[1]}"
    else:
        begin = one.at[0] + one.size[0], one.at[1] + one.size[1] / 2
        end = other.at[0], other.at[1] + other.size[1] / 2
        middle = (begin[0] + end[0]) / 2
        path = f"M{begin[0]},{begin[1]} C{middle},{begin[1]} {middle},{end[1]} {end[0]},{end[1]}"
    two = ' marker-start="url(#head)"' if (target, source) in block.streams else ""
    return (f'<path d="{path}" fill="none" stroke="{LINE}" stroke-width="1.6" '
            f'marker-end="url(#head)"{two}/>')


def draw(path: Path, params: JoinParams | None = None) -> None:
    """Write the picture of a simulated core with its memory."""
    block = block_of(Fragment.get(SimulatedCore(params or JoinParams()), None), "simulated core")
    place(block)
    width, height = block.size[0] + 2, block.size[1] + 2
    head = ('<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto-start-reverse"><path d="M0,0 L8,4 L0,8 z" '
            f'fill="{LINE}"/></marker>')
    path.write_text("\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-1 -1 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="12" '
        f'fill="{INK}">',
        f"<defs>{head}</defs>", *svg_of(block), "</svg>", "",
    ]))


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("join_core.svg"))
