"""Figures of benchmarks as SVG in a uniform style: a grid of small charts on a light background.

A chart has series of points; they are joined by lines, unless it is a scatter chart. An axis is linear from
zero, or logarithmic if its letter is in `log`. A side of a comparison has the same colour in every chart.
"""

import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 380, 260, 56, 14, 34, 42
# The colours of Okabe and Ito, which most people can tell apart.
COLOURS = {
    "auto": "#000000", "cat": "#0072b2", "cht": "#e69f00", "chained": "#009e73", "unchained": "#d55e00", "array": "#cc79a7",
    "ranked": "#56b4e9", "bitmap": "#a89600", "radix": "#7b3294", "bloom_radix": "#8b4513", "duckdb": "#888888",
}
SPARE = ["#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#000000"]


def chart(title, x, y, series, log="", scatter=False):
    """`series`: points by name; points without a y are left out."""
    points = {name: [(a, b) for a, b in taken if b is not None] for name, taken in series.items()}
    return {"title": title, "x": x, "y": y, "series": points, "log": log, "scatter": scatter}


def figure(path, title, charts, columns=3):
    """Writes the charts as a grid with `columns` columns."""
    charts = [c for c in charts if any(c["series"].values())]
    columns = min(columns, len(charts)) or 1
    rows = -(-len(charts) // columns)
    names = list(dict.fromkeys(name for c in charts for name, taken in c["series"].items() if taken))
    colours = {name: COLOURS.get(name, SPARE[i % len(SPARE)]) for i, name in enumerate(names)}
    width, head = columns * WIDTH + 20, 58
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{head + rows * HEIGHT + 10}" '
        f'font-family="sans-serif" font-size="11" fill="#222222">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text(14, 20, title, size=14),
    ]
    at = 14.0
    for name in names:
        out.append(f'<rect x="{at:.0f}" y="32" width="12" height="4" fill="{colours[name]}"/>')
        out.append(text(at + 16, 38, name))
        at += 30 + 6.5 * len(name)
    for i, c in enumerate(charts):
        x, y = 10 + i % columns * WIDTH, head + i // columns * HEIGHT
        out.append(f'<g transform="translate({x},{y})">')
        out += draw(c, colours)
        out.append("</g>")
    path.write_text("\n".join([*out, "</svg>"]) + "\n")


def text(x, y, content, anchor="start", size=11, turn=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{turn}>{escape(content)}</text>'


def draw(c, colours):
    xs = [a for taken in c["series"].values() for a, _ in taken]
    ys = [b for taken in c["series"].values() for _, b in taken]
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across, x_ticks = scale(xs, "x" in c["log"], LEFT, right, c["scatter"])
    up, y_ticks = scale(ys + ([] if "y" in c["log"] else [0]), "y" in c["log"], bottom, TOP, True)
    out = [text(LEFT, 16, c["title"], size=12), text((LEFT + right) / 2, HEIGHT - 8, c["x"], "middle")]
    middle = (TOP + bottom) / 2
    out.append(text(12, middle, c["y"], "middle", turn=f' transform="rotate(-90 12 {middle:.0f})"'))
    for tick in y_ticks:
        y = up(tick)
        out.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e4e4"/>')
        out.append(text(LEFT - 5, y + 4, label(tick), "end", 10))
    for tick in x_ticks:
        x = across(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#888888"/>')
        out.append(text(x, bottom + 16, label(tick), "middle", 10))
    out.append(f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="#888888"/>')
    for name, taken in filter(lambda entry: entry[1], c["series"].items()):
        places = [(across(a), up(b)) for a, b in (taken if c["scatter"] else sorted(taken))]
        if not c["scatter"] and len(places) > 1:
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colours[name]}" stroke-width="1.6"/>')
        out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colours[name]}"/>' for x, y in places]
    return out


def scale(values, log, start, end, rounded):
    """The position of a value from start to end, and the values with ticks; `rounded`: ends are ticks."""
    low, high = min(values), max(values)
    if log:
        first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
        if not rounded:
            low_end, high_end = math.log10(low), math.log10(high)
        else:
            low_end, high_end = first, max(last, first + 1)
        every = max(1, (last - first) // 6)
        ticks = [10.0**e for e in range(first, last + 1, every) if low_end - 1e-9 <= e <= high_end + 1e-9]
        place = math.log10
    else:
        step = nice((high - low) / 5 or 1)
        low_end, high_end = (math.floor(low / step) * step, math.ceil(high / step) * step) if rounded else (low, high)
        ticks = [i * step for i in range(math.ceil(low_end / step), math.floor(high_end / step) + 1)]
        place = float
    span = high_end - low_end or 1
    return (lambda value: start + (place(value) - low_end) / span * (end - start)), ticks


def nice(step):
    """The least number of the series 1, 2, 5, 10, 20, … that is not less."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= step * (1 - 1e-9))


def label(value):
    """A few digits, with a unit for large numbers."""
    for unit, size in [("G", 1e9), ("M", 1e6), ("k", 1e3)]:
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.3g}"
