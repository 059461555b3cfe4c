# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sweeps of rashpa-builder model: PROGRAM FOLDER; writes builder-model.json and builder-model.svg there."""
import concurrent.futures
import json
import subprocess
import sys

# FDR InfiniBand: 56 Gb/s less 64b/66b; a folded Clos network of switches with 36 ports, as the event
# builder of CMS has it: 15 machines and 18 links up a leaf, 3 to each of 6 spines
CLOS = "gbps=54.3,latency=0.2,cost=0.3,head=30,leaf=15,spines=6,cables=3,mixed"
COUNTS = (1, 2, 4, 8, 16, 32, 64, 90, 180, 500)
SIZES = (1024, 4096, 16384, 65536, 262144)
DEPTHS = (1, 2, 8, 64)
BLOCKS = (1, 2, 4, 8, 16, 32)


def model(*options):
    done = subprocess.run([PROGRAM, "model", "--json", *map(str, options)], check=True, capture_output=True)
    return json.loads(done.stdout)


def traffic(n, size, depth=8):
    # long enough for each pair to have had a few messages, where there is time for that
    seconds = min(max(40 * n * size / 6.8e9, 0.0005), 0.02 if n < 64 else 0.005)
    said = model("--of", "nton", "--readouts", n, "--builders", n, "--size", size, "--depth", depth, "--jitter", 50,
                 "--seconds", seconds, "--network", CLOS)
    return {"n": n, "size": size, "depth": depth, "part_of_link": said["part_of_link"],
            "least": said["least_bytes_per_s"], "most": said["most_bytes_per_s"]}


def events(readouts, builders, block, credit, fragment):
    said = model("--readouts", readouts, "--builders", builders, "--block", block, "--credit", credit, "--sources", 1,
                 "--fragment", fragment, "--jitter", 50, "--pool", 4 * builders, "--seconds", 0.01,
                 "--network", CLOS)
    return {"readouts": readouts, "builders": builders, "block": block, "credit": credit, "fragment": fragment,
            "events_per_s": said["events_per_s"], "part_of_link": said["part_of_link"]}


def draw(all_of, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    for size in SIZES:
        rows = [r for r in all_of["scale"] if r["size"] == size]
        axes[0].plot([r["n"] for r in rows], [100 * r["part_of_link"] for r in rows], "o-", ms=3, label=f"{size} bytes")
    axes[0].set(xscale="log", title="N to N, depth 8", xlabel="N", ylabel="of a link, %", ylim=(0, 105))
    for depth in DEPTHS:
        rows = [r for r in all_of["depth"] if r["depth"] == depth]
        axes[1].plot([r["size"] for r in rows], [100 * r["part_of_link"] for r in rows], "o-", ms=3, label=f"depth {depth}")
    axes[1].set(xscale="log", title="2 to 2", xlabel="size, bytes", ylim=(0, 105))
    for credit in sorted({r["credit"] for r in all_of["events"]}):
        rows = [r for r in all_of["events"] if r["credit"] == credit]
        axes[2].plot([r["block"] for r in rows], [r["events_per_s"] / 1e3 for r in rows], "o-", ms=3,
                     label=f"credit {credit}")
    axes[2].axhline(100, color="black", ls="--", lw=0.8)
    axes[2].set(xscale="log", title="108 readouts, 73 builders, 9.3 KB", xlabel="events of a block", ylabel="events, kHz")
    for axis in axes:
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        scale = [pool.submit(traffic, n, size) for n in COUNTS for size in SIZES if n < 180 or size < 65536]
        depths = [pool.submit(traffic, 2, size, depth) for depth in DEPTHS for size in SIZES]
        built = [pool.submit(events, 108, 73, block, credit, 9300) for credit in (1, 2, 4, 16) for block in BLOCKS]
        all_of = {"network": CLOS, "scale": [f.result() for f in scale], "depth": [f.result() for f in depths],
                  "events": [f.result() for f in built]}
    with open(f"{sys.argv[2]}/builder-model.json", "w") as file:
        json.dump(all_of, file, indent=1)
    draw(all_of, f"{sys.argv[2]}/builder-model.svg")


PROGRAM = sys.argv[1]
if __name__ == "__main__":
    main()
