"""Draws docs/window_join.svg: python docs/picture.py [FILE]."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

INK, LEFT, RIGHT, PALE = "#24313d", "#0b7a75", "#b5541c", "#c3ccd3"
#: (time, value) of each tuple; the last of left has just arrived.
LEFT_TUPLES = [(0.8, 3.8), (2.1, 1.2), (3.6, 4.2), (5.2, 1.6), (6.9, 4.4), (9.0, 2.9)]
RIGHT_TUPLES = [(1.2, 2.2), (2.9, 4.2), (4.1, 2.6), (5.8, 3.3), (6.6, 1.0), (7.9, 3.2), (8.5, 4.5)]
WINDOW_FROM, BAND = 3.4, 0.65


def draw(path: Path) -> None:
    plt.rcParams |= {"font.family": "sans-serif", "font.size": 11, "svg.hashsalt": "watersmeet"}
    figure, axes = plt.subplots(figsize=(9, 3.7))
    now, value = LEFT_TUPLES[-1]
    frame = dict(boxstyle="round,pad=0,rounding_size=0.15", lw=1.2)
    axes.add_patch(
        FancyBboxPatch((WINDOW_FROM, 0.45), now - WINDOW_FROM, 4.75, fc="#eef3f5", ec=PALE, **frame)
    )
    axes.add_patch(
        FancyBboxPatch(
            (WINDOW_FROM, value - BAND), now - WINDOW_FROM, 2 * BAND, fc="#d8ebe9", ec=LEFT,
            alpha=0.9, **frame,
        )
    )
    for at, height in RIGHT_TUPLES:
        in_window = at >= WINDOW_FROM
        matches = in_window and abs(height - value) <= BAND
        if matches:
            axes.plot([at, now], [height, value], color=INK, lw=1.3, zorder=2)
        axes.scatter(at, height, s=95, marker="s", zorder=3, lw=1.5,
                     edgecolor=RIGHT if in_window else PALE, color=RIGHT if matches else "white")
    for at, height in LEFT_TUPLES:
        new = at == now
        axes.scatter(at, height, s=150 if new else 95, zorder=3, lw=1.5,
                     edgecolor=LEFT if at >= WINDOW_FROM else PALE, color=LEFT if new else "white")
    axes.text(now + 0.35, value, "a left tuple arrives", color=LEFT, va="center")
    axes.text(WINDOW_FROM - 0.2, value, "its band:\nl.x ± d", color=LEFT, va="center", ha="right")
    middle = (WINDOW_FROM + now) / 2
    axes.text(middle, 5.42, "the window: what it can still meet", color=INK, ha="center")
    axes.text(WINDOW_FROM - 0.2, 5.0, "expired", color="#8b98a3", ha="right", va="center")
    axes.annotate("", (10.2, 0.05), (0.2, 0.05), arrowprops=dict(arrowstyle="->", color=INK))
    axes.text(10.3, 0.05, "arrival", va="center", color=INK)
    axes.annotate("", (0.2, 5.4), (0.2, 0.05), arrowprops=dict(arrowstyle="->", color=INK))
    axes.text(0.2, 5.55, "x", ha="center", color=INK)
    for y, marker, colour, text in ((1.25, "o", LEFT, "left"), (0.75, "s", RIGHT, "right")):
        axes.scatter(10.0, y, s=70, marker=marker, edgecolor=colour, color="white", lw=1.5)
        axes.text(10.3, y, text, va="center", color=colour)
    axes.set(xlim=(0, 11.6), ylim=(-0.25, 5.9))
    axes.axis("off")
    figure.tight_layout(pad=0.2)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).with_name("window_join.svg"))
