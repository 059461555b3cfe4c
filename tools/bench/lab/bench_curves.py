# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draw curves of rashpa-builder model: OUT.svg [OUT.json]

Uses the fabric of the document (12 leaves with 15 machines and 18 uplinks each, 6 spines; 54.3 Gb/s), and varies the
number of machines, the block size and the depth. The results are simulated, so they are the same on all machines."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

LINK = "gbps=54.3,latency=0.2,cost=0.3,head=30"
FABRIC = LINK + ",spines=6,cables=3,mixed,leaves="
MACHINES = (2, 4, 8, 16, 32, 64, 128, 178, 256, 500, 1000)
# name, size, depth, time of a message on a link in seconds, maximum number of machines (more take hours)
SCALES = (("4 KiB", 4096, 2, 6.1e-7, 1000), ("64 KiB", 65536, 2, 9.8e-6, 178))
BLOCKS = (1, 2, 4, 8, 16)
FRAGMENT = 9300
SIZES = [1 << i for i in range(8, 21)]
DEPTHS = (1, 2, 8, 64)


def model(*options):
    run = subprocess.run(["rashpa-builder", "model", *map(str, options), "--json"], check=True, capture_output=True,
                         text=True, timeout=3000)
    return json.loads(run.stdout)


def scale(size, depth, each, machines):
    # time for four times the data under way, as the first quarter does not count
    seconds = max(1e-3, 4 * depth * each * machines / 2)
    return model("nton", "--readouts", machines // 2, "--size", size, "--depth", depth, "--jitter", 10,
                 "--seconds", f"{seconds:.6f}", "--network", f"{FABRIC}{-(-machines // 15)}" if machines > 2 else LINK)["part_of_link"]


def blocks(block, credit):
    # time for twelve times the data under way to a builder, at 6.8 GB/s
    seconds = max(0.003, 12 * 108 * block * credit * FRAGMENT / 6.8e9)
    return model("build", "--readouts", 108, "--builders", 73, "--sources", 1, "--fragment", FRAGMENT, "--jitter", 50, "--block", block,
                 "--credit", credit, "--seconds", f"{seconds:.6f}", "--network", FABRIC + "13,packet=16K,buffer=256K")["events_per_second"]


def depths(size, depth):
    return model("nton", "--readouts", 1, "--size", size, "--depth", depth, "--seconds", 0.01,
                 "--network", LINK + ",leaves=2,spines=1,cables=1")["part_of_link"]


def curves():
    """{panel: {name: [(x, y), ...]}}"""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        def run(what, x, *fixed):
            return pool.submit(lambda: (x, what(*fixed, x) if what is scale else what(x, *fixed)))
        waiting = {
            "scale": {name: [run(scale, n, size, depth, each) for n in MACHINES if n <= most]
                      for name, size, depth, each, most in SCALES},
            "blocks": {f"credit {credit}": [run(blocks, b, credit) for b in BLOCKS] for credit in (1, 2)},
            "depth": {f"depth {depth}": [run(depths, size, depth) for size in SIZES] for depth in DEPTHS},
        }
        return {panel: {name: [point.result() for point in points] for name, points in lines.items()}
                for panel, lines in waiting.items()}


PANELS = {
    "scale": ("half send to the other half, depth 2", "machines", "part of a link that carries messages", "log"),
    "blocks": ("108 readouts, 73 builders, 9.3 KB each", "events of a block", "thousand events a second", "log"),
    "depth": ("one to one, by a switch", "bytes of a message", "part of a link that carries messages", "log"),
}


def draw(all_curves, path):
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rashpa", "font.size": 9})
    from matplotlib import pyplot
    # Okabe and Ito's colours
    matplotlib.rcParams["axes.prop_cycle"] = pyplot.cycler(color=["#0072B2", "#D55E00", "#009E73", "#E69F00"])

    figure, axes = pyplot.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for axis, (panel, (title, x, y, how)) in zip(axes, PANELS.items()):
        for name, points in all_curves[panel].items():
            axis.plot([p[0] for p in points], [p[1] / (1000 if panel == "blocks" else 1) for p in points], "o-", ms=3, lw=1,
                      label=name)
        axis.set(title=title, xlabel=x, ylabel=y)
        axis.set_xscale(how, base=2)
        axis.set_ylim(bottom=0)
        axis.legend()
        axis.grid(alpha=0.3)
    axes[1].axhline(100, color="black", ls="--", lw=0.8)
    figure.savefig(path, metadata={"Date": None, "Creator": None})
    with open(path, encoding="utf-8") as file:
        text = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("?>\n", "?>\n<!-- SPDX-License-Identifier: LGPL-2.1-or-later -->\n", 1))


def main():
    all_curves = curves()
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w", encoding="utf-8") as file:
            json.dump(all_curves, file, indent=1)
    draw(all_curves, sys.argv[1])


if __name__ == "__main__":
    main()
