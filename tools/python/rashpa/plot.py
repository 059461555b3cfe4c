# SPDX-License-Identifier: LGPL-2.1-or-later
"""python3 -m rashpa.plot RESULT.json [PICTURE.svg]: draw a result of rashpa-bench.

Latencies: medians and 99 % of each path. Round trips: medians over the sizes. All others: ratios of ours to the peers
over the sizes, a panel for each measurement."""
import argparse
import json
import os

import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter

# Okabe and Ito's colours, without yellow
COLOURS = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000"


def _size(size, _position=None):
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size / (1 << shift):g} {unit}"
    return f"{size:g} B"


def _over_sizes(axis, lines, what):
    for name, points in lines.items():
        axis.plot(*zip(*sorted(points)), "o-", ms=4, label=name)
    axis.set_xscale("log", base=2)
    axis.set_yscale("log")
    axis.xaxis.set_major_formatter(FuncFormatter(_size))
    axis.tick_params(axis="x", rotation=30)
    axis.set_ylabel(what)
    axis.grid(alpha=0.4)
    axis.legend(fontsize=8)


def _latency(rows):
    figure, axis = pyplot.subplots(figsize=(8, 1.5 + 0.35 * len(rows)), layout="constrained")
    for y, row in enumerate(sorted(rows, key=lambda row: -row["p50_ns"])):
        axis.plot([row["p50_ns"] / 1e3, row["p99_ns"] / 1e3], [y, y], "-|", color=COLOURS[0])
        axis.plot([row["p50_ns"] / 1e3], [y], "o", color=COLOURS[0], label=row["path"])
        axis.annotate(row["path"], (row["p99_ns"] / 1e3, y), (8, 0), textcoords="offset points", va="center")
    axis.set(xscale="log", yticks=[], xlabel="µs from a doorbell to the event in the program: dot 50 %, bar 99 %")
    axis.margins(x=0.4)
    axis.grid(axis="x", alpha=0.4)
    return figure


def _roundtrip(rows):
    figure, axis = pyplot.subplots(figsize=(8, 5), layout="constrained")
    lines = {}
    for row in rows:
        lines.setdefault(row["path"], []).append((row["size_bytes"], row["p50_ns"] / 1e3))
        lines.setdefault("DMA alone", []).append((row["size_bytes"], row["dma_ns"] / 1e3))
    _over_sizes(axis, lines, "µs by the board's clock, median")
    return figure


def _ratios(rows):
    panels = {}
    for row in rows:
        if row.get("ratio") and row.get("peer"):
            lines = panels.setdefault(f"{row['name']} ({row['better']} is better)", {})
            lines.setdefault(f"{row['backend']} / {row['peer']}", []).append((row["size_bytes"] or 1, row["ratio"]))
    if not panels:
        raise SystemExit("rashpa.plot: no row has a ratio: there is nothing to draw")
    height = (len(panels) + 1) // 2
    figure, axes = pyplot.subplots(height, 2, figsize=(12, 3.6 * height), layout="constrained", squeeze=False)
    for axis, (name, lines) in zip(axes.flat, panels.items()):
        _over_sizes(axis, lines, "ratio of ours to theirs")
        axis.axhline(1, color="black", ls="--", lw=1)
        axis.set_title(name)
    for axis in axes.flat[len(panels):]:
        axis.set_visible(False)
    return figure


def draw(result, path):
    """Draw the result, a dictionary, into a file of type SVG."""
    matplotlib.rcParams.update({"svg.fonttype": "none", "font.size": 10, "axes.prop_cycle": pyplot.cycler(color=COLOURS)})
    figure = {"latency": _latency, "roundtrip": _roundtrip}.get(result["bench"], _ratios)(result["rows"])
    machine = result["machine"]
    figure.suptitle(f"{machine['cpu']}, Linux {machine['kernel']}{', virtual machine' if machine['virtual'] else ''}", fontsize=9)
    figure.savefig(path)


def main():
    parser = argparse.ArgumentParser(prog="python3 -m rashpa.plot", description=__doc__.split("\n\n")[1])
    parser.add_argument("result", metavar="RESULT.json", help="file that rashpa-bench --json=FILE wrote")
    parser.add_argument("picture", metavar="PICTURE.svg", nargs="?", help="default: RESULT.svg")
    options = parser.parse_args()
    with open(options.result, encoding="utf-8") as file:
        draw(json.load(file), options.picture or os.path.splitext(options.result)[0] + ".svg")


if __name__ == "__main__":
    main()
