# SPDX-License-Identifier: LGPL-2.1-or-later
"""Pictures of measurements: RESULTS FOLDER, which has the files that bench.sh and guest.sh write. A file that is not
there leaves its picture as it is."""
import json
import sys
from html import escape
from pathlib import Path

import matplotlib
matplotlib.use("svg")
from matplotlib import pyplot
from PIL import Image

OURS, VFIO, UIO, GREY = "#0072B2", "#E69F00", "#009E73", "#999999"
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rashpa", "font.size": 11,
                            "font.family": ["DejaVu Sans", "sans-serif"]})
with open(__file__, encoding="utf-8") as own:
    LICENCE = f"<!-- {own.readline()[2:-1]} -->\n"


def save(figure, path, title):
    figure.savefig(path, metadata={"Date": None, "Creator": None, "Title": title})
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("?>\n", "?>\n" + LICENCE, 1), encoding="utf-8")


def colour(name):
    return VFIO if "vfio" in name else UIO if "uio" in name else OURS


def ticks(axis, values):
    axis.minorticks_off()
    axis.set_xticks(values, map(str, values))


def events(rows, path):
    """Medians and 99 % of the time of an event, by path."""
    rows = sorted(rows, key=lambda row: -row["p50_ns"])
    figure, axis = pyplot.subplots(figsize=(6.5, 3.6), layout="constrained")
    for y, row in enumerate(rows):
        middle, late = row["p50_ns"] / 1e3, row["p99_ns"] / 1e3
        axis.plot([middle, late], [y, y], color=colour(row["path"]), lw=2, zorder=1)
        axis.plot([middle], [y], "o", color=colour(row["path"]), ms=9)
        axis.plot([late], [y], "|", color=colour(row["path"]), ms=12, mew=2)
        axis.annotate(f"{middle:.0f}", (middle, y), (0, 7), textcoords="offset points", ha="center", fontsize=9)
    axis.set_yticks(range(len(rows)), [row["path"] for row in rows])
    axis.set(xscale="log", xlabel="µs from the doorbell to the program: dot 50 %, bar 99 %", ylim=(-0.5, len(rows)))
    ticks(axis, (20, 50, 100, 200, 500, 1000, 2000))
    axis.grid(axis="x", alpha=0.4)
    save(figure, path, "Time of an event through this driver, vfio-pci and uio_pci_generic")


def ratios(rows, path):
    """Memory and maps, compared with VFIO and dma-heap."""
    peers = {"VFIO type1": VFIO, "dma-heap": UIO}
    names = "alloc, zeroed", "mmap", "map", "map + unmap (closing stops the function)"
    rows = [row for row in rows if row["peer"] in peers and row["backend"] == "contig" and row["name"] in names]
    rows.sort(key=lambda row: (row["peer"], -names.index(row["name"]), -row["size_bytes"]))
    figure, axis = pyplot.subplots(figsize=(6.5, 0.8 + 0.3 * len(rows)), layout="constrained")
    for y, row in enumerate(rows):
        axis.plot([1, row["ratio"]], [y, y], "-", color=peers[row["peer"]], lw=3)
        axis.plot([row["ratio"]], [y], "o", color=peers[row["peer"]], ms=8)
        axis.annotate(f"{row['ratio']:.2f}", (row["ratio"], y), (8 if row["ratio"] > 1 else -8, 0), va="center",
                      textcoords="offset points", ha="left" if row["ratio"] > 1 else "right", fontsize=9)
    size = lambda n: f"{n >> 20} MiB" if n >> 20 else f"{n >> 10} KiB"
    axis.set_yticks(range(len(rows)), [f"{row['name'].split(' (')[0]} {size(row['size_bytes'])}, {row['peer']}" for row in rows])
    axis.set(xscale="log", xlabel="ratio of times, below 1: this driver is faster", ylim=(-0.6, len(rows) - 0.4))
    axis.margins(x=0.2)
    ticks(axis, (0.05, 0.1, 0.25, 0.5, 1, 2, 4))
    axis.axvline(1, color="#444444", lw=1)
    axis.grid(axis="x", alpha=0.4)
    save(figure, path, "Memory and maps compared with VFIO and dma-heap")


def timeline(trace, path):
    """The steps of one event."""
    names = ("handler begins", "record is queued", "waiters are woken", "thread is on a processor", "program has the record")
    times = [step["median_us"] for step in trace["steps"]]
    figure, axis = pyplot.subplots(figsize=(6.5, 2.6), layout="constrained")
    for y, (name, begin, end) in enumerate(zip(names[1:], times, times[1:])):
        axis.barh(-y, end - begin, left=begin, height=0.55, color=(OURS, VFIO, GREY, UIO)[y])
        axis.annotate(f"{end - begin:.0f} µs", (end, -y), (4, 0), textcoords="offset points", va="center", fontsize=10)
    axis.set_yticks([0, -1, -2, -3], names[1:])
    axis.set(xlabel="µs after the interrupt handler has begun", xlim=(0, times[-1] * 1.15))
    axis.grid(axis="x", alpha=0.4)
    save(figure, path, f"Steps of an event, medians of {trace['events']}")


def screen(text, path):
    """A terminal."""
    lines = text.rstrip().splitlines()
    width, height = 9 * max(map(len, lines)) + 24, 20 * len(lines) + 22
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                    f'viewBox="0 0 {width} {height}">\n{LICENCE}<title>rashpactl top</title>\n'
                    f'<rect width="100%" height="100%" rx="6" fill="#222222"/>\n'
                    '<g font-family="DejaVu Sans Mono,monospace" font-size="14" fill="#EEEEEE">\n' +
                    "".join(f'<text x="12" y="{20 * i + 25}" textLength="{8.43 * len(line):.0f}">{escape(line).replace(" ", chr(160))}</text>\n'
                            for i, line in enumerate(lines)) + "</g>\n</svg>\n", encoding="utf-8")


def main():
    results, out = map(Path, sys.argv[1:])
    for name, draw, picture in (("bench/latency.json", lambda text, path: events(json.loads(text)["rows"], path), "events.svg"),
                                ("bench/memory.json", lambda text, path: ratios(json.loads(text)["rows"], path), "ratios.svg"),
                                ("bench/trace.json", lambda text, path: timeline(json.loads(text), path), "timeline.svg"),
                                ("pictures/top.txt", screen, "top.svg")):
        if (results / name).exists():
            draw((results / name).read_text(encoding="utf-8"), out / picture)
    page = results / "pictures/stream.png"      # tools/python/tests/page.py
    if page.exists():
        Image.open(page).quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(out / "page.png", optimize=True)


if __name__ == "__main__":
    main()
