#!/usr/bin/env python3
"""Draws the ratios of a grid that bench/compare_llamacpp.py measured, as an SVG of its own.

    bench/plot_grid.py bench/results/NAME.json docs/NAME.svg

A row a file, a group of bars a test: how many times the tokens per second of llama.cpp. The line at
1 is llama.cpp. Needs nothing but Python.
"""

import json
import sys
from html import escape
from pathlib import Path

LEFT, BAR, GAP, GROUP_GAP, HEIGHT, TOP, BOTTOM = 60, 15, 2, 22, 260, 70, 60
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#888888", "#000000")


def test_name(row):
    kind = row["test"]
    return f"{kind} {row['tokens']}" if kind == "prefill" else f"decode at {row['depth']}"


def text(x, y, content, anchor="middle", size=12, extra=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}"{extra}>'
            f"{escape(content)}</text>")


def draw(report):
    models = report.get("models", [report])
    tests = []
    for model in models:
        tests += [name for name in map(test_name, model["results"]) if name not in tests]
    ratios = {(test_name(row), i): row["ratio"]
              for i, model in enumerate(models) for row in model["results"]}
    top = max(1.2, 1.12 * max(ratios.values()))
    step = next(s for s in (0.5, 1, 2, 5, 10, 20, 50) if top / s <= 10)

    def height(ratio):
        return HEIGHT * ratio / top

    base = TOP + HEIGHT
    parts = []
    x = LEFT + GROUP_GAP / 2
    for test in tests:
        begin = x
        for i in range(len(models)):
            ratio = ratios.get((test, i))
            if ratio is None:
                continue
            parts.append(f'<rect x="{x:.1f}" y="{base - height(ratio):.1f}" width="{BAR}" '
                         f'height="{height(ratio):.1f}" fill="{COLOURS[i % len(COLOURS)]}"/>')
            label_y = base - height(ratio) - 3
            parts.append(text(x + BAR / 2 + 3, label_y, f"{ratio:.1f}", "start", 9,
                              f' transform="rotate(-60 {x + BAR / 2 + 3:.1f} {label_y:.1f})"'))
            x += BAR + GAP
        parts.append(text((begin + x) / 2, base + 18, test))
        x += GROUP_GAP
    width = x + 10
    lines = []
    tick = 0.0
    while tick <= top:
        y = base - height(tick)
        lines.append(f'<line x1="{LEFT}" x2="{width - 10:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                     f'stroke="#dddddd"/>')
        lines.append(text(LEFT - 6, y + 4, f"{tick:g}", "end"))
        tick += step
    y = base - height(1)
    lines.append(f'<line x1="{LEFT}" x2="{width - 10:.1f}" y1="{y:.1f}" y2="{y:.1f}" '
                 f'stroke="#000000" stroke-dasharray="4 3"/>')
    legend = []
    at = LEFT
    for i, model in enumerate(models):
        name = model["model"].removesuffix(".gguf")
        legend.append(f'<rect x="{at}" y="{base + 34}" width="10" height="10" '
                      f'fill="{COLOURS[i % len(COLOURS)]}"/>')
        legend.append(text(at + 14, base + 43, name, "start", 11))
        at += 26 + 6.5 * len(name)
    width = max(width, at)
    title = text(LEFT, 22, "EdgeRunner: tokens per second, times llama.cpp's (dashed line)", "start",
                 15)
    machine = report["machine"]
    caption = text(LEFT, 42, f"{machine['cpu']}, {report['threads']} threads, "
                             f"{report['date'][:10]}, medians of {report['rounds']} rounds", "start",
                   11)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {base + BOTTOM}" '
            f'font-family="sans-serif">\n<rect width="100%" height="100%" fill="#ffffff"/>\n'
            + "\n".join([title, caption, *lines, *parts, *legend]) + "\n</svg>\n")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    Path(sys.argv[2]).write_text(draw(json.loads(Path(sys.argv[1]).read_text())))


if __name__ == "__main__":
    main()
