"""Draws docs/insert_and_probe.svg: python docs/waveform.py [FILE].

A small core is simulated: it creates a subwindow, inserts six tuples, and is probed with four.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from amaranth.sim import Simulator

from hw.spec import JoinParams, Side, compare
from hw.spec.commands import Opcode
from hw.spec.predicates import registers
from sim.simulated_core import SimulatedCore

PARAMS = JoinParams(
    subwindow=32, partitions=4, lanes=2, probers=1, mergers=1, insert_buffer=16, bands=1
)
STORED, PROBES = [3, 5, 5, 8, 9, 12], [4, 5, 9, 20]
INK, LINE, PALE, NOTE = "#24313d", "#0b7a75", "#d8ebe9", "#b5541c"
STREAMS = ("commands", "tuples", "probes", "records", "replies")


def simulate():
    """Whether each stream offers and moves a token in each cycle, and what passed."""
    core = SimulatedCore(PARAMS)
    waves = {name: [] for name in STREAMS}
    waves["memory reads"], waves["memory writes"] = [], []
    passed = []

    async def put(ctx, stream, token):
        ctx.set(stream.payload, token)
        ctx.set(stream.valid, 1)
        await ctx.tick().until(stream.ready)
        ctx.set(stream.valid, 0)

    async def frame(ctx, stream, rows, empty):
        for first in range(0, len(rows), PARAMS.lanes):
            part = rows[first : first + PARAMS.lanes]
            data = part + [empty] * (PARAMS.lanes - len(part))
            await put(ctx, stream, {"data": data, "count": len(part)})
        await put(ctx, stream, {"count": 0, "end": 1})

    async def drive(ctx):
        ctx.set(core.records.ready, 1)
        ctx.set(core.replies.ready, 1)
        (word,) = registers(compare("="), Side.RIGHT, 32)
        band = {name: int(word[name]) for name in ("lo", "hi", "lo_bound", "hi_bound")}
        common = {"side": Side.LEFT, "subwindow": 1}
        await put(ctx, core.commands, {"opcode": Opcode.CREATE, "count": 32, **common})
        await put(ctx, core.commands, {"opcode": Opcode.INSERT, "count": 6, **common})
        rows = [{"key": key, "rid": rid} for rid, key in enumerate(STORED)]
        await frame(ctx, core.tuples, rows, {"key": 0, "rid": 0})
        probe = {"opcode": Opcode.PROBE, "count": 4, "chunk_words": 2, "bands": [band],
                 "band_count": 1, **common}
        await put(ctx, core.commands, probe)
        await frame(ctx, core.probes, PROBES, 0)

    async def watch(ctx):
        inner = core.core
        ends = [getattr(core, name) for name in STREAMS]
        ends += [port.words for port in inner.reads] + [inner.writes[0].writes]
        wires = [wire for end in ends for wire in (end.valid, end.ready, end.payload)]
        for cycle in range(400):
            _, _, *seen = await ctx.tick().sample(*wires)  # as the clock's edge finds them
            pairs = zip(seen[::3], seen[1::3], strict=True)
            states = [valid + (valid & ready) for valid, ready in pairs]
            for name, state, payload in zip(STREAMS, states, seen[2::3], strict=False):
                waves[name].append(state)
                if state == 2:
                    passed.append((cycle, name, payload))
            waves["memory reads"].append(max(states[len(STREAMS) : -1]))
            waves["memory writes"].append(states[-1])
            if sum(name == "replies" for _, name, _ in passed) == 3:
                return
        raise RuntimeError("the core did not reply within 400 cycles")

    simulator = Simulator(core)
    simulator.add_clock(1e-8)
    simulator.add_testbench(watch)
    simulator.add_testbench(drive, background=True)
    simulator.run()
    return waves, passed


def notes(passed):
    """(cycle, stream, text) of what a reader should see."""
    for cycle, name, token in passed:
        if name == "commands":
            yield cycle, name, Opcode(token.opcode).name
        elif name == "replies":
            yield cycle, name, f"{token.rows} tuples"
        elif token.end:
            yield cycle, name, "end"
        elif name == "records":
            runs = [f"[{token.data[n].start},{token.data[n].end})" for n in range(token.count)]
            yield cycle, name, " ".join(runs)
        else:
            keys = [token.data[n] for n in range(token.count)]
            yield cycle, name, " ".join(str(k.key if name == "tuples" else k) for k in keys)


def draw(path: Path) -> None:
    """Write the picture."""
    waves, passed = simulate()
    cycles = len(waves["commands"])
    plt.rcParams |= {"font.family": "sans-serif", "font.size": 9, "svg.hashsalt": "watersmeet"}
    figure, axes = plt.subplots(figsize=(13, 4.6))
    rows = {name: -row for row, name in enumerate(waves)}
    for name, states in waves.items():
        y = rows[name]
        level = [y + (0.45 if state else 0) for state in states]
        axes.step(range(cycles + 1), [*level, level[-1]], where="post", color=LINE, lw=1.1)
        for cycle, state in enumerate(states):
            if state == 2:
                axes.fill_between([cycle, cycle + 1], y, y + 0.45, color=PALE, lw=0)
    last = {}
    for cycle, name, text in notes(passed):
        crowded = cycle - last.get(name, (-99, 0))[0] < 7
        lift = (last[name][1] + 1) % 3 if crowded else 0
        last[name] = (cycle, lift)
        axes.annotate(
            text, (cycle + 0.5, rows[name] + 0.45), (cycle + 0.5, rows[name] + 0.5 + 0.16 * lift),
            ha="left", size=7, color=NOTE,
        )
    for name, text in (("memory writes", "the merged main array, a word of two tuples a cycle"),
                       ("memory reads", "searches inside a partition, a word for each halving")):
        axes.text(waves[name].index(2), rows[name] + 0.52, text, size=7, color=NOTE)
    axes.set_yticks([y + 0.2 for y in rows.values()], rows)
    axes.set(xlim=(0, cycles + 4), ylim=(min(rows.values()) - 0.3, 1.1), xlabel="cycle")
    axes.set_title(
        "CREATE, INSERT of six tuples and PROBE with four (l.x = r.x): a stream's line is high "
        "while it offers a token, filled when the token passes", loc="left", size=9, color=INK,
    )
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.tick_params(axis="y", length=0)
    figure.tight_layout(pad=0.4)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    default = Path(__file__).with_name("insert_and_probe.svg")
    draw(Path(sys.argv[1]) if sys.argv[1:] else default)
