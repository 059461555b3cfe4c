# SPDX-License-Identifier: LGPL-2.1-or-later
"""Merge the results of bench-builder.sh into one file with rows, and draw them: FOLDER."""
import glob
import json
import os
import platform
import statistics
import sys

UNIT = {"unit": "GB/s", "better": "higher"}


def load(path):
    with open(path) as file:
        return json.load(file)


def median_row(name, backend, peer, size, pairs):
    """A row from pairs of rates, of the library and of the peer; each pair is from one round."""
    return {"name": name, "backend": backend, "peer": peer, "size_bytes": size,
            "ours": statistics.median(p[0] for p in pairs), "theirs": statistics.median(p[1] for p in pairs),
            "ratio": statistics.median(p[0] / p[1] for p in pairs), **UNIT}


def protocols(folder):
    """MPI alone: eager messages (copied), compared with messages that the receiver reads."""
    rates = {}
    for path in sorted(glob.glob(f"{folder}/builder-eager-*.json")):
        other = load(path.replace("-eager-", "-rendezvous-"))
        for mine, theirs in zip(load(path)["rows"], other["rows"]):
            assert mine["size_bytes"] == theirs["size_bytes"]
            rates.setdefault(mine["size_bytes"], []).append((mine["theirs"], theirs["theirs"]))
    return [median_row("MPI alone: protocol", "copied on the way", "read by the receiver", size, pairs)
            for size, pairs in rates.items()]


def verbs(folder):
    """Results of bench-builder-guest.sh, if any: verbs compared with MPI over the same soft-RoCE device, or over TCP."""
    path = f"{folder}/builder-verbs.jsonl"
    if not os.path.exists(path):
        return []
    with open(path) as file:
        runs = [json.loads(line) for line in file]
    rates = {}
    for mine in (r for r in runs if r["way"] in ("verbs", "late verbs")):
        for other in runs:
            late = other["way"] == "late shm"
            if "verbs" not in other["way"] and late == ("late" in mine["way"]) and \
                    all(other[k] == mine[k] for k in ("size_bytes", "round")):
                rates.setdefault((other["way"], mine["size_bytes"]), []).append(
                    (mine["bytes_per_second"], other["bytes_per_second"]))
    return [{**(median_row("late receiver", "verbs", "shared memory", size, pairs) if way == "late shm" else
                median_row("verbs compared with MPI", "verbs", f"MPI over {way}", size, pairs)), "virtual_machine": True}
            for (way, size), pairs in rates.items()]


def cpu():
    with open("/proc/cpuinfo") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "unknown")


PANELS = (
    ("one way, polling (depth 8, one buffer)", ("layer alone", "test", "testsome", "testall", "waitsome")),
    ("one way, depth (testsome) and many buffers", ("depth 1", "depth 2", "testsome", "depth 16", "depth 64",
                                                    "many buffers")),
    ("both ways", ("both: test", "both: testsome", "both: testall", "both: many buffers", "both: depth 64")),
    ("cost of a thread, and of protocols", ("layer alone", "synchronous", "thread", "thread, testsome",
                                            "MPI alone: protocol")),
)


def draw(report, path):
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(11, 7.5), layout="constrained")
    for axis, (title, names) in zip(axes.flat, PANELS):
        for name in names:
            rows = [r for r in report["rows"] if r["name"] == name]
            sizes = [r["size_bytes"] for r in rows]
            axis.plot(sizes, [r["ratio"] for r in rows], "o-", ms=3, lw=1, label=name)
            if rows and "ratio_first_quartile" in rows[0]:
                axis.fill_between(sizes, [r["ratio_first_quartile"] for r in rows],
                                  [r["ratio_third_quartile"] for r in rows], alpha=0.08)
        axis.axhline(1, color="black", ls="--", lw=0.8)
        axis.set(xscale="log", title=title, xlabel="size, bytes", ylabel="rate / that of MPI alone", ylim=(0, 1.6))
        axis.set_xscale("log", base=2)
        axis.legend(fontsize=7)
        axis.grid(alpha=0.3)
    figure.suptitle(f"messages through the library compared with MPI alone (more is better)\n"
                    f"{report['machine']['cpu']}, Linux {report['machine']['kernel']}", fontsize=10)
    figure.savefig(path)


def main():
    folder = sys.argv[1]
    report = load(f"{folder}/builder-burst.json")
    report["machine"] = {"cpu": cpu(), "kernel": platform.release(), "processors": len(os.sched_getaffinity(0))}
    report["rows"] += protocols(folder) + verbs(folder)
    report["model"] = load(f"{folder}/builder-model.json")
    report["resident"] = load(f"{folder}/builder-resident.json")
    with open(f"{folder}/builder-ranks.jsonl") as file:
        report["ranks"] = [json.loads(line) for line in file]
    report["load"] = os.getloadavg()[0]
    with open(f"{folder}/builder.json", "w") as file:
        json.dump(report, file, indent=2)
    draw(report, f"{folder}/builder.svg")
    for row in report["rows"]:
        if row["name"] in ("layer alone", "MPI alone: protocol"):
            print(f"{row['size_bytes']:9}  {row['name']:20} {row['backend']:18} / {row['peer']:24} {row['ratio']:7.3f}")


if __name__ == "__main__":
    main()
