# SPDX-License-Identifier: LGPL-2.1-or-later
"""Compare rashpa-builder model with real runs of processes of this machine over shared memory: FOLDER.

The parameters of the model come from three runs of two processes: the time of a message of 64 bytes at a depth of 64
(cost) and of 1 (latency, there and back), and the rate of messages of 1 MiB (copy). The model predicts all other runs."""
import json
import os
import statistics
import subprocess
import sys

SECONDS = 0.5
ROUNDS = 3
PROCESSES = (2, 4)
SIZES = (256, 4096, 65536, 262144)
DEPTHS = (1, 8, 64)
GIVEN = [(2, 64, 1), (2, 64, 64), (2, 1 << 20, 64)]


def of(command):
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout)


def measured(processes, size, depth):
    """Received bytes a second in one run, sum of all receivers."""
    run = of(["mpirun", "--bind-to", "none", "-n", str(processes), "rashpa-builder", "nton", "--seconds", str(SECONDS),
              "--interval", "0.05", "--size", str(size), "--depth", str(depth), "--json"])
    return run["mean_bytes_per_second"] * run["ranks_measured"]


def foretold(processes, size, depth, told):
    run = of(["rashpa-builder", "model", "nton", "--readouts", str(processes // 2), "--size", str(size),
              "--depth", str(depth), "--seconds", "0.05", "--network",
              # each process is a separate machine in the model; the path is one cable, or two and a switch
              f"cost={told['cost_us']:.4f},copy={told['copy_gbps']:.4f},gbps=1000,packet=64K,buffer=1M,"
              f"latency={told['latency_us'] / (1 if processes == 2 else 2):.4f}", "--json"])
    return run["mean_bytes_per_second"] * run["ranks_measured"]


def main():
    folder = sys.argv[1]
    runs = {}
    load = [os.getloadavg()[0]]
    for _ in range(ROUNDS):
        for key in GIVEN + [(p, s, d) for p in PROCESSES for s in SIZES for d in DEPTHS]:
            runs.setdefault(key, []).append(measured(*key))
    load.append(os.getloadavg()[0])
    rate = {key: statistics.median(values) for key, values in runs.items()}
    cost_us = 64 / rate[2, 64, 64] * 1e6
    large = 1 << 20
    told = {"cost_us": cost_us, "latency_us": max(0, 64 / rate[2, 64, 1] * 1e6 / 2 - cost_us),
            "copy_gbps": large / (large / rate[2, large, 64] * 1e9 - cost_us * 1e3)}
    rows = []
    for (processes, size, depth), value in rate.items():
        model = foretold(processes, size, depth, told)
        rows.append({"name": "model compared with a run", "processes": processes, "size_bytes": size, "depth": depth,
                     "given": (processes, size, depth) in GIVEN, "model_bytes_per_second": model, "run_bytes_per_second": value,
                     "run_least_bytes_per_second": min(runs[processes, size, depth]),
                     "run_most_bytes_per_second": max(runs[processes, size, depth]), "model_by_run": model / value})
    with open(f"{folder}/builder-model.json", "w") as file:
        json.dump({**told, "load": load, "rows": rows}, file, indent=2)
    print(f"cost {cost_us:.2f} us, latency {told['latency_us']:.2f} us, copy {told['copy_gbps']:.2f} GB/s, "
          f"load {load[0]:.1f} to {load[1]:.1f}")
    print("processes      size  depth     run, GB/s   (least to most)   model   model / run")
    for r in rows:
        print(f"{r['processes']:9} {r['size_bytes']:9} {r['depth']:6}  {r['run_bytes_per_second'] / 1e9:12.3f}   "
              f"({r['run_least_bytes_per_second'] / 1e9:.3f} to {r['run_most_bytes_per_second'] / 1e9:.3f}) "
              f"{r['model_bytes_per_second'] / 1e9:8.3f} {r['model_by_run']:10.2f}{'  given' if r['given'] else ''}")


if __name__ == "__main__":
    main()
