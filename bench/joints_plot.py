#!/usr/bin/env python3
"""Draws the tables of bench_joints as SVG, without other packages.

    python3 bench/joints_plot.py out/bench docs/images
"""
import csv
import math
import pathlib
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 360, 62, 14, 12, 44
COLOURS = ["#1b6ca8", "#2e8b57", "#c98a00", "#c4472b", "#6b3fa0"]


def ticks(low, high):
    step = 10 ** math.floor(math.log10((high - low) / 4))
    while (high - low) / step > 8:
        step *= 2 if (high - low) / step < 16 else 5
    first = math.ceil(low / step)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def chart(path, lines, x_label, y_label, log=False, top=None):
    """lines: [(name, [(x, y)])]; `top` cuts what is higher."""
    if top is not None:
        lines = [(name, [(x, min(y, top)) for x, y in line]) for name, line in lines]
    f = math.log10 if log else lambda x: x
    xs = [f(x) for _, line in lines for x, _ in line]
    ys = [f(y) for _, line in lines for _, y in line]
    x0, x1, y0, y1 = min(xs), max(xs), min(ys), max(ys)
    if not log:
        y0, y1 = y0 - 0.03 * (y1 - y0), y1 + 0.03 * (y1 - y0)

    def px(x):
        return LEFT + (f(x) - x0) / (x1 - x0) * (WIDTH - LEFT - RIGHT)

    def py(y):
        return HEIGHT - BOTTOM - (f(y) - y0) / (y1 - y0) * (HEIGHT - TOP - BOTTOM)

    def marks(low, high):
        return [10.0 ** k for k in range(math.ceil(low), math.floor(high) + 1)] if log else ticks(low, high)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
           f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
    for x in marks(x0, x1):
        out.append(f'<line x1="{px(x):.1f}" y1="{TOP}" x2="{px(x):.1f}" y2="{HEIGHT - BOTTOM}" stroke="#e3e6ea"/>'
                   f'<text x="{px(x):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" fill="#333">{x:g}</text>')
    for y in marks(y0, y1):
        out.append(f'<line x1="{LEFT}" y1="{py(y):.1f}" x2="{WIDTH - RIGHT}" y2="{py(y):.1f}" stroke="#e3e6ea"/>'
                   f'<text x="{LEFT - 6}" y="{py(y) + 4:.1f}" text-anchor="end" fill="#333">{y:g}</text>')
    for i, (name, line) in enumerate(lines):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if log:
            out += [f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="3" fill="{colour}"/>' for x, y in line]
        if name:
            y = TOP + 16 + 17 * i
            out.append(f'<line x1="{LEFT + 12}" y1="{y - 4}" x2="{LEFT + 36}" y2="{y - 4}" stroke="{colour}" '
                       f'stroke-width="2"/><text x="{LEFT + 42}" y="{y}" fill="#333">{name}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#333">{x_label}'
               '</text>')
    out.append(f'<text transform="translate(16,{(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle" '
               f'fill="#333">{y_label}</text></svg>')
    path.write_text("\n".join(out) + "\n")


def main():
    tables, images = map(pathlib.Path, sys.argv[1:3])
    if (tables / "joints-length.csv").exists():
        rows = list(csv.DictReader(open(tables / "joints-length.csv")))
        chart(images / "joints-length.svg", [(name, [(float(r["links"]), float(r[column])) for r in rows])
                                               for name, column in (("exact", "ms_per_step"), ("published", "published_ms"))],
              "links", "ms per step", log=True)
    if (tables / "joints-klann.csv").exists():
        lines = {}
        for r in csv.DictReader(open(tables / "joints-klann.csv")):
            if 4 <= float(r["t"]) <= 8:
                lines.setdefault(f'&#956; = {r["mu"]}', []).append(
                    (float(r["t"]), float(r["torque_front"]) + float(r["torque_back"])))
        chart(images / "klann-torque.svg", list(lines.items()), "time [s]", "torque of both motors [N m]", top=6)


if __name__ == "__main__":
    main()
